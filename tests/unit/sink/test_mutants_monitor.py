"""What a changed monitor would get wrong unnoticed: every field of reply and record."""

from __future__ import annotations

import pytest

from sink.ports import ActStatus
from sink.record import digest, parse_line
from tests import houses
from tests.unit.sink.fake_world import ATTEMPT, CONTRACT_DIGEST, EPISODE, Door

OTHER = "f" * 32
TRUE = dict.fromkeys(("authority", "neighbour", "adults", "window", "outdoor", "gateway"), True)


@pytest.fixture
async def door(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    yield door
    door.record.close()


def on_disk(door):
    return [parse_line(line) for line in door.path.read_bytes().splitlines()]


def entry(door, number, **fields):
    """The body of a decision in full; the frozen snapshot is the one that was asked about."""
    message = door.message()
    return {
        "kind": "decision",
        "attempt": ATTEMPT,
        "nonce": f"nonce-{number}",
        "episode": EPISODE,
        "contract": CONTRACT_DIGEST,
        "snapshot": message["snapshot"],
        "frozen_snapshot": message["snapshot"],
        "answer": digest(message["answer"].encode()),
        "binding": "canonical",
        "at": houses.NOW,
        "basis": "",
        "reason": "",
        "detail": "",
        "parameter": "",
        "predicates": TRUE,
        **fields,
    }


def reply(entry, act=None, **fields):
    """The reply that says what an entry says, and where it stands."""
    kept = ("decision", "basis", "reason", "detail", "parameter", "predicates")
    body = entry.body
    record = {"nonce": body["nonce"], "seq": entry.seq, "hash": entry.hash}
    return {**{key: body[key] for key in kept}, "act": act, "record": record, **fields}


async def test_an_allow_in_full(door):
    answered = await door.ask()
    intent, outcome = on_disk(door)
    assert intent.body == entry(
        door,
        1,
        decision="allow",
        basis="authority",
        grants=["boost"],
        action={
            "service": "climate.set",
            "target": "climate.den",
            "parameters": {"temperature": "#26.5"},
        },
    )
    assert outcome.body == {
        "kind": "outcome",
        "attempt": ATTEMPT,
        "nonce": "nonce-1",
        "act": "done",
        "detail": "",
        "at": houses.NOW,
    }
    assert answered == reply(intent, {"status": "done", "detail": "", "seq": 2})


async def test_a_denial_by_a_predicate_in_full(door):
    door.world.freeze(ATTEMPT, ("/grants", {}))
    answered = await door.ask()
    [denied] = on_disk(door)
    assert denied.body == entry(
        door,
        1,
        decision="deny",
        reason="grant_absent",
        detail="no such grant",
        predicates={**TRUE, "authority": False},
    )
    assert answered == reply(denied)


async def test_a_replay_in_full(door):
    await door.ask()
    answered = await door.ask()
    *_, denied = on_disk(door)
    assert denied.body == entry(door, 2, decision="deny", reason="grant_replayed")
    assert answered == reply(denied)


async def test_an_unknown_attempt_in_full(door):
    answered = await door.ask(attempt=OTHER)
    [denied] = on_disk(door)
    assert denied.body == entry(
        door,
        1,
        attempt=OTHER,
        decision="deny",
        reason="episode_mismatch",
        detail="no such attempt",
        snapshot=digest(b""),
        frozen_snapshot="",
        predicates={},
    )
    assert answered == reply(denied)


async def test_an_internal_error_in_full(door):
    door.world.broken, door.world.fault = "frozen", RuntimeError("lost")
    answered = await door.ask()
    [denied] = on_disk(door)
    assert denied.body == entry(
        door,
        1,
        decision="deny",
        reason="internal_error",
        detail="RuntimeError: lost",
        frozen_snapshot="",
        predicates={},
    )
    assert answered == reply(denied)


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"attempt": "x"}, "message"),
        ({"contract": digest(b"another")}, "contract"),
        ({"snapshot": digest(b"another")}, ""),
        ({"episode": digest(b"another")}, ""),
        ({"answer": "{"}, "not_json"),
        ({"answer": houses.text_answer('{"refusal":"no"}')}, "refusal"),
        ({"answer": houses.answer({}, tool="fan_on")}, "fan_on"),
        ({"answer": houses.answer({}, tool="f" * 300)}, "f" * 200),
        ({"answer": houses.answer({"target": "t" * 300})}, "t" * 200),
        ({"answer": houses.answer({})}, "None"),
        ({"answer": houses.answer({"target": "climate.den"})}, "schema"),
        ({"answer": houses.answer({"target": "climate.den", "temperature": 30})}, "canonical"),
    ],
)
async def test_a_denial_says_what_did_not_fit(door, changes, detail):
    answered = await door.ask(**changes)
    assert answered["decision"] == "deny"
    assert detail in answered["detail"]
    assert len(answered["detail"]) <= 200
    assert bool(answered["detail"]) is bool(detail)


@pytest.mark.parametrize(
    ("status", "detail"), [(ActStatus.REFUSED, "busy"), (ActStatus.DONE, "revision")]
)
async def test_only_a_refusal_as_stale_turns_the_reply(door, status, detail):
    door.world.status, door.world.detail = status, detail
    answered = await door.ask()
    intent, outcome = on_disk(door)
    assert outcome.body["detail"] == detail
    assert answered == reply(intent, {"status": status, "detail": detail, "seq": 2})


async def test_a_refusal_as_stale_is_a_denial_without_a_basis(door):
    door.world.status, door.world.detail = ActStatus.REFUSED, "revision"
    answered = await door.ask()
    intent, _ = on_disk(door)
    assert answered == reply(
        intent,
        {"status": "refused", "detail": "revision", "seq": 2},
        decision="deny",
        reason="snapshot_mismatch",
        basis="",
    )


async def test_what_broke_the_act_is_on_record(door):
    door.world.broken, door.world.fault = "act", OSError("gone")
    answered = await door.ask()
    assert answered["act"] == {"status": "in_doubt", "detail": "OSError", "seq": 2}
    assert on_disk(door)[1].body["detail"] == "OSError"


async def test_an_unrecorded_outcome_has_no_place_in_the_record(door):
    door.record.refuse_from = 2
    act = (await door.ask())["act"]
    assert (act["status"], act["seq"]) == ("in_doubt", 0)
    assert "not on record" in act["detail"]


async def test_after_a_restart_only_what_was_allowed_is_spent(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    denied = await door.ask(answer=houses.answer({}, tool="fan_on"))
    assert denied["decision"] == "deny"
    door.record.close()
    restarted = await Door(tmp_path, world=door.world).start()
    assert (await restarted.ask())["decision"] == "allow"
    restarted.record.close()


async def test_a_recovery_is_dated(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    await door.ask()
    door.record.close()
    door.path.write_bytes(door.path.read_bytes()[:-40])
    restarted = await Door(tmp_path, world=door.world).start()
    recovery = on_disk(restarted)[-1].body
    assert (recovery["kind"], recovery["at"]) == ("recovery", houses.NOW)
    restarted.record.close()
