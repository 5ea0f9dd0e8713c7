"""Approvals: the file, who may have written it, and a sink that enforces nothing else."""

from __future__ import annotations

import os

import pytest

from sink.approvals import Approval, no_approvals, parse_approvals, render_approvals
from sink.approvals_file import read_approvals
from sink.record import digest
from sink.strict_yaml import DocumentError
from tests import houses
from tests.unit.sink.fake_world import ATTEMPT, CONTRACT_DIGEST, Door

OTHER = digest(b"another contract")
TEXT = f"""\
schema: retire.approvals/v1
approvals:
  - contract: "{CONTRACT_DIGEST}"
    bindings: {{climate.den: climate.study_2}}
    approved_by: operator-7f3a
    approved_at: "2026-05-04T18:00:00Z"
"""


def approval(contract=CONTRACT_DIGEST, **changes):
    given = {
        "contract": contract,
        "bindings": {"climate.den": "climate.study_2"},
        "approved_by": "operator-7f3a",
        "approved_at": houses.NOW,
    }
    return Approval(**{**given, **changes})


# -- the file ------------------------------------------------------------------------------------


def test_what_is_written_is_read_back():
    some = no_approvals().with_approval(approval()).with_approval(approval(OTHER))
    for approvals in (no_approvals(), some, some.without(OTHER)):
        assert parse_approvals(render_approvals(approvals), "file") == approvals
    assert parse_approvals(TEXT.encode(), "file") == some.without(OTHER)


def test_a_new_approval_of_a_contract_replaces_the_earlier_one():
    twice = no_approvals().with_approval(approval()).with_approval(approval(approved_by="two"))
    assert [item.approved_by for item in twice.approvals] == ["two"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("schema: retire.approvals/v1", "schema: retire.approvals/v2", 1),
        (CONTRACT_DIGEST, CONTRACT_DIGEST[:-1], 3),
        (CONTRACT_DIGEST, CONTRACT_DIGEST.upper(), 3),
        (f'"{CONTRACT_DIGEST}"', '"*"', 3),
        ("{climate.den: climate.study_2}", "{}", 4),
        ("climate.study_2", '"climate.*"', 4),
        ("climate.study_2", "all", 4),
        ("climate.study_2", "[climate.study_2]", 4),
        ("operator-7f3a", '"someone@example.org"', 5),
        ('"2026-05-04T18:00:00Z"', "2026-05-04T18:00:00Z", 6),
        ("approved_by", "approved_to", 3),
        ("approvals:\n", "mode: open\napprovals:\n", 2),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_line(old, new, line):
    with pytest.raises(DocumentError) as caught:
        parse_approvals(TEXT.replace(old, new).encode(), "approvals.yaml")
    assert caught.value.where == f"approvals.yaml:{line}"


def test_a_contract_cannot_be_approved_twice_nor_two_targets_be_one_entity():
    entry = TEXT.split("approvals:\n")[1]
    with pytest.raises(DocumentError):
        parse_approvals((TEXT + entry).encode(), "file")
    both = TEXT.replace("{climate.den: climate.study_2}", "{climate.den: a.b, climate.hall: a.b}")
    with pytest.raises(DocumentError):
        parse_approvals(both.encode(), "file")


# -- who may have written it ---------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    path = folder / "approvals.yaml"
    path.write_text(TEXT)
    path.chmod(0o600)
    return path


def refused(path, user=None):
    with pytest.raises(DocumentError) as caught:
        read_approvals(path, os.geteuid() if user is None else user)
    return str(caught.value)


def test_a_file_of_the_reader_alone_is_read(file):
    assert read_approvals(file, os.geteuid()).of(CONTRACT_DIGEST)
    file.chmod(0o644)
    assert read_approvals(file, os.geteuid()).of(CONTRACT_DIGEST)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o660, 0o666])
def test_a_file_that_others_may_write_is_refused(file, mode):
    file.chmod(mode)
    assert "others may write" in refused(file)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_file_that_others_may_replace_is_refused(file, mode):
    file.parent.chmod(mode)
    assert "its folder" in refused(file)


