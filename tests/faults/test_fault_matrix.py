"""No fault makes the sink act where it must not, or act without a record; the page says so."""

from __future__ import annotations

import asyncio

import pytest

from sink.contract import load_contract
from sink.record import digest
from sink.strict_yaml import DocumentError
from tests.faults import matrix, publish
from tests.faults.rig import CONTRACT_BYTES, Rig, snapshot_bytes

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def rows():
    return asyncio.run(matrix.all_rows())


def test_no_act_happens_that_the_second_reading_denies(rows):
    acts = [(row.group, row.what, act) for row in rows for act in row.acts]
    assert acts
    assert [told for told in acts if not told[2].was_authorized] == []


def test_no_act_happens_without_its_intent_on_record(rows):
    assert [act for row in rows for act in row.acts if not act.was_recorded] == []


def test_acts_happen_where_they_are_right_and_nowhere_else(rows):
    wrong = [(row.group, row.what, row.sent) for row in rows if len(row.acts) != row.right_acts]
    assert wrong == []


def test_every_fault_is_denied_with_a_reason_or_stops_the_sink(rows):
    for row in rows:
        if row.right_acts == 0:
            assert row.reason, row
            assert "act done" not in row.reason, row


def test_no_attempt_is_acted_on_twice(rows):
    for row in rows:
        attempts = [act.attempt for act in row.acts]
        assert len(set(attempts)) == len(attempts), row


def test_the_published_page_is_what_the_code_gives(rows):
    published = publish.PAGE.read_text(encoding="utf-8")
    assert publish.without_times(published) == publish.without_times(publish.page(rows)), (
        "run python -m tests.faults.publish"
    )


def test_a_contract_cut_anywhere_never_stands_for_the_whole():
    """What a cut leaves cannot be read, or is another contract with another digest."""
    for end in range(0, len(CONTRACT_BYTES), 7):
        cut = CONTRACT_BYTES[:end]
        assert digest(cut) != digest(CONTRACT_BYTES)
        with pytest.raises(DocumentError):
            load_contract(cut, "contract.yaml")


async def test_without_any_fault_it_acts_once(tmp_path):
    """The rows above mean something only because the same rig acts when nothing is wrong."""
    rig = Rig(tmp_path)
    await rig.monitor.start()
    rig.freeze(snapshot_bytes())
    reply = await rig.ask()
    assert (reply["decision"], len(rig.world.acts)) == ("allow", 1)
    rig.record.close()
