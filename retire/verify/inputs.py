"""What a run has before its first cell: its plan, its copies of the bundles, its reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from retire.bundle import build_bundle, read_files
from retire.bundle.loading import template_digest
from retire.domain.digests import sha256
from retire.domain.document import (
    Document,
    DocumentFault,
    as_document,
    read_document,
    read_unique,
)
from retire.domain.errors import EvidenceError, InputError
from retire.matrix import Plan, PlanStatement, fix_plan
from retire.runner.purging import refuse_purged
from retire.runner.reducing import FoundReduction, GivenReduction, KeptReduction

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.bundle.bundle import Digests
    from retire.runner.folder import RunFolder

RESTORE = "Restore the folder as the run left it, or run again in a new one"
"""How to mend a file of a run that is damaged or missing."""

_Model = TypeVar("_Model", bound=Document)


def read_plan(folder: RunFolder) -> tuple[Plan, Mapping[str, Bundle]]:
    """Read plan and bundles from a run's own copies.

    Raises:
        InputError: There is no plan: not the folder of a run. Or it was purged.
        EvidenceError: The plan is damaged, or a copy is missing or not the file that it names.
    """
    refuse_purged(folder.root)
    require(folder.plan, "a run")
    statement = read_file(PlanStatement, folder.plan)
    protocol = statement.protocol
    if missing := set(protocol.bundles) - statement.bundles.keys():
        fault = DocumentFault(f"bundles.{min(missing)}", "it is missing")
        raise damaged(str(folder.plan), fault)
    bundles = {
        key: _read_copy(folder.bundles / key, statement.bundles[key]) for key in protocol.bundles
    }
    plan = fix_plan(
        protocol,
        {key: [member.name for member in bundle.members] for key, bundle in bundles.items()},
        {key: bundle.digests for key, bundle in bundles.items()},
        statement.deployments,
        statement.candidates,
        statement.world,
    )
    return plan, bundles


def _read_copy(folder: Path, named: Digests) -> Bundle:
    try:
        files = read_files(folder)
    except InputError as error:
        raise EvidenceError(error.what, where=error.where, mend=RESTORE) from error
    present = {
        "SKILL.md": (named.skill, sha256(files["SKILL.md"])),
        "ledger.yaml": (named.ledger, sha256(files["ledger.yaml"])),
        "contract.yaml": (named.contract, sha256(files["contract.yaml"])),
        "effect.yaml": (named.effect, sha256(files["effect.yaml"])),
        "world.yaml or tasks.yaml": (named.template, template_digest(files)),
    }
    changed = [name for name, (wanted, found) in present.items() if wanted != found]
    if changed:
        raise EvidenceError(
            f"the run's copy is not the file that its plan names: {', '.join(changed)}",
            where=str(folder),
            mend=RESTORE,
        )
    try:
        return build_bundle(files, str(folder))
    except InputError as error:
        raise EvidenceError(
            f"the run's copy cannot be used: {error.what}", where=error.where, mend=RESTORE
        ) from error


def read_reductions(
    folder: RunFolder, plan: Plan, bundles: Mapping[str, Bundle]
) -> dict[tuple[str, str], KeptReduction]:
    """Read the reduction of every deployment and bundle, as far as it is there.

    Raises:
        EvidenceError: A description is damaged, or names a clause that the skill does not have.
    """
    found = {}
    for deployment in plan.protocol.deployments:
        for key in plan.protocol.bundles:
            place = folder.reduction(deployment, key)
            found[deployment, key] = KeptReduction(
                _read_description(place / "reduction.json", bundles[key]),
                bytes_of(place / "SKILL.md"),
                bytes_of(place / "trials.jsonl"),
            )
    return found


def deleted_of(
    reductions: Mapping[tuple[str, str], KeptReduction],
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the clauses that each reduction deleted, for those that are there."""
    return {
        pair: item.described.deleted
        for pair, item in reductions.items()
        if item.described is not None
    }


def _read_description(path: Path, bundle: Bundle) -> GivenReduction | FoundReduction | None:
    data = bytes_of(path)
    if data is None:
        return None
    try:
        value = read_unique(data)
        given = isinstance(value, dict) and value.get("given") is True
        described: GivenReduction | FoundReduction = (
            as_document(GivenReduction, value) if given else as_document(FoundReduction, value)
        )
    except DocumentFault as fault:
        raise damaged(str(path), fault) from fault
    ids = {clause.id for clause in bundle.skill.clauses}
    if unknown := [clause for clause in described.deleted if clause not in ids]:
        raise damaged(str(path), DocumentFault("deleted", f"the skill has no clause {unknown[0]}"))
    return described


def damaged(where: str, fault: DocumentFault) -> EvidenceError:
    """Return the error of a file of a run that is not as a run writes it."""
    return EvidenceError(
        f"this is not what a run writes here ({str(fault)[:200]})", where=where, mend=RESTORE
    )


def require(path: Path, of: str) -> None:
    """Check that a file is there; raises InputError that names what the folder is not."""
    if not path.exists():
        raise InputError(
            "the file is missing", where=str(path), mend=f"Is this the folder of {of}?"
        )


def read_file(model: type[_Model], path: Path) -> _Model:
    """Read a document of a run; raises EvidenceError with the place of what is wrong in it."""
    try:
        return read_document(model, bytes_of(path) or b"")
    except DocumentFault as fault:
        raise damaged(str(path), fault) from fault


def bytes_of(path: Path) -> bytes | None:
    """Return a file's bytes, None where it is missing; raises EvidenceError for other faults."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise EvidenceError(
            f"the file cannot be read: {error.strerror}", where=str(path), mend=RESTORE
        ) from error
