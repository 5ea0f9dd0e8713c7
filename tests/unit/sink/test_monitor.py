"""The monitor: recorded before sent, sent once, denied whenever anything is not as it should be."""

from __future__ import annotations

import asyncio
import json

import pytest

from sink.decision import Binding
from sink.ports import ActStatus
from sink.record import ChainState, check_chain, digest, parse_line
from sink.record_file import RecordError
from tests import houses
from tests.unit.sink.fake_world import ATTEMPT, Door, FakeWorld

OTHER = "f" * 32


@pytest.fixture
async def door(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    yield door
    door.record.close()


def on_disk(door):
    return [parse_line(line).body for line in door.path.read_bytes().splitlines()]


async def test_the_intent_is_durable_before_the_act_and_the_outcome_after(door):
    reply = await door.ask()
    assert (reply["decision"], reply["basis"]) == ("allow", "authority")
    assert [item[:2] for item in door.log] == [
        ("record", "decision"),
        ("act", ATTEMPT),
        ("record", "outcome"),
    ]
    assert reply["act"] == {"status": "done", "detail": "", "seq": 2}
    intent, outcome = on_disk(door)
    assert intent["decision"] == "allow"
    assert intent["nonce"] == outcome["nonce"] == reply["record"]["nonce"]
    assert intent["grants"] == ["boost"]
    assert intent["answer"] == digest(door.message()["answer"].encode())
    assert intent["action"]["parameters"] == {"temperature": "#26.5"}
    assert all(intent["predicates"].values())


async def test_what_is_sent_is_the_contracts_action_at_the_frozen_revision(door):
    answer = houses.answer({"temperature": 26.5, "minutes": 60, "target": "climate.den"})
    await door.ask(answer=answer)
    [(_, attempt, action, revision)] = door.world.sent
    assert (attempt, revision) == (ATTEMPT, 1)
    assert dict(action.parameters) == {
        "temperature": houses.contract().action.canonical["temperature"]
    }


async def test_a_deny_is_recorded_and_sends_nothing(door):
    door.world.freeze(ATTEMPT, ("/facts/window/value", "open"))
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "state_unmet")
    assert reply["act"] is None
    assert door.world.sent == []
    [entry] = on_disk(door)
    assert entry["reason"] == "state_unmet"
    assert entry["predicates"]["window"] is False
    assert reply["record"]["seq"] == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"contract": digest(b"another")}, "snapshot_mismatch"),
        ({"episode": digest(b"another")}, "episode_mismatch"),
        ({"snapshot": digest(b"another")}, "snapshot_mismatch"),
        ({"attempt": OTHER}, "episode_mismatch"),
        ({"answer": "{}"}, "malformed_proposal"),
        ({"answer": ""}, "malformed_proposal"),
        ({"answer": "\ud800"}, "malformed_proposal"),
        ({"answer": houses.text_answer('{"refusal":"no"}')}, "malformed_proposal"),
        ({"answer": houses.answer({"target": "climate.den"})}, "parameter_mismatch"),
        ({"answer": houses.answer({}, tool="fan_on")}, "unknown_service"),
        ({"answer": houses.answer({"target": "climate.hall"})}, "noncanonical_target"),
    ],
)
async def test_each_mismatch_is_denied_with_its_reason_on_record(door, changes, reason):
    reply = await door.ask(**changes)
    assert (reply["decision"], reply["reason"]) == ("deny", reason)
    assert door.world.sent == []
    assert [entry["reason"] for entry in on_disk(door)] == [reason]


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": "x"},
        {"attempt": ATTEMPT.upper()},
        {"attempt": ATTEMPT + "\n"},
        {"attempt": None},
        {"answer": None},
        {"answer": {"tool": "climate_set"}},
        {"contract": 7},
        {"episode": "\ud800"},
        {"episode": "e" * 10_000},
        {"snapshot": ""},
        {"snapshot": ["x"]},
    ],
)
async def test_a_message_of_another_form_is_denied(door, changes):
    reply = await door.ask(**changes)
    assert (reply["decision"], reply["reason"]) == ("deny", "malformed_proposal")
    assert door.world.sent == []


async def test_a_message_brings_no_mode_no_fact_and_no_contract(door):
    door.world.freeze(ATTEMPT, ("/grants", {}))
    reply = await door.ask(
        binding="exact",
        mode="off",
        predicates={"authority": True},
        grants={"boost": {"status": "active"}},
        decision="allow",
    )
    assert (reply["decision"], reply["reason"]) == ("deny", "grant_absent")


