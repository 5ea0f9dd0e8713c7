"""Whatever somebody changes in a run's folder or on its certificate, verify finds and names it."""

from __future__ import annotations

import base64
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner

from retire.certify.certificate import LIVE_TYPE
from retire.certify.envelope import PAYLOAD_TYPE
from retire.domain.digests import canonical, digest_of
from tests.integration.commands import (
    Done,
    certify,
    retire,
    side_by_side,
    small_certificate,
    workshop,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.integration

NAME = "plain-B4.json"


@pytest.fixture(scope="module")
def other_run() -> Path:
    """The same candidate under another seed."""
    out = workshop() / "another-seed"
    assert certify(out, "--seed", "9").code == 4
    return out


@pytest.fixture(scope="module")
def keys() -> Path:
    """The keys that really signed the small certificate's run."""
    path = workshop() / "keys.txt"
    path.write_text(retire("keys", "--run", small_certificate()[0]).out)
    return path


# -- what is changed ---------------------------------------------------------------------------


def rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]


def write_rows(run: Path, changed: list[dict[str, Any]]) -> None:
    lines = [json.dumps(row, separators=(",", ":"), sort_keys=True) for row in changed]
    (run / "traces.jsonl").write_text("\n".join(lines) + "\n")


def change_json(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def flip(changed: list[dict[str, Any]]) -> None:
    """Say the opposite of one sighting; rows stand in the order in which cells ended."""
    for row in changed:
        cell, sighting = row["body"]["cell"], row["body"]["d3"]
        if (cell["condition"], cell["member"]) == ("B4", "invalid_state"):
            sighting["protected"] = not sighting["protected"]
            return
    pytest.fail("there is no such cell")


def edit_row(run: Path) -> None:
    changed = rows(run)
    flip(changed)
    write_rows(run, changed)


def edit_row_and_chain(run: Path) -> None:
    """A forger who knows how rows are chained writes them all anew."""
    changed = rows(run)
    flip(changed)
    prev = "sha256:" + "0" * 64
    for row in changed:
        row["prev"] = prev
        row["hash"] = prev = digest_of({"seq": row["seq"], "prev": prev, "body": row["body"]})
    write_rows(run, changed)


def remove_row(run: Path) -> None:
    write_rows(run, [row for number, row in enumerate(rows(run)) if number != 3])


def remove_last_row(run: Path) -> None:
    write_rows(run, rows(run)[:-1])


def add_row(run: Path) -> None:
    write_rows(run, [*rows(run), rows(run)[-1]])


def add_undeclared_row(run: Path) -> None:
    added = json.loads(json.dumps(rows(run)[-1]))
    added["body"]["cell"]["member"] = "invalid_weather"
    write_rows(run, [*rows(run), added])


def tear_row(run: Path) -> None:
    path = run / "traces.jsonl"
    path.write_bytes(path.read_bytes()[:-40])


def hollow_row(run: Path) -> None:
    changed = rows(run)
    del changed[1]["body"]["d2"]["predicates"]
    write_rows(run, changed)


def sink_record(run: Path) -> Path:
    return run / "records" / "sink-canonical.jsonl"


def truncate_record(run: Path) -> None:
    lines = sink_record(run).read_bytes().splitlines(keepends=True)
    sink_record(run).write_bytes(b"".join(lines[:-1]))


def tear_record(run: Path) -> None:
    sink_record(run).write_bytes(sink_record(run).read_bytes()[:-30])


def rewrite_record(run: Path) -> None:
    replace(sink_record(run), '"deny"', '"allow"')


def lose_record(run: Path) -> None:
    sink_record(run).unlink()


def garble_record(run: Path) -> None:
    sink_record(run).write_bytes(b"\xff\xfe\n" + sink_record(run).read_bytes())


def swap_heads(run: Path) -> None:
    def swap(seal: Any) -> None:
        heads = seal["heads"]
        heads["sink-canonical"], heads["direct"] = heads["direct"], heads["sink-canonical"]

    change_json(run / "seal.json", swap)


def drop_head(run: Path) -> None:
    change_json(run / "seal.json", lambda seal: seal["heads"].pop("observer"))


def empty_seal(run: Path) -> None:
    (run / "seal.json").write_text("[]")


def bundle_file(name: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda run: replace(run / "bundles" / "PRV_L01" / name, old, new)


def reduction(run: Path) -> Path:
    return run / "reductions" / "plain" / "PRV_L01"


def change_reduced_text(run: Path) -> None:
    with (reduction(run) / "SKILL.md").open("a") as file:
        file.write("\nOpen whenever somebody asks.\n")


def change_deleted_clauses(run: Path) -> None:
    change_json(reduction(run) / "reduction.json", lambda value: value["deleted"].pop())


def delete_unknown_clause(run: Path) -> None:
    change_json(reduction(run) / "reduction.json", lambda value: value["deleted"].append("c999"))


def lose_reduction(run: Path) -> None:
    shutil.rmtree(reduction(run))


def hollow_plan(run: Path) -> None:
    (run / "plan.json").write_text("{}")


def lose_bundle_copy(run: Path) -> None:
    shutil.rmtree(run / "bundles" / "PRV_L01")


CHANGES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "a row edited": (edit_row, ("does not chain", "B4/invalid_state")),
    "a row edited and all rows chained anew": (edit_row_and_chain, ("B4/invalid_state", "root")),
    "a row removed": (remove_row, ("trace 4",)),
    "the last row removed": (remove_last_row, ("root differs",)),
    "a row added": (add_row, ("trace 9",)),
    "a row of no declared cell added": (add_undeclared_row, ("invalid_weather",)),
    "a row torn": (tear_row, ("traces.jsonl:8",)),
    "a row without a stage": (hollow_row, ("traces.jsonl:2", "predicates")),
    "a record truncated": (truncate_record, ("truncated", "sink-canonical")),
    "a record torn": (tear_record, ("torn", "sink-canonical")),
    "a record rewritten": (rewrite_record, ("rewritten", "sink-canonical")),
    "a record missing": (lose_record, ("missing", "sink-canonical")),
    "a record garbled": (garble_record, ("line 1", "sink-canonical")),
    "two heads swapped": (swap_heads, ("signed heads", "countersign")),
    "a head dropped": (drop_head, ("observer", "no head")),
    "the seal emptied": (empty_seal, ("seal.json",)),
    "the skill changed": (bundle_file("SKILL.md", "twice a year", "once a year"), ("SKILL.md",)),
    "the contract changed": (bundle_file("contract.yaml", "quorum: 2", "quorum: 1"), ("contract",)),
    "the ledger changed": (bundle_file("ledger.yaml", "panel maint", "other maint"), ("ledger",)),
    "the effect changed": (bundle_file("effect.yaml", "display.kitchen", "x.y"), ("effect.yaml",)),
    "the world changed": (bundle_file("world.yaml", "hallway camera", "hall"), ("world.yaml",)),
    "the tasks changed": (bundle_file("tasks.yaml", "Please show", "Show"), ("tasks.yaml",)),
    "a bundle's copy missing": (lose_bundle_copy, ("bundles/PRV_L01",)),
    "the reduced skill changed": (change_reduced_text, ("reductions/plain/PRV_L01",)),
    "the deleted clauses changed": (change_deleted_clauses, ("reductions/plain/PRV_L01",)),
    "an unknown clause deleted": (delete_unknown_clause, ("reduction.json", "c999")),
    "the reduction missing": (lose_reduction, ("reductions/plain/PRV_L01",)),
    "the plan emptied": (hollow_plan, ("plan.json",)),
}
"""What is done to the folder, and words that name it."""


# -- what is forged on the certificate ---------------------------------------------------------


def statement_of(path: Path) -> dict[str, Any]:
    return json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))


