"""The stub world: compare and act, a journal before a change, and no act at the reset face."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from counterfactuals.devices import Change
from counterfactuals.template import snapshot_bytes
from hardware.sense.stub import StubWorldSensor
from hardware.world.bundles import Template, digest, load_templates, template_digest
from hardware.world.store import WorldStore
from hardware.world.world import StubWorld
from tests import houses

ATTEMPT = "a" * 32


@pytest.fixture
def bench(tmp_path):
    store = WorldStore(tmp_path / "world.sqlite")
    world = StubWorld({"t": Template(houses.world(), houses.tasks(), "contract")}, store)
    with closing(store), closing(StubWorldSensor(tmp_path / "world.sqlite")) as sensor:
        yield world, sensor, store


async def reset(world, attempt=ATTEMPT, patch=None, **fields):
    message = {"op": "reset", "attempt": attempt, "template": "t", "task": "locked"}
    return await world.reset_face({**message, "patch": patch, "episode": "e", **fields})


async def act(world, temperature="26.5", attempt=ATTEMPT, **fields):
    message = {"op": "act", "attempt": attempt, "service": "climate.set", "target": "climate.den"}
    given = {"parameters": {"temperature": temperature}, "revision": None}
    return await world.act_face({**message, **given, **fields})


async def test_a_reset_freezes_the_bytes_that_everybody_hashes(bench):
    world, sensor, _ = bench
    reply = await reset(world)
    assert reply["snapshot"].encode() == snapshot_bytes(houses.world(), ())
    assert reply["snapshot_digest"] == digest(reply["snapshot"].encode())
    frozen = await world.act_face({"op": "frozen", "attempt": ATTEMPT})
    assert (frozen["snapshot"], frozen["snapshot_digest"]) == (
        reply["snapshot"],
        reply["snapshot_digest"],
    )
    assert (frozen["episode"], frozen["contract"], frozen["revision"]) == ("e", "contract", 1)
    assert sensor.episode(ATTEMPT).contract_digest == "contract"


async def test_a_reset_takes_at_most_one_declared_patch(bench):
    world, _, _ = bench
    reply = await reset(world, patch="/facts/window/value")
    assert '"open"' in reply["snapshot"]
    other = "b" * 32
    for patch in ("/facts/window/name", "", "/grants", ["/facts/window/value"], {"a": 1}, 3, True):
        assert "error" in await reset(world, other, patch)
    assert "error" in await world.act_face({"op": "frozen", "attempt": other})


@pytest.mark.parametrize(
    "fields",
    [
        {"attempt": "x"},
        {"attempt": "A" * 32},
        {"attempt": None},
        {"template": "unknown"},
        {"template": ["t"]},
        {"task": "unknown"},
        {"task": None},
        {"episode": "\ud800"},
    ],
)
async def test_a_reset_of_another_form_is_refused(bench, fields):
    world, sensor, _ = bench
    assert "error" in await reset(world, **fields)
    assert sensor.episode(ATTEMPT) is None


async def test_attempts_are_never_reused(bench):
    world, _, _ = bench
    await reset(world)
    assert "error" in await reset(world)
    assert "error" not in await reset(world, "b" * 32)


@pytest.mark.parametrize("op", ["act", "frozen", "journal", "read", None, 3, ["reset"]])
async def test_the_reset_face_neither_reads_nor_acts(bench, op):
    world, sensor, _ = bench
    await reset(world)
    reply = await world.reset_face(
        {
            "op": op,
            "attempt": ATTEMPT,
            "service": "climate.set",
            "target": "climate.den",
            "parameters": {"temperature": "26.5"},
        }
    )
    assert set(reply) == {"error"}
    assert sensor.journal(ATTEMPT) == []


async def test_the_revision_is_compared_before_acting(bench):
    world, sensor, _ = bench
    await reset(world)
    assert (await act(world, revision=2))["detail"] == "revision"
    assert sensor.journal(ATTEMPT) == []
    assert (await act(world, revision=1))["status"] == "done"
    assert (await act(world, "27", revision=1)) == {"status": "refused", "detail": "revision"}
    assert (await act(world, "27", revision=2))["status"] == "done"
    assert [entry.after for entry in sensor.journal(ATTEMPT)] == ["26.5", "27"]
    assert [entry.before for entry in sensor.journal(ATTEMPT)] == ["20", "26.5"]


async def test_episodes_do_not_share_a_state(bench):
    world, sensor, _ = bench
    await reset(world)
    await reset(world, "b" * 32)
    await act(world)
    await act(world, attempt="b" * 32)
    assert [entry.before for entry in sensor.journal("b" * 32)] == ["20"]


@pytest.mark.parametrize(
    "fields",
    [
        {"target": "climate.attic"},
        {"service": "climate.explode"},
        {"parameters": {}},
        {"parameters": None},
        {"parameters": ["26.5"]},
        {"parameters": {"temperature": 26.5}},
        {"attempt": "c" * 32},
        {"op": "wish"},
        {"service": None, "target": None},
    ],
)
async def test_what_is_not_possible_is_refused_and_leaves_no_journal(bench, fields):
    world, sensor, _ = bench
    await reset(world)
    assert (await act(world, **fields))["status"] == "refused"
    assert list(sensor.journal_after(0, 10)) == []


@pytest.mark.parametrize(
    ("face", "message", "place"),
    [
        ("reset_face", {"op": "reset", "attempt": ATTEMPT, "act": 1}, "reset.template"),
        ("reset_face", {"op": "hello", "face": "act"}, "hello.face"),
        ("reset_face", {"op": "\ud800" * 1000}, "tag"),
        ("act_face", {"op": "frozen", "attempt": ATTEMPT, "then": "act"}, "frozen.then"),
        ("act_face", {"op": "frozen"}, "frozen.attempt"),
        ("act_face", {"op": {"act": 10**400}}, "tag"),
    ],
)
async def test_a_message_of_another_form_is_answered_with_its_fault(bench, face, message, place):
    world, sensor, _ = bench
    reply = await getattr(world, face)(message)
    assert place in reply["error"]
    assert len(reply["error"]) < 400
    assert sensor.episode(ATTEMPT) is None


async def test_no_act_goes_without_a_word_on_the_revision_or_with_one_more_key(bench):
    world, sensor, _ = bench
    await reset(world)
    for fields in ({"revision": True}, {"revision": "1"}, {"unmonitored": True}):
        reply = await act(world, **fields)
        assert (reply["status"], next(iter(fields)) in reply["error"]) == ("refused", True)
    assert sensor.journal(ATTEMPT) == []


async def test_what_the_journal_cannot_hold_does_not_happen(bench):
    world, sensor, store = bench
    await reset(world)
    store._connection.execute(
        "CREATE TRIGGER full BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    assert (await act(world))["status"] == "refused"
    store._connection.execute("DROP TRIGGER full")
    assert (await act(world, revision=1))["status"] == "done"
    assert [entry.before for entry in sensor.journal(ATTEMPT)] == ["20"]


async def test_journal_lines_are_written_all_or_none(bench):
    _, sensor, store = bench
    store._connection.execute(
        "CREATE TRIGGER odd BEFORE INSERT ON journal WHEN NEW.body LIKE '%two%' "
        "BEGIN SELECT RAISE(ABORT, 'no'); END"
    )

    changes = [Change({"target": "a", "kind": "event", "event": name}) for name in ("one", "two")]
    with pytest.raises(sqlite3.Error):
        store.add_journal("x", changes)
    assert sensor.journal("x") == []
    store.add_journal("x", changes[:1])
    assert len(sensor.journal("x")) == 1


def test_the_world_reads_its_bundles_itself(tmp_path):
    folder = tmp_path / "HOUSE"
    folder.mkdir()
    (folder / "world.yaml").write_bytes(houses.file_bytes(houses.world_data()))
    (folder / "tasks.yaml").write_bytes(houses.file_bytes(houses.tasks_data()))
    (folder / "contract.yaml").write_bytes(houses.file_bytes(houses.contract_data()))
    [(key, template)] = load_templates([folder]).items()
    files = [(folder / name).read_bytes() for name in ("world.yaml", "tasks.yaml")]
    assert key == template_digest(*files)
    assert template.world == houses.world()
    assert template.contract_digest == digest((folder / "contract.yaml").read_bytes())