async def test_frozen_bytes_must_have_the_digest_that_the_world_says(door):
    frozen = door.world.episodes[ATTEMPT]
    other = frozen.snapshot.replace(b'"closed"', b'"locked"')
    door.world.episodes[ATTEMPT] = type(frozen)(
        other, frozen.snapshot_digest, frozen.episode, frozen.contract_digest, 1
    )
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "snapshot_mismatch")


async def test_another_bundles_episode_is_refused(door):
    door.world.freeze(ATTEMPT, contract=digest(b"another bundle"))
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "snapshot_mismatch")


async def test_the_exact_door_binds_what_was_sent(tmp_path):
    door = await Door(tmp_path, Binding.EXACT).start()
    door.world.freeze()
    stated = houses.answer({"target": "climate.den", "temperature": 26.5, "minutes": 60})
    reply = await door.ask(answer=stated)
    assert (reply["reason"], reply["parameter"]) == ("parameter_mismatch", "minutes")
    assert on_disk(door)[0]["binding"] == "exact"
    door.record.close()


FAULTS = [RuntimeError("x"), KeyError("x"), OSError("x"), ValueError("\ud800"), MemoryError("x")]


def raising(error):
    def step(*_):
        raise error

    return step


@pytest.mark.parametrize("fault", [*FAULTS, ConnectionError("gone")])
async def test_a_world_that_cannot_be_read_denies(door, fault):
    door.world.broken, door.world.fault = "frozen", fault
    reply = await door.ask()
    assert reply["decision"] == "deny"
    assert reply["reason"] in {"internal_error", "episode_mismatch"}
    assert door.world.sent == []
    assert [entry["decision"] for entry in on_disk(door)] == ["deny"]


async def test_a_silent_world_denies_within_the_deadline(tmp_path):
    door = await Door(tmp_path, deadline_seconds=0.01).start()
    door.world.freeze()
    door.world.broken, door.world.fault = "frozen", "hang"
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "internal_error")
    assert [entry["reason"] for entry in on_disk(door)] == ["internal_error"]
    door.record.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_reader_that_breaks_denies(tmp_path, fault):
    door = await Door(tmp_path, read_snapshot=raising(fault)).start()
    door.world.freeze()
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "internal_error")
    assert door.world.sent == []
    assert [entry["reason"] for entry in on_disk(door)] == ["internal_error"]
    door.record.close()


@pytest.mark.parametrize("step", ["now", "nonce"])
async def test_without_a_clock_or_a_nonce_nothing_is_sent(tmp_path, step):
    door = await Door(tmp_path, **{step: raising(RuntimeError("x"))}).start()
    door.world.freeze()
    reply = await door.ask()
    assert (reply["decision"], reply["reason"], reply["record"]) == ("deny", "internal_error", None)
    assert door.world.sent == []
    door.record.close()


async def test_a_snapshot_that_is_no_snapshot_denies(door):
    frozen = door.world.episodes[ATTEMPT]
    door.world.episodes[ATTEMPT] = type(frozen)(
        b"{}", digest(b"{}"), frozen.episode, frozen.contract_digest, 1
    )
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "internal_error")
    assert door.world.sent == []


async def test_a_snapshot_that_says_a_thing_twice_denies(door):
    frozen = door.world.episodes[ATTEMPT]
    twice = frozen.snapshot.replace(b'"status":', b'"status": "active", "status":')
    assert twice != frozen.snapshot
    door.world.episodes[ATTEMPT] = type(frozen)(
        twice, digest(twice), frozen.episode, frozen.contract_digest, 1
    )
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "internal_error")
    assert door.world.sent == []


async def test_no_record_no_act(door):
    door.record.refuse_from = 1
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "internal_error")
    assert reply["record"] is None
    assert door.world.sent == []
    assert on_disk(door) == []


async def test_an_outcome_that_cannot_be_recorded_is_in_doubt(door):
    door.record.refuse_from = 2
    reply = await door.ask()
    assert reply["decision"] == "allow"
    assert reply["act"]["status"] == "in_doubt"
    assert len(door.world.sent) == 1
    assert [entry["decision"] for entry in on_disk(door)] == ["allow"]


@pytest.mark.parametrize("fault", [*FAULTS, ConnectionError("gone"), TimeoutError()])
@pytest.mark.parametrize("sent_first", [False, True])
async def test_an_act_that_breaks_is_in_doubt_and_never_sent_again(door, fault, sent_first):
    door.world.broken, door.world.fault, door.world.sent_first = "act", fault, sent_first
    reply = await door.ask()
    assert reply["decision"] == "allow"
    assert reply["act"]["status"] == "in_doubt"
    assert on_disk(door)[1]["act"] == "in_doubt"
    sent = len(door.world.sent)
    door.world.broken = ""
    again = await door.ask()
    assert (again["decision"], again["reason"]) == ("deny", "grant_replayed")
    assert len(door.world.sent) == sent