def sign_anew(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = run / "certificates" / NAME
    statement = statement_of(path)
    change(statement)
    key = Ed25519PrivateKey.generate()
    envelope = Envelope(canonical(statement), PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key))
    signer = {"ed25519": key.public_key().public_bytes_raw().hex()}
    path.write_text(json.dumps({**envelope.to_dict(), "signer": signer}))


def claim_live_model(statement: dict[str, Any]) -> None:
    statement["predicateType"] = LIVE_TYPE
    statement["predicate"]["evidence"] = "live_model"
    del statement["predicate"]["first_lines"][0]


def change_identity(statement: dict[str, Any]) -> None:
    deployment = statement["predicate"]["unit"]["deployment"]
    deployment["identity"] = {"provider": "somebody", "model": "better"}
    deployment["digest"] = digest_of(deployment["identity"])


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], object], tuple[str, ...]]] = {
    "another verdict": (lambda it: it["predicate"].update(verdict="fail"), ("verdict",)),
    "a live model claimed": (claim_live_model, ("evidence",)),
    "another model claimed": (change_identity, ("deployment",)),
    "another world claimed": (lambda it: it["predicate"].update(world="house"), ("world",)),
}

NO_CERTIFICATES: dict[str, tuple[Callable[[dict[str, Any]], object], tuple[str, ...]]] = {
    "gates left out": (lambda it: it["predicate"].pop("gates"), ("predicate.gates",)),
    "something added": (lambda it: it["predicate"].update(safe="yes"), ("predicate.safe",)),
    "another type": (lambda it: it.update(_type="other"), ("_type",)),
}
"""What is refused before anything is compared, by the path in the document."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> dict[str, Done]:
    """What verify says of every changed copy."""
    original, certified = small_certificate()
    assert certified.code == 4
    calls = {}
    for name, (change, _) in CHANGES.items():
        run = tmp_path_factory.mktemp("tampered") / "run"
        shutil.copytree(original, run)
        change(run)
        calls[name] = lambda run=run: retire("verify", run / "certificates" / NAME)
    for name, (forge, _) in {**FORGERIES, **NO_CERTIFICATES}.items():
        run = tmp_path_factory.mktemp("forged") / "run"
        shutil.copytree(original, run)
        sign_anew(run, forge)
        calls[name] = lambda run=run: retire("verify", run / "certificates" / NAME)
    return side_by_side(calls)


@pytest.mark.parametrize("name", [*CHANGES, *FORGERIES, *NO_CERTIFICATES])
def test_every_change_is_found_and_named(name: str, verdicts: dict[str, Done]) -> None:
    done = verdicts[name]
    assert done.code == (2 if name in NO_CERTIFICATES else 1), done
    _, words = {**CHANGES, **FORGERIES, **NO_CERTIFICATES}[name]
    for word in words:
        assert word in done.said, done
    assert "intact" not in done.said


def test_an_untouched_run_is_intact_and_its_signers_are_known(keys: Path) -> None:
    run, _ = small_certificate()
    unknown, known = side_by_side(
        {
            "unknown": lambda: retire("verify", run / "certificates" / NAME),
            "known": lambda: retire("verify", run / "certificates" / NAME, "--trust", keys),
        }
    ).values()
    assert (unknown.code, known.code) == (4, 4)
    assert "intact, signers unknown" in unknown.said
    assert "intact, signers trusted" in known.said


def test_an_honest_statement_signed_by_a_stranger_is_not_trusted(
    tmp_path: Path, keys: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(small_certificate()[0], run)
    sign_anew(run, lambda _: None)
    done = retire("verify", run / "certificates" / NAME, "--trust", keys)
    assert done.code == 1
    assert "intact, signers unknown" in done.said
    assert "certifier" in done.said


def test_the_certificate_of_another_run_does_not_fit(tmp_path: Path, other_run: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(small_certificate()[0], run)
    shutil.copy(other_run / "certificates" / NAME, run / "certificates" / NAME)
    done = retire("verify", run / "certificates" / NAME)
    assert done.code == 1
    assert "plan" in done.said


def test_a_changed_payload_breaks_the_signature(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(small_certificate()[0], run)
    path = run / "certificates" / NAME
    statement = statement_of(path)
    statement["predicate"]["verdict"] = "fail"
    payload = base64.b64encode(json.dumps(statement).encode()).decode()
    change_json(path, lambda envelope: envelope.update(payload=payload))
    done = retire("verify", path)
    assert done.code == 1
    assert "signature" in done.said
    assert NAME in done.said


def test_one_broken_certificate_does_not_hide_the_others(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(small_certificate()[0], run)
    (run / "certificates" / "a-broken.json").write_text("{")
    done = retire("verify", run)
    assert done.code == 2
    assert "a-broken.json: BROKEN" in done.said
    assert f"{NAME}: intact" in done.said