def test_a_file_of_another_user_is_refused(file):
    assert f"belongs to user {os.geteuid()}" in refused(file, os.geteuid() + 1)


def test_links_are_refused(file, tmp_path):
    link = file.with_name("link.yaml")
    link.symlink_to(file)
    assert "symbolic link" in refused(link)
    folder = tmp_path / "linked"
    folder.symlink_to(file.parent)
    assert "symbolic link" in refused(folder / file.name)


def test_what_is_missing_or_no_file_is_refused(file):
    assert "no approvals file" in refused(file.with_name("other.yaml"))
    assert "no approvals file" in refused(file.parent / "none" / "approvals.yaml")
    assert "no regular file" in refused(file.parent)
    pipe = file.with_name("pipe")
    os.mkfifo(pipe, 0o600)
    assert "no regular file" in refused(pipe)


def test_a_file_that_is_cut_or_too_large_is_refused(file):
    file.write_text(TEXT[: len(TEXT) // 2])
    refused(file)
    file.write_bytes(b"# " + b"x" * 1_100_000)
    assert "more than" in refused(file)


# -- a sink of a real world ----------------------------------------------------------------------


@pytest.fixture
async def door(tmp_path):
    made = []

    async def make(*approved):
        approvals = no_approvals()
        for item in approved:
            approvals = approvals.with_approval(item)
        door = await Door(tmp_path, approvals=approvals).start()
        door.world.freeze()
        made.append(door)
        return door

    yield make
    for door in made:
        door.record.close()


async def test_an_approved_contract_acts_on_the_approved_entity(door):
    real = await door(approval())
    reply = await real.ask()
    assert reply["decision"] == "allow"
    [(_, attempt, action, _)] = real.world.sent
    assert (attempt, action.service, action.target) == (ATTEMPT, "climate.set", "climate.study_2")
    assert real.recorded[0]["action"]["target"] == "climate.study_2"


async def test_an_approved_contract_still_needs_everything_else(door):
    real = await door(approval())
    other = houses.answer({"target": "climate.study_2", "temperature": 26.5})
    assert (await real.ask(answer=other))["reason"] == "noncanonical_target"
    assert (await real.ask(answer="no"))["reason"] == "malformed_proposal"
    assert real.world.sent == []


@pytest.mark.parametrize("approved", [(), (approval(OTHER),)], ids=["nothing", "another"])
async def test_a_contract_that_is_not_approved_is_denied_before_anything_is_asked(door, approved):
    real = await door(*approved)
    # Not even the world is asked: it would hang.
    real.world.broken, real.world.fault = "frozen", "hang"
    for changes in ({}, {"answer": ""}, {"attempt": "f" * 32}, {"mode": "stub", "approved": True}):
        reply = await real.ask(**changes)
        assert (reply["decision"], reply["reason"]) == ("deny", "snapshot_mismatch")
        assert "not approved" in reply["detail"]
    assert real.world.sent == []
    assert [item["decision"] for item in real.recorded] == ["deny"] * 4


async def test_a_message_that_names_an_approved_contract_gets_that_contract_only(door):
    """The world froze the episode for an unapproved contract, the message says another."""
    real = await door(approval())
    real.world.freeze(contract=OTHER)
    assert (await real.ask())["reason"] == "snapshot_mismatch"
    assert (await real.ask(contract=OTHER))["reason"] == "snapshot_mismatch"
    assert real.world.sent == []


async def test_without_an_entity_for_the_target_nothing_is_sent(door):
    real = await door(approval(bindings={"climate.hall": "climate.hall"}))
    reply = await real.ask()
    assert (reply["decision"], reply["reason"]) == ("deny", "noncanonical_target")
    assert reply["detail"]
    # The record says what held, also where nothing was sent.
    assert set(reply["predicates"].values()) == {True}
    assert real.recorded[0]["predicates"] == reply["predicates"]
    assert real.world.sent == []
