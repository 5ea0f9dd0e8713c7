"""A cassette gives back every answer, keeps repetitions apart, and refuses what is damaged."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retire.deployments import EMBEDDED, Call, DeploymentFault, Served
from retire.deployments.cassette import Recorded, ReplayDeployment, pack, unpack
from retire.domain.errors import InputError
from retire.prompts.prompt import request_digest
from sink.proposal import RawAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

MESSAGES = ({"role": "user", "content": "Open the gate."},)
TOOLS = ({"type": "function", "function": {"name": "gate_open"}},)
REQUEST = request_digest(MESSAGES, TOOLS)
IDENTITIES = {"small": {"provider": "local", "weights": "sha256:1"}}


def recorded(text: str, repetition: int = 1, place: str = "audit/x", **more: Any) -> Recorded:
    values: dict[str, Any] = {
        "deployment": "small",
        "request": REQUEST,
        "sample": "audit",
        "repetition": repetition,
        "place": place,
        "answer": RawAnswer(mode="json", text=text, finish_reason="stop"),
        "served": Served(model="m", milliseconds=7),
    }
    return Recorded(**{**values, **more})


def replay(answers: Sequence[Recorded], repetition: int = 1, place: str = "audit/x") -> str | None:
    deployment = ReplayDeployment(unpack(pack(IDENTITIES, answers), "tape"), "small")
    call = Call(5, "audit", repetition, place)
    return asyncio.run(deployment.propose(MESSAGES, TOOLS, call)).answer.text


def test_repetitions_stay_apart() -> None:
    answers = [recorded("one"), recorded("two", 2), recorded("three", 3)]
    assert [replay(answers, number) for number in (1, 2, 3)] == ["one", "two", "three"]


def test_two_cells_that_asked_the_same_get_each_its_own_answer() -> None:
    answers = [recorded("left", place="audit/a"), recorded("right", place="audit/b")]
    assert replay(answers, place="audit/a") == "left"
    assert replay(answers, place="audit/b") == "right"


def test_an_answer_that_is_the_only_one_serves_another_place() -> None:
    assert replay([recorded("same", place="audit/a")], place="audit/c") == "same"


def test_of_different_answers_none_is_chosen_for_another_place() -> None:
    answers = [recorded("left", place="audit/a"), recorded("right", place="audit/b")]
    with pytest.raises(DeploymentFault):
        replay(answers, place="audit/c")


def test_what_was_not_recorded_has_no_answer() -> None:
    with pytest.raises(DeploymentFault, match="repetition 2"):
        replay([recorded("one")], 2)


def test_what_the_server_reported_comes_back() -> None:
    deployment = ReplayDeployment(unpack(pack(IDENTITIES, [recorded("one")]), "tape"), "small")
    told = asyncio.run(deployment.propose(MESSAGES, TOOLS, Call(5, "audit", 1, "audit/x")))
    assert told.served is not None
    assert (told.served.model, told.served.milliseconds) == ("m", 7)


def test_a_replayed_deployment_says_what_was_recorded() -> None:
    deployment = ReplayDeployment(unpack(pack(IDENTITIES, []), "tape"), "small")
    assert deployment.evidence == "replayed"
    assert deployment.identity["recorded"] == IDENTITIES["small"]
    other = ReplayDeployment(unpack(pack(IDENTITIES, [recorded("one")]), "tape"), "small")
    assert other.identity != deployment.identity


def test_a_recording_takes_the_place_of_the_deployment_of_its_name() -> None:
    cassette = unpack(pack({"plain": {"provider": "simulated"}}, []), "tape")
    catalog = EMBEDDED.replaying(cassette)
    assert catalog.named("plain").evidence == "replayed"
    assert catalog.named("eager").evidence == "simulated"


@given(
    st.lists(st.tuples(st.text(), st.integers(1, 4), st.text(min_size=1)), max_size=20),
    st.randoms(use_true_random=False),
)
def test_any_recording_comes_back_whole_and_its_bytes_do_not_depend_on_order(
    given_answers: list[tuple[str, int, str]], random: Any
) -> None:
    by_place = {(number, place): text for text, number, place in given_answers}
    answers = [recorded(text, number, place) for (number, place), text in by_place.items()]
    shuffled = random.sample(answers, len(answers))
    assert pack(IDENTITIES, answers) == pack(IDENTITIES, shuffled)
    for (number, place), text in by_place.items():
        assert replay(answers, number, place) == text


LINES = gzip.decompress(pack(IDENTITIES, [recorded("one")])).decode().splitlines()


def packed(*lines: str) -> bytes:
    return gzip.compress("".join(line + "\n" for line in lines).encode(), mtime=0)


def changed(line: str, **values: Any) -> str:
    return json.dumps({**json.loads(line), **values})


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", ""),
        (b"not gzip", ""),
        (gzip.compress(b"", mtime=0), ""),
        (packed(*LINES)[:-9], ""),
        (packed(*LINES) + b"more", ""),
        (packed(changed(LINES[0], schema="retire.cassette/v9"), LINES[1]), ":1"),
        (packed(LINES[0], "{"), ":2"),
        (packed(LINES[0], changed(LINES[1], repetition="1")), ":2"),
        (packed(LINES[0], changed(LINES[1], label="authorized")), ":2"),
        (packed(LINES[0], changed(LINES[1], deployment="other")), ":2"),
        (packed(LINES[0], LINES[1], changed(LINES[1], answer={"text": "x"})), ":3"),
        (packed(LINES[0], changed(LINES[1], served={"colour": "red"})), ":2"),
        (packed(LINES[0], changed(LINES[1], served={"tries": "many"})), ":2"),
        (packed(LINES[0].replace('"sha256:1"', "1e999"), LINES[1]), ":1"),
    ],
)
def test_a_damaged_cassette_is_refused_with_its_place(data: bytes, line: str) -> None:
    with pytest.raises(InputError) as refused:
        unpack(data, "tape.jsonl.gz")
    assert str(refused.value).startswith(f"tape.jsonl.gz{line}: ")
    assert "Traceback" not in str(refused.value)
