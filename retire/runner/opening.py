"""Open a finished run's folder for judgement: whatever is missing, damaged or altered is named.

A verifier reads files that anybody may have changed. Nothing here repairs or skips; a file that
does not have the shape every run writes is evidence against the run, not a reason to crash.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from retire.bundle import build_bundle, read_files
from retire.bundle.loading import template_digest
from retire.domain.digests import canonical, digest_of, sha256
from retire.domain.errors import EvidenceError, InputError
from retire.domain.trace import leaf, outcome_of
from retire.matrix import STUB_WORLD, Plan, Protocol, fix_plan
from retire.runner.folder import read_json
from retire.runner.purging import refuse_purged
from retire.runner.reducing import KeptReduction
from retire.runner.sealing import read_evidence
from sink.proposal import RawAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.certify.joining import Evidence
    from retire.runner.folder import RunFolder

_SHAPE = (LookupError, TypeError, ValueError, AttributeError)
"""What reading JSON of another shape raises."""

_RESTORE = "Restore the folder as the run left it, or run again in a new one"
_HEAD = {
    "signer": str,
    "seq": int,
    "hash": str,
    "key": str,
    "signature": str,
    "countersigned": str,
}


def open_evidence(folder: RunFolder) -> Evidence:
    """Read the evidence of a sealed run.

    Raises:
        InputError: There is no seal or no trace file: not the folder of a finished run. Or it was
            purged.
        EvidenceError: A file is damaged; names it, and for a trace its line.
    """
    refuse_purged(folder.root)
    for path in (folder.seal, folder.traces):
        if not path.exists():
            raise InputError(
                "the file is missing", where=str(path), mend="Is this the folder of a finished run?"
            )
    _guarded(folder.seal, lambda: _check_seal(json.loads(folder.seal.read_bytes())))
    with folder.traces.open("rb") as file:
        for number, line in enumerate(file, start=1):
            _guarded(folder.traces, partial(_check_line, line), number)
    try:
        return read_evidence(folder)
    except OSError as error:
        raise EvidenceError(
            f"a record cannot be read: {error.strerror}", where=str(folder.records), mend=_RESTORE
        ) from error


def _guarded(path: Path, check: Callable[[], None], line: int = 0) -> None:
    try:
        check()
    except _SHAPE as error:
        raise EvidenceError(
            f"this is not what a run writes here ({type(error).__name__}: {str(error)[:120]})",
            where=f"{path}:{line}" if line else str(path),
            mend=_RESTORE,
        ) from error


def _check_seal(sealed: Any) -> None:  # noqa: ANN401  # JSON
    for head in sealed["heads"].values():
        _check_types(head, _HEAD)
    for item in sealed["stray"]:
        _check_types(item, {"attempt": str, "seq": int})
    for users in sealed.get("passes", ()):
        _check_types(users, dict.fromkeys(users, int))
    if not all(isinstance(cell, str) for cell in sealed["attempts"].values()):
        raise TypeError("an attempt names no cell")


def _check_line(line: bytes) -> None:
    row = json.loads(line)
    _check_types(row, {"seq": int, "prev": str, "hash": str, "body": dict})
    digest_of(row)
    body = row["body"]
    names = ("attempt", "prompt", "answer_digest", "snapshot", "contract", "effect")
    _check_types(body, dict.fromkeys(names, str))
    outcome_of(body)
    leaf(body)
    RawAnswer.model_validate_json(canonical(body["answer"]))
    for stage in ("d2", "d3"):
        if (record := body[stage].get("record")) is not None:
            _check_types(record, {"hash": str})
    if (act := body["d2"]["act"]) is not None:
        _check_types(act, {"status": str})


def _check_types(value: Any, types: Mapping[str, type]) -> None:  # noqa: ANN401  # JSON
    for name, expected in types.items():
        if not isinstance(value[name], expected):
            raise TypeError(f"{name} has another type")


def check_statement(statement: Mapping[str, Any], where: str) -> None:
    """Check that a signed statement has the parts of a certificate that a verifier relies on.

    Raises:
        InputError: It has another shape; somebody signed something else.
    """
    try:
        predicate = statement["predicate"]
        _check_types(predicate, {"verdict": str, "evidence": str, "unit": dict, "plan": dict})
        _check_types(predicate, {"outcome_root": str, "record_root": str, "heads": dict})
        _check_types(predicate, {"prior_runs_of_this_pair": int})
        _check_types(predicate["plan"], {"digest": str, "statement": dict})
        _check_types(predicate["unit"], {"condition": str, "deployment": dict})
        _check_types(
            predicate["unit"]["deployment"], {"name": str, "digest": str, "identity": dict}
        )
        for item in statement["subject"]:
            _check_types(item, {"name": str, "digest": dict})
            _check_types(item["digest"], {"sha256": str})
    except _SHAPE as error:
        raise InputError(
            f"this is no certificate ({type(error).__name__}: {error})",
            where=where,
            mend="Name a file that `retire matrix` or `retire certify` wrote",
        ) from error


def open_plan(folder: RunFolder) -> tuple[Plan, Mapping[str, Bundle]]:
    """Read plan and bundles from a run's own copies.

    Raises:
        InputError: There is no plan: not the folder of a run. Or it was purged.
        EvidenceError: The plan is damaged, or a copy is missing or not the file that it names.
    """
    refuse_purged(folder.root)
    if not folder.plan.exists():
        raise InputError(
            "the file is missing", where=str(folder.plan), mend="Is this the folder of a run?"
        )
    try:
        statement = read_json(folder.plan)
        protocol = Protocol.model_validate(
            {
                key: tuple(item) if isinstance(item, list) else item
                for key, item in statement["protocol"].items()
            }
        )
        bundles = {
            key: _open_copy(folder.bundles / key, statement["bundles"][key])
            for key in protocol.bundles
        }
        plan = fix_plan(
            protocol,
            {key: [member.name for member in bundle.members] for key, bundle in bundles.items()},
            {key: bundle_digests(bundle) for key, bundle in bundles.items()},
            statement["deployments"],
            statement["candidates"],
            str(statement.get("world", STUB_WORLD)),
        )
    except (InputError, *_SHAPE) as error:
        raise EvidenceError(
            f"the plan cannot be read: {str(error)[:200]}", where=str(folder.plan), mend=_RESTORE
        ) from error
    return plan, bundles


def bundle_digests(bundle: Bundle) -> dict[str, str]:
    """Return the digests of a bundle's parts as a plan states them."""
    digests = bundle.digests
    return {
        "skill": digests.skill,
        "ledger": digests.ledger,
        "contract": digests.contract,
        "effect": digests.effect,
        "template": digests.template,
    }


