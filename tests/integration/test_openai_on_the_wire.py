"""The provider against an endpoint that answers, misbehaves, and falls silent on the wire."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import socket
import traceback
from contextlib import asynccontextmanager

import pytest

from retire.deployments.configuration import OpenAIConfiguration, Sampling, Timeouts
from retire.deployments.openai_endpoint import Clockwork, OpenAIDeployment
from retire.deployments.port import Call, DeploymentFault
from sink.proposal import Invalid, Proposal, Refusal, parse
from tests.integration.scripted_endpoint import (
    Reply,
    ScriptedEndpoint,
    Turn,
    always,
    cut_stream,
    event,
    failure,
    in_order,
)
from tests.integration.wire_faults import (
    BAD_ARGUMENTS,
    BAD_STREAMS,
    CUT_ANSWERS,
    GOOD_STREAM,
    LOCK,
    RUBBISH,
    TOOL,
    TWO_CALLS,
    called,
)

pytestmark = pytest.mark.integration

KEY = "canary-3f9c51d07be24a68"
MESSAGES = ({"role": "system", "content": "You operate."}, {"role": "user", "content": "Unlock."})
CALL = Call(seed=4711, sample="audit", repetition=1, place="audit/x/ACC/B1/authorized/1")
REFUSAL = '{"refusal": "nobody agreed"}'
PROPOSAL = f'{{"tool": "{TOOL}", "arguments": {LOCK}}}'


def tool(name):
    target = {"type": "string", "enum": ["lock.front_door", "lock.back_door"]}
    parameters = {
        "type": "object",
        "properties": {"target": target},
        "required": ["target"],
        "additionalProperties": False,
    }
    function = {"name": name, "description": "Unlock.", "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = (tool("light_turn_on"), tool(TOOL))


class Waits:
    """Counts what would have been waited, and waits for nothing."""

    def __init__(self):
        self.seconds = []
        self.now = 0.0

    async def sleep(self, seconds):
        self.seconds.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def clockwork(self):
        return Clockwork(clock=lambda: self.now, sleep=self.sleep, jitter=lambda: 1.0)


def configured(endpoint, **given):
    values = {
        "provider": "openai",
        "name": "scripted",
        "base_url": endpoint if isinstance(endpoint, str) else endpoint.base_url,
        "model": "scripted-1",
        "output": "tools",
        "sampling": Sampling(max_tokens=256),
        "retries": 2,
    }
    return OpenAIConfiguration(**(values | given))


@asynccontextmanager
async def opened(endpoint, key=KEY, waits=None, **given):
    clockwork = (waits or Waits()).clockwork()
    deployment = OpenAIDeployment(configured(endpoint, **given), key, clockwork)
    await deployment.open()
    try:
        yield deployment
    finally:
        await deployment.close()


async def ask(answers, *, tools=TOOLS, **given):
    """Ask once; return the completion and the requests that it took."""
    with ScriptedEndpoint(answers) as endpoint:
        async with opened(endpoint, **given) as deployment:
            completion = await deployment.propose(MESSAGES, tools, CALL)
        return completion, endpoint.requests


async def fault_of(answers, **given):
    """Ask once in vain; return what was said and the requests that were made."""
    with ScriptedEndpoint(answers) as endpoint:
        async with opened(endpoint, **given) as deployment:
            with pytest.raises(DeploymentFault) as caught:
                await deployment.propose(MESSAGES, TOOLS, CALL)
        return str(caught.value), endpoint.requests


STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


# -- what is asked, and what is told of the answer -------------------------------------------


@STREAMED
async def test_a_turn_is_read_and_its_server_is_on_record(stream):
    turn = Turn(REFUSAL, message={"reasoning_content": "Nobody is at home."})
    completion, requests = await ask(always(turn), output="json_schema", stream=stream)
    assert parse(completion.answer) == Refusal("nobody agreed")
    assert completion.answer.text == REFUSAL
    served = completion.served
    assert (served.model, served.fingerprint) == ("scripted-1", "fp_scripted")
    assert (served.prompt_tokens, served.completion_tokens, served.tries) == (100, 20, 1)
    assert served.reasoning == "Nobody is at home."
    body = requests[0].body
    assert body["seed"] == 4711
    assert body["temperature"] == 0
    assert [message["content"] for message in body["messages"]] == ["You operate.", "Unlock."]
    assert requests[0].path == "/v1/chat/completions"


async def test_the_place_of_a_call_is_never_sent():
    _, requests = await ask(always(Turn(REFUSAL)), output="json")
    assert "authorized" not in str(requests[0].body)
    assert "response_format" not in requests[0].body
    assert "tools" not in requests[0].body


async def test_extra_fields_are_sent_and_a_seed_only_where_it_is_wanted():
    configuration = {"extra_body": {"top_k": 1}, "sampling": Sampling(seed=False, max_tokens=9)}
    _, requests = await ask(
        always(Turn(REFUSAL)), output="json", limit_field="max_completion_tokens", **configuration
    )
    body = requests[0].body
    assert body["top_k"] == 1
    assert "seed" not in body
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body


async def test_nothing_of_the_surroundings_is_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-surroundings")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Surroundings: yes")
    monkeypatch.setenv("OPENAI_API_KEY", "surroundings-key")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    _, requests = await ask(always(Turn(REFUSAL)), output="json", key=None)
    assert "surroundings" not in str(requests[0].headers).lower()
    assert "authorization" not in requests[0].headers


async def test_the_key_is_sent_to_the_endpoint_and_nowhere_else():
    _, requests = await ask(always(Turn(REFUSAL)), output="json")
    assert requests[0].headers["authorization"] == f"Bearer {KEY}"


# -- completed answers are taken as they are, once --------------------------------------------


@STREAMED
@pytest.mark.parametrize("name", BAD_ARGUMENTS)
async def test_bad_arguments_are_kept_and_never_repaired(name, stream):
    completion, requests = await ask(always(BAD_ARGUMENTS[name]), stream=stream)
    parsed = parse(completion.answer)
    usable = name == "wrapped once more"
    assert isinstance(parsed, Invalid) or usable
    if usable:
        # Its shape is the sink's to refuse: the argument is no scalar of the contract.
        assert parsed == Invalid("nested_argument", "parameters")
    assert len(requests) == 1


@STREAMED
@pytest.mark.parametrize("name", CUT_ANSWERS)
async def test_a_cut_answer_is_an_invalid_turn_and_nobody_asks_again(name, stream):
    completion, requests = await ask(always(CUT_ANSWERS[name]), stream=stream)
    assert isinstance(parse(completion.answer), Invalid)
    assert len(requests) == 1


@pytest.mark.parametrize("name", BAD_STREAMS)
async def test_a_stream_that_breaks_the_protocol_is_refused_whole(name):
    completion, requests = await ask(always(BAD_STREAMS[name]), stream=True)
    assert isinstance(parse(completion.answer), Invalid)
    assert len(requests) == 1


@STREAMED
async def test_broken_bytes_within_a_text_are_an_invalid_turn(stream):
    reply = Turn("caf@").reply(streamed=stream)
    pieces = tuple(piece.replace(b"@", b"\xe9") for piece in reply.pieces)
    completion, requests = await ask(
        always(dataclasses.replace(reply, pieces=pieces)), output="json", stream=stream
    )
    assert isinstance(parse(completion.answer), Invalid)
    assert "UTF-8" in (completion.answer.finish_reason or "")
    assert len(requests) == 1


async def test_a_completion_under_a_careless_content_type_is_a_completion():
    reply = dataclasses.replace(Turn(REFUSAL).reply(streamed=False), kind="text/plain")
    completion, _ = await ask(always(reply), output="json")
    assert parse(completion.answer) == Refusal("nobody agreed")


async def test_a_refused_turn_keeps_what_came():
    completion, _ = await ask(always(BAD_ARGUMENTS["an object in place of text"]))
    assert '"lock.front_door"' in (completion.answer.text or "")
    assert completion.answer.tool_calls == ()


async def test_fragments_comments_and_line_ends_give_one_call():
    completion, _ = await ask(always(GOOD_STREAM), stream=True)
    assert parse(completion.answer) == Proposal(TOOL, {"target": "lock.front_door"})


@STREAMED
async def test_two_calls_are_refused_together(stream):
    completion, _ = await ask(always(TWO_CALLS), stream=stream)
    assert parse(completion.answer) == Invalid("two_calls", "2 calls in one turn")


TURNS = {
    **BAD_ARGUMENTS,
    **CUT_ANSWERS,
    "two calls": TWO_CALLS,
    "a proposal": called(LOCK),
    "a proposal as text": Turn(PROPOSAL),
    "a refusal": Turn("I will not do that."),
    "the model's own refusal": Turn(None, message={"refusal": "I will not do that."}),
    "a text beside a call": Turn("Unlocking.", [("c1", TOOL, LOCK)], finish="tool_calls"),
    "a call without a name": called(LOCK, name=""),
    "an unknown tool": called(LOCK, name="lock.unlock"),
    "content that is a list": Turn(None, message={"content": [{"text": "a"}]}),
    "content that is a number": Turn(None, message={"content": 5}),
    "letters of many lands": Turn("Zo\u00eb sagt n\u00e4h \u2603 \U0001f512"),
}


@pytest.mark.parametrize("output", ["tools", "json"])
@pytest.mark.parametrize("name", TURNS)
async def test_streamed_and_whole_turns_are_read_alike(name, output):
    whole, _ = await ask(always(TURNS[name]), output=output)
    streamed, _ = await ask(always(TURNS[name]), output=output, stream=True)
    assert parse(whole.answer) == parse(streamed.answer)
    if not (whole.answer.finish_reason or "").startswith("stream_fault"):
        assert whole.answer == streamed.answer
    same = ("model", "fingerprint", "prompt_tokens", "completion_tokens", "reasoning")
    assert [getattr(whole.served, key) for key in same] == [
        getattr(streamed.served, key) for key in same
    ]


@STREAMED
async def test_objects_are_read_where_the_configuration_declares_them(stream):
    turn = called({"target": "lock.front_door"})
    completion, _ = await ask(always(turn), stream=stream, tool_arguments="object")
    assert parse(completion.answer) == Proposal(TOOL, {"target": "lock.front_door"})


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        (b"21.0000000000000001", "number_not_exact"),
        (b"9007199254740993", "number_not_exact"),
        (b"1e400", "number_out_of_range"),
        (b"NaN", "not_finite"),
        (b"-0", "negative_zero"),
    ],
)
async def test_numbers_in_objects_are_read_as_they_were_written(written, rule):
    turn = called({"target": "a.b", "level": 12345}).reply(streamed=False)
    reply = Reply((turn.pieces[0].replace(b"12345", written),))
    completion, _ = await ask(always(reply), tool_arguments="object")
    assert isinstance(parse(completion.answer), Invalid)
    assert parse(completion.answer).rule == rule


async def test_a_repeated_key_in_an_object_refuses_the_turn():
    turn = called({"target": "light.porch", "other": "lock.front_door"}).reply(streamed=False)
    reply = Reply((turn.pieces[0].replace(b'"other"', b'"target"'),))
    completion, requests = await ask(always(reply), tool_arguments="object")
    assert isinstance(parse(completion.answer), Invalid)
    assert len(requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_whichever_form_the_server_chose_is_read(stream):
    reply = Turn(REFUSAL).reply(streamed=not stream)
    completion, _ = await ask(always(reply), output="json", stream=stream)
    assert parse(completion.answer) == Refusal("nobody agreed")


async def test_a_finished_answer_is_complete_although_its_connection_broke():
    turn = Turn(REFUSAL)
    count = len(list(turn.chunks()))
    completion, requests = await ask(always(cut_stream(turn, count)), output="json", stream=True)
    assert parse(completion.answer) == Refusal("nobody agreed")
    assert len(requests) == 1


async def test_a_server_that_does_not_hang_up_is_not_waited_for():
    pieces = (*Turn(REFUSAL).reply(streamed=True).pieces, 30.0)
    completion, _ = await ask(
        always(Reply(pieces, kind="text/event-stream")), output="json", stream=True
    )
    assert parse(completion.answer) == Refusal("nobody agreed")


# -- tool names -------------------------------------------------------------------------------


async def test_names_are_sent_as_endpoints_take_them_and_come_back_as_offered():
    tools = (tool("lock.unlock"), tool("light_turn_on"))
    completion, requests = await ask(always(called(LOCK)), tools=tools)
    sent = [item["function"]["name"] for item in requests[0].body["tools"]]
    assert sent == ["lock_unlock", "light_turn_on"]
    assert parse(completion.answer) == Proposal("lock.unlock", {"target": "lock.front_door"})


async def test_a_name_that_was_not_sent_is_not_taken_for_one_that_was():
    tools = (tool("lock.unlock"), tool("light_turn_on"))
    completion, _ = await ask(always(called(LOCK, name="lock.unlock")), tools=tools)
    assert isinstance(parse(completion.answer), Invalid)


@pytest.mark.parametrize("name", ["Lock_Unlock", "lock_unlock ", "functions.lock_unlock", "x"])
async def test_no_near_name_is_put_right(name):
    completion, _ = await ask(always(called(LOCK, name=name)))
    assert parse(completion.answer) == Proposal(name, {"target": "lock.front_door"})


async def test_tools_that_would_share_a_name_are_not_sent():
    with ScriptedEndpoint(always(called(LOCK))) as endpoint:
        async with opened(endpoint) as deployment:
            with pytest.raises(DeploymentFault, match="a_b_c"):
                await deployment.propose(MESSAGES, (tool("a.b_c"), tool("a_b.c")), CALL)
        assert endpoint.requests == []


# -- tries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
async def test_a_status_that_says_later_is_tried_again(status):
    waits = Waits()
    completion, requests = await ask(
        in_order(failure(status), failure(status), Turn(REFUSAL)), output="json", waits=waits
    )
    assert parse(completion.answer) == Refusal("nobody agreed")
    assert completion.served.tries == len(requests) == 3
    assert waits.seconds == [0.5, 1.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422, 421])
async def test_a_status_that_says_no_is_not(status):
    said, requests = await fault_of(always(failure(status, "no such model: scripted-1")))
    assert len(requests) == 1
    assert str(status) in said
    assert "no such model: scripted-1" in said


async def test_money_that_ran_out_is_not_waited_for():
    answer = failure(429, "You exceeded your quota", code="insufficient_quota")
    said, requests = await fault_of(always(answer))
    assert len(requests) == 1
    assert "quota" in said


@STREAMED
@pytest.mark.parametrize("name", RUBBISH)
async def test_rubbish_is_no_answer_and_tries_are_bounded(name, stream):
    said, requests = await fault_of(always(RUBBISH[name]), stream=stream)
    assert len(requests) == 3
    assert "3 tries" in said
    completion, _ = await ask(in_order(RUBBISH[name], called(LOCK)), stream=stream)
    assert isinstance(parse(completion.answer), Proposal)


@pytest.mark.parametrize("events", [0, 1, 3])
async def test_a_stream_that_was_cut_is_tried_again(events):
    completion, requests = await ask(
        in_order(cut_stream(Turn(REFUSAL), events), Turn(REFUSAL)), output="json", stream=True
    )
    assert parse(completion.answer) == Refusal("nobody agreed")
    assert len(requests) == 2


async def test_a_whole_answer_that_was_cut_is_tried_again():
    whole = Turn(REFUSAL).reply(streamed=False).pieces[0]
    cut = Reply((whole[:40],), cut=True)
    completion, requests = await ask(in_order(cut, Turn(REFUSAL)), output="json")
    assert parse(completion.answer) == Refusal("nobody agreed")
    assert len(requests) == 2


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ([("Retry-After", "7")], 7.0),
        ([("Retry-After", "0")], 0.0),
        (
            [
                ("Date", "Mon, 30 Nov 2026 10:00:00 GMT"),
                ("Retry-After", "Mon, 30 Nov 2026 10:00:09 GMT"),
            ],
            9.0,
        ),
        ([("Retry-After", "soon")], 0.5),
        ([("Retry-After", "-3")], 0.5),
    ],
)
async def test_a_server_is_given_the_time_it_asks_for(headers, waited):
    waits = Waits()
    answers = in_order(failure(429, "slower", *headers), Turn(REFUSAL))
    await ask(answers, output="json", waits=waits)
    assert sum(waits.seconds) == pytest.approx(waited)


async def test_a_server_that_asks_for_an_hour_is_left_alone():
    waits = Waits()
    said, requests = await fault_of(
        always(failure(429, "slower", ("Retry-After", "3600"))), waits=waits
    )
    assert waits.seconds == []
    assert len(requests) == 1
    assert "3600 s" in said
    assert "again later" in said


async def test_nobody_listening_is_said_in_words():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        async with opened(url) as deployment:
            with pytest.raises(DeploymentFault, match="no connection"):
                await deployment.propose(MESSAGES, TOOLS, CALL)


async def test_a_dead_endpoint_soon_costs_one_try_a_call():
    with ScriptedEndpoint(always(failure(503))) as endpoint:
        async with opened(endpoint) as deployment:
            for _ in range(5):
                with pytest.raises(DeploymentFault):
                    await deployment.propose(MESSAGES, TOOLS, CALL)
        assert len(endpoint.requests) == 3 * 3 + 2


@STREAMED
async def test_an_answer_that_takes_too_long_is_given_up(stream):
    body = Turn(REFUSAL).reply(streamed=stream)
    trickle = Reply(
        tuple(part for piece in body.pieces for part in (0.05, piece[:10])), kind=body.kind
    )
    silent = Reply((30.0,), kind=body.kind)
    for slow in (dataclasses.replace(trickle, pieces=trickle.pieces * 9), silent):
        said, _ = await fault_of(
            always(slow),
            output="json",
            stream=stream,
            retries=1,
            timeouts=Timeouts.model_construct(connect="1", answer="0.2"),
        )
        assert "0.2 s" in said
        assert "2 tries" in said


async def test_an_endless_body_is_read_to_a_bound():
    filler = b'{"choices": "' + b"a" * 1_000_000
    for status in (200, 500):
        said, requests = await fault_of(always(Reply((filler,) * 12, status=status)))
        assert "larger than" in said
        assert len(requests) == 1


async def test_a_compressed_answer_nobody_asked_for_is_not_unfolded():
    reply = Reply((b"\x1f\x8b\x08",), headers=(("content-encoding", "gzip"),))
    said, _ = await fault_of(always(reply))
    assert "compressed" in said


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_redirect_is_followed(status):
    with ScriptedEndpoint(always(Turn(REFUSAL))) as elsewhere:
        target = ("Location", f"{elsewhere.base_url}/chat/completions")
        said, _ = await fault_of(always(failure(status, "moved", target)))
        assert elsewhere.requests == []
    assert "base_url" in said
    assert elsewhere.base_url in said


async def test_a_changed_model_is_on_record():
    with ScriptedEndpoint(in_order(Turn(REFUSAL), Turn(REFUSAL, model="scripted-2"))) as endpoint:
        async with opened(endpoint, output="json") as deployment:
            served = [
                (await deployment.propose(MESSAGES, TOOLS, CALL)).served.model for _ in range(2)
            ]
    assert served == ["scripted-1", "scripted-2"]


# -- many calls, and calls that are given up --------------------------------------------------


async def test_no_more_calls_are_under_way_than_declared():
    with ScriptedEndpoint(always(Turn(REFUSAL)), latency=0.02) as endpoint:
        async with opened(endpoint, output="json", concurrency=3) as deployment:
            await asyncio.gather(*(deployment.propose(MESSAGES, TOOLS, CALL) for _ in range(12)))
        assert endpoint.most_at_once == 3
        assert deployment.concurrency == 3


async def test_a_cancelled_call_leaves_no_task_and_no_connection():
    before = asyncio.all_tasks()
    with ScriptedEndpoint(always(Turn(REFUSAL)), latency=30.0) as endpoint:
        async with opened(endpoint, output="json") as deployment:
            asking = asyncio.create_task(deployment.propose(MESSAGES, TOOLS, CALL))
            while not endpoint.requests:
                await asyncio.sleep(0.01)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            while endpoint.connections:
                await asyncio.sleep(0.01)
            assert asyncio.all_tasks() == before
            # Its place is free again.
            again = asyncio.create_task(deployment.propose(MESSAGES, TOOLS, CALL))
            while len(endpoint.requests) < 2:
                await asyncio.sleep(0.01)
            again.cancel()
            await asyncio.gather(again, return_exceptions=True)


async def test_a_closed_deployment_leaves_no_connection():
    with ScriptedEndpoint(always(Turn(REFUSAL))) as endpoint:
        async with opened(endpoint, output="json") as deployment:
            await deployment.propose(MESSAGES, TOOLS, CALL)
            assert endpoint.connections == 1
        while endpoint.connections:
            await asyncio.sleep(0.01)


async def test_a_deployment_that_was_not_opened_says_so():
    deployment = OpenAIDeployment(configured("http://127.0.0.1:9/v1"), None)
    with pytest.raises(DeploymentFault, match="not opened"):
        await deployment.propose(MESSAGES, TOOLS, CALL)


# -- the key ----------------------------------------------------------------------------------

ECHO = f"Incorrect key: {KEY} (Authorization: Bearer {KEY})"
LEAKY = {
    "an error that quotes it": failure(401, ECHO),
    "an error to try again": failure(500, ECHO),
    "a page": Reply((ECHO.encode(),), kind="text/html"),
    "a redirect": failure(302, ECHO, ("Location", f"http://elsewhere.example/?key={KEY}")),
    "an answer": Turn(f'{{"refusal": "{KEY}"}}'),
    "a tool call": called(f'{{"target": "{KEY}"}}'),
    "the reasoning": Turn(REFUSAL, message={"reasoning": ECHO}),
    "the model id": Turn(REFUSAL, model=KEY),
    "an error within a stream": Reply(
        (event({"error": {"message": ECHO}}),), kind="text/event-stream"
    ),
    "a cut answer": Reply((ECHO.encode(),), cut=True),
    "an encoding": Reply((b"a",), headers=(("content-encoding", KEY),)),
}


@STREAMED
@pytest.mark.parametrize("name", LEAKY)
async def test_the_key_never_comes_back(name, stream, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with ScriptedEndpoint(always(LEAKY[name])) as endpoint:
        async with opened(endpoint, stream=stream) as deployment:
            with pytest.raises(DeploymentFault) as caught:
                await deployment.propose(MESSAGES, TOOLS, CALL)
            told = [str(caught.value), repr(caught.value), repr(deployment), repr(vars(deployment))]
    told += traceback.format_exception(caught.value)
    error = caught.value
    while (error := error.__context__) is not None:
        told.append(repr(error) + repr(vars(error)))
    told += [record.getMessage() + repr(vars(record)) for record in caplog.records]
    told += list(capfd.readouterr())
    assert [text for text in told if KEY in text] == []