async def test_a_hanging_act_is_in_doubt_within_the_deadline(tmp_path):
    door = await Door(tmp_path, deadline_seconds=0.01).start()
    door.world.freeze()
    door.world.broken, door.world.fault = "act", "hang"
    reply = await door.ask()
    assert reply["act"]["status"] == "in_doubt"
    assert [entry["kind"] for entry in on_disk(door)] == ["decision", "outcome"]
    door.record.close()


async def test_a_world_that_moved_on_since_the_freeze_denies(door):
    door.world.status, door.world.detail = ActStatus.REFUSED, "revision"
    reply = await door.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "snapshot_mismatch")
    assert reply["act"]["status"] == "refused"
    assert on_disk(door)[1]["act"] == "refused"


async def test_a_second_proposal_of_an_attempt_is_a_replay(door):
    assert (await door.ask())["decision"] == "allow"
    again = await door.ask()
    assert (again["decision"], again["reason"]) == ("deny", "grant_replayed")
    assert all(again["predicates"].values())
    assert len(door.world.sent) == 1


async def test_a_free_band_act_is_spent_too(door):
    mild = houses.answer({"target": "climate.den", "temperature": 20})
    assert (await door.ask(answer=mild))["basis"] == "free_band"
    assert (await door.ask())["reason"] == "grant_replayed"
    assert len(door.world.sent) == 1


async def test_a_denied_attempt_may_propose_again(door):
    hot = houses.answer({"target": "climate.den", "temperature": 30})
    assert (await door.ask(answer=hot))["decision"] == "deny"
    assert (await door.ask())["decision"] == "allow"


async def test_attempts_do_not_spend_each_other(door):
    door.world.freeze(OTHER)
    replies = [await door.ask(), await door.ask(attempt=OTHER)]
    assert [reply["decision"] for reply in replies] == ["allow", "allow"]


@pytest.mark.parametrize("copies", [2, 20])
async def test_of_copies_that_arrive_together_one_is_sent(door, copies):
    replies = await asyncio.gather(*(door.ask() for _ in range(copies)))
    assert sorted(reply["decision"] for reply in replies) == ["allow"] + ["deny"] * (copies - 1)
    assert {reply["reason"] for reply in replies} == {"", "grant_replayed"}
    assert len(door.world.sent) == 1


async def test_a_replay_after_a_restart_is_refused(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    await door.ask()
    door.record.close()
    restarted = await Door(tmp_path, world=door.world).start()
    reply = await restarted.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "grant_replayed")
    assert len(door.world.sent) == 1
    restarted.record.close()


async def test_a_kill_between_intent_and_act_sends_nothing_ever(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    door.world.broken, door.world.fault = "act", "hang"
    task = asyncio.ensure_future(door.ask())
    while not door.path.read_bytes():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    door.record.close()
    restarted = await Door(tmp_path, world=door.world).start()
    door.world.broken = ""
    assert (await restarted.ask())["reason"] == "grant_replayed"
    assert door.world.sent == []
    restarted.record.close()


async def test_a_torn_end_is_recorded_before_anything_is_sent(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    door.world.freeze(OTHER)
    await door.ask()
    door.record.close()
    data = door.path.read_bytes()
    door.path.write_bytes(data[:-40])
    restarted = await Door(tmp_path, world=door.world).start()
    assert on_disk(restarted)[1]["kind"] == "recovery"
    assert (await restarted.ask(attempt=OTHER))["decision"] == "allow"
    assert (await restarted.ask())["reason"] == "grant_replayed"
    report = check_chain(restarted.path.read_bytes(), None)
    assert report.state is ChainState.NOT_ANCHORED
    restarted.record.close()


async def test_a_record_that_was_changed_stops_the_start(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    await door.ask()
    door.record.close()
    data = door.path.read_bytes()
    door.path.write_bytes(data.replace(b'"allow"', b'"deny"'))
    changed = Door(tmp_path, world=FakeWorld())
    with pytest.raises(RecordError):
        await changed.start()
    changed.record.close()


async def test_the_reply_is_json_and_tells_no_grant(door):
    reply = await door.ask()
    assert json.loads(json.dumps(reply)) == reply
    assert not {"grants", "action"} & set(reply)