def _open_copy(folder: Path, named: Mapping[str, str]) -> Bundle:
    try:
        files = read_files(folder)
    except InputError as error:
        raise EvidenceError(error.what, where=error.where, mend=_RESTORE) from error
    present = {
        "SKILL.md": (named["skill"], sha256(files["SKILL.md"])),
        "ledger.yaml": (named["ledger"], sha256(files["ledger.yaml"])),
        "contract.yaml": (named["contract"], sha256(files["contract.yaml"])),
        "effect.yaml": (named["effect"], sha256(files["effect.yaml"])),
        "world.yaml or tasks.yaml": (named["template"], template_digest(files)),
    }
    changed = [name for name, (wanted, found) in present.items() if wanted != found]
    if changed:
        raise EvidenceError(
            f"the run's copy is not the file that its plan names: {', '.join(changed)}",
            where=str(folder),
            mend=_RESTORE,
        )
    try:
        return build_bundle(files, str(folder))
    except InputError as error:
        raise EvidenceError(
            f"the run's copy cannot be used: {error.what}", where=error.where, mend=_RESTORE
        ) from error


def open_reductions(
    folder: RunFolder, protocol: Protocol, bundles: Mapping[str, Bundle]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Read what each reduction deleted, for every deployment and bundle that has one.

    Raises:
        EvidenceError: A description is damaged, or names a clause that the skill does not have.
    """
    found = {}
    for deployment in protocol.deployments:
        for key in protocol.bundles:
            path = folder.reduction(deployment, key) / "reduction.json"
            if path.exists():
                ids = {clause.id for clause in bundles[key].skill.clauses}
                found[deployment, key] = _read_reduction(path, ids)
    return found


def _read_reduction(path: Path, ids: set[str]) -> dict[str, Any]:
    described: dict[str, Any] = {}

    def check() -> None:
        described.update(json.loads(path.read_bytes()))
        _check_types(described, {"given": bool, "deleted": list})
        if unknown := [clause for clause in described["deleted"] if clause not in ids]:
            raise ValueError(f"the skill has no clause {unknown[0]}")

    _guarded(path, check)
    return described


def kept_reductions(
    folder: RunFolder, protocol: Protocol, bundles: Mapping[str, Bundle]
) -> dict[tuple[str, str], KeptReduction]:
    """Read every reduction that a plan declares, by deployment and bundle.

    Raises:
        EvidenceError: As :func:`open_reductions`.
    """
    described = open_reductions(folder, protocol, bundles)
    return {
        (deployment, key): KeptReduction(
            described.get((deployment, key)),
            _bytes_of(folder.reduction(deployment, key) / "SKILL.md"),
            _bytes_of(folder.reduction(deployment, key) / "trials.jsonl"),
        )
        for deployment in protocol.deployments
        for key in protocol.bundles
    }


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise EvidenceError(
            f"the file cannot be read: {error.strerror}", where=str(path), mend=_RESTORE
        ) from error
