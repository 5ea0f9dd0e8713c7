"""Puts the parts together: from a protocol and folders to a sealed, certified run."""

from __future__ import annotations

import json
import secrets
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retire.bundle import load_bundle, read_files
from retire.bundle.loading import bundles_by_id
from retire.certify.certificate import Surroundings as CertificateSurroundings
from retire.certify.certifying import Certified, Run, certify, licensing_cells, placements
from retire.certify.envelope import open_envelope
from retire.certify.hypotheses import Hypotheses, run_hypotheses
from retire.certify.joining import Evidence, Finding, join, outcomes_of
from retire.deployments import deployment_named, known_deployments
from retire.domain.digests import digest_of, sha256
from retire.domain.errors import IncompleteError, NotAReduction
from retire.domain.trace import outcome_root, record_root
from retire.matrix import Plan, fix_plan
from retire.runner.attempt import AttemptRunner
from retire.runner.engine import Engine, Progress, Surroundings
from retire.runner.folder import RunFolder, read_json, write_json, write_lines, write_whole
from retire.runner.opening import (
    bundle_digests,
    check_statement,
    open_evidence,
    open_plan,
    open_reductions,
    reduced_texts,
)
from retire.runner.processes import running_programs
from retire.runner.sealing import head_json, seal
from retire.runner.verifying import Examined, Subject, Verification, examine, verify
from retire.skill import align, parse, render
from retire.store import RunStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.deployments import Deployment
    from retire.matrix import Protocol
    from retire.reduce import Reduction
    from retire.runner.processes import Programs


_WORLD = "stub"
"""The kind of world that the launcher starts."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to run.

    Attributes:
        protocol: The declared plan.
        folders: Bundle folder by bundle id.
        out: The run's folder.
        concurrency: Attempts under way at once.
        candidates: Candidate ``SKILL.md`` bytes by bundle; without them the run reduces.
        candidate_names: What messages call each candidate, usually its path.
    """

    protocol: Protocol
    folders: Mapping[str, Path]
    out: Path
    concurrency: int = 16
    candidates: Mapping[str, bytes] = field(default_factory=dict)
    candidate_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fixed plan with everything loaded, before anything runs."""

    request: Request
    plan: Plan
    bundles: Mapping[str, Bundle]
    deployments: Mapping[str, Deployment]
    given_deletions: Mapping[str, tuple[str, ...]]
    folder: RunFolder


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has been carried as far as it goes."""

    prepared: Prepared
    evidence: Evidence
    run: Run
    findings: tuple[Finding, ...]
    certified: tuple[Certified, ...]
    hypotheses: Hypotheses
    reductions: Mapping[tuple[str, str], Mapping[str, Any]]
    incomplete: Mapping[str, str]
    outcome_root: str
    record_root: str
    seconds: Mapping[str, float]


def prepare(request: Request) -> Prepared:
    """Load everything and fix the plan; writes nothing.

    Raises:
        InputError: A bundle, a candidate or a deployment cannot be used.
    """
    bundles = {key: load_bundle(request.folders[key]) for key in request.protocol.bundles}
    deployments = {name: deployment_named(name) for name in request.protocol.deployments}
    deletions = {
        key: _deletions_of(
            bundles[key], data, request.candidate_names.get(key, f"candidate for {key}")
        )
        for key, data in request.candidates.items()
    }
    plan = fix_plan(
        request.protocol,
        {key: [member.name for member in bundle.members] for key, bundle in bundles.items()},
        {key: bundle_digests(bundle) for key, bundle in bundles.items()},
        {name: digest_of(dict(item.identity)) for name, item in deployments.items()},
        {key: sha256(data) for key, data in request.candidates.items()},
    )
    return Prepared(request, plan, bundles, deployments, deletions, RunFolder(request.out))


def _deletions_of(bundle: Bundle, candidate: bytes, name: str) -> tuple[str, ...]:
    try:
        return align(bundle.skill, parse(candidate, name)).deleted
    except NotAReduction as error:
        place = error.where.replace("candidate", name, 1)
        raise NotAReduction(error.what, where=place, mend=error.mend) from error


async def execute(
    prepared: Prepared, progress: Progress, store: RunStore | None = None
) -> Finished:
    """Run whatever of the plan has not been run, seal, and certify.

    The same plan again in the same folder resumes, or reports what is there.

    Raises:
        InputError: The folder holds another plan, or cannot be written.
        IncompleteError: A program is gone; run again to resume.
    """
    folder = prepared.folder
    folder.prepare()
    store = store or RunStore(folder.database)
    seconds: dict[str, float] = {"reduce": 0.0, "matrix": 0.0, "certify": 0.0}
    incomplete: dict[str, str] = {}
    try:
        store.bind(prepared.plan.digest, prepared.plan.statement)
        _copy_inputs(prepared)
        finished = folder.seal.exists() and store.done() >= {
            cell.key for cell in prepared.plan.cells
        }
        if not finished:
            folder.reopen()
            incomplete = await _run_programs(prepared, store, progress, seconds)
    finally:
        store.close()
    began = time.perf_counter()
    result = conclude(prepared, incomplete, seconds)
    seconds["certify"] = time.perf_counter() - began
    return result


async def _run_programs(
    prepared: Prepared, store: RunStore, progress: Progress, seconds: dict[str, float]
) -> dict[str, str]:
    folder = prepared.folder
    copies = [folder.bundles / key for key in prepared.bundles]
    async with running_programs(folder.processes, copies) as programs, store:
        engine = _engine(prepared, store, programs, progress)
        await engine.sight_cut_attempts()
        began = time.perf_counter()
        deleted = await _deletions(prepared, engine)
        seconds["reduce"] = time.perf_counter() - began
        began = time.perf_counter()
        await engine.run_cells(deleted)
        await seal(folder, programs, store)
        seconds["matrix"] = time.perf_counter() - began
        return dict(engine.incomplete)


def _engine(prepared: Prepared, store: RunStore, programs: Programs, progress: Progress) -> Engine:
    attempts = AttemptRunner(programs, store, lambda: secrets.token_hex(16))
    given = Surroundings(
        prepared.bundles,
        prepared.deployments,
        programs,
        store,
        attempts,
        progress,
        prepared.request.concurrency,
    )
    return Engine(prepared.plan, given)


async def _deletions(prepared: Prepared, engine: Engine) -> dict[tuple[str, str], tuple[str, ...]]:
    protocol = prepared.plan.protocol
    if prepared.request.candidates or not protocol.candidates:
        deleted = {
            (deployment, key): prepared.given_deletions.get(key, ())
            for deployment in protocol.deployments
            for key in protocol.bundles
        }
        for (deployment, key), clauses in deleted.items():
            _write_reduction(prepared, deployment, key, {"given": True, "deleted": list(clauses)})
        return deleted
    reductions = await engine.reduce()
    keep_reductions(prepared, reductions)
    return {pair: reduction.deleted for pair, reduction in reductions.items()}


def keep_reductions(prepared: Prepared, reductions: Mapping[tuple[str, str], Reduction]) -> None:
    """Write each reduced skill, what was deleted, and the replayable ledger of its trials."""
    for (deployment, key), reduction in reductions.items():
        _write_reduction(prepared, deployment, key, reduction_json(reduction))
        trials = prepared.folder.reduction(deployment, key) / "trials.jsonl"
        write_lines(trials, [trial_json(trial) for trial in reduction.trials])


def reduction_json(reduction: Reduction) -> dict[str, Any]:
    """Return what is kept of a reduction beside its text and its trials."""
    return {
        "given": False,
        "strategy": str(reduction.strategy),
        "deleted": list(reduction.deleted),
        "trials": len(reduction.trials),
        "pass_trials": reduction.pass_trials,
        "verification_trials": reduction.verification_trials,
        "allowed_losses": reduction.allowed_losses,
        "margin_binding": reduction.margin_binding,
        "vacuous": reduction.vacuous,
        "non_monotone": [list(pair) for pair in reduction.non_monotone],
    }


def trial_json(trial: Any) -> dict[str, Any]:  # noqa: ANN401  # a frozen slots dataclass
    """Return one line of the trial ledger."""
    return {name: getattr(trial, name) for name in trial.__slots__}


def _write_reduction(
    prepared: Prepared, deployment: str, key: str, described: Mapping[str, Any]
) -> None:
    place = prepared.folder.reduction(deployment, key)
    write_whole(place / "SKILL.md", render(prepared.bundles[key].skill, list(described["deleted"])))
    write_json(place / "reduction.json", described)


def _copy_inputs(prepared: Prepared) -> None:
    """Keep the bundles beside the evidence: a certificate is verified against these copies."""
    write_json(prepared.folder.plan, prepared.plan.statement)
    for key, source in prepared.request.folders.items():
        target = prepared.folder.bundles / key
        if not target.exists():
            partial = target.with_name(f".{key}.part")
            shutil.rmtree(partial, ignore_errors=True)
            for name, data in read_files(source).items():
                write_whole(partial / name, data)
            partial.rename(target)


def conclude(
    prepared: Prepared,
    incomplete: Mapping[str, str],
    seconds: Mapping[str, float],
) -> Finished:
    """Join, judge and test what a run left in its folder; reads files, runs nothing."""
    evidence = open_evidence(prepared.folder)
    findings = join(evidence)
    reductions = open_reductions(prepared.folder, prepared.plan.protocol, prepared.bundles)
    run = Run(
        plan=prepared.plan,
        bundles=prepared.bundles,
        identities={name: item.identity for name, item in prepared.deployments.items()},
        outcomes=outcomes_of(evidence, prepared.plan.cells),
        deleted={pair: tuple(value["deleted"]) for pair, value in reductions.items()},
        licensing={key: licensing_cells(bundle) for key, bundle in prepared.bundles.items()},
    )
    given = CertificateSurroundings(
        plan=prepared.plan.statement,
        plan_digest=prepared.plan.digest,
        scope="bundle" if len(prepared.bundles) == 1 else "panel",
        evidence=_evidence_kind(prepared.deployments),
        world=_WORLD,
        outcome_root=outcome_root(row["body"] for row in evidence.rows),
        record_root=record_root([row["hash"] for row in evidence.rows]),
        heads={name: head_json(head) for name, head in evidence.heads.items()},
        findings=findings,
        prior_runs=prior_runs(prepared),
    )
    return Finished(
        prepared=prepared,
        evidence=evidence,
        run=run,
        findings=findings,
        certified=tuple(certify(run, placement, given) for placement in placements(run)),
        hypotheses=run_hypotheses(run.outcomes, prepared.plan.cells, prepared.plan.protocol),
        reductions=reductions,
        incomplete=incomplete,
        outcome_root=given.outcome_root,
        record_root=given.record_root,
        seconds=seconds,
    )


def _evidence_kind(deployments: Mapping[str, Deployment]) -> str:
    kinds = sorted({item.evidence for item in deployments.values()})
    return kinds[0] if len(kinds) == 1 else "mixed"


def prior_runs(prepared: Prepared) -> int:
    """Count sibling runs that already judged the same skills and candidates."""
    wanted = {key: bundle.digests.skill for key, bundle in prepared.bundles.items()}
    given = prepared.plan.statement["candidates"]
    count = 0
    for path in prepared.folder.root.parent.glob("*/plan.json"):
        if path.parent.resolve() == prepared.folder.root.resolve():
            continue
        try:
            other = json.loads(path.read_bytes())
            skills = {key: value["skill"] for key, value in other["bundles"].items()}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        count += skills == wanted and other.get("candidates") == given
    return count


def load_by_path(path: Path) -> str:
    """Return the id of the bundle in a folder; raises InputError where there is none."""
    return load_bundle(path).id


async def reduce_only(prepared: Prepared, progress: Progress) -> dict[tuple[str, str], Reduction]:
    """Reduce every bundle of a plan for every deployment, and keep text and trials.

    Raises:
        InputError: The folder holds another plan, or cannot be written.
        IncompleteError: A program is gone or a development task gave no evidence.
    """
    prepared.folder.prepare()
    store = RunStore(prepared.folder.database)
    try:
        store.bind(prepared.plan.digest, prepared.plan.statement)
        _copy_inputs(prepared)
        copies = [prepared.folder.bundles / key for key in prepared.bundles]
        async with running_programs(prepared.folder.processes, copies) as programs, store:
            engine = _engine(prepared, store, programs, progress)
            await engine.sight_cut_attempts()
            reductions = await engine.reduce()
            keep_reductions(prepared, reductions)
            return reductions
    finally:
        store.close()


def require_complete(finished: Finished) -> None:
    """Raise if the run lacks cells.

    Raises:
        IncompleteError: Names the first missing cells and why.
    """
    if not finished.incomplete:
        return
    cells: Sequence[tuple[str, str]] = sorted(finished.incomplete.items())
    named = "; ".join(f"{cell}: {why}" for cell, why in cells[:3])
    raise IncompleteError(
        f"{len(cells)} cells have no evidence ({named})",
        where=str(finished.prepared.folder.root),
        mend="Run the same command again to try these cells again",
    )


def heads_of(root: Path) -> dict[str, str]:
    """Return the public keys (hex) that signed the heads of a run, by record name.

    Raises:
        InputError: Not the folder of a finished run.
        EvidenceError: Its seal or its traces are damaged.
    """
    evidence = open_evidence(RunFolder(root))
    return {name: head.key for name, head in sorted(evidence.heads.items())}


def examine_run(root: Path) -> Examined:
    """Open a run's folder and recompute what all its certificates share.

    Raises:
        InputError: Not the folder of a finished run.
        EvidenceError: A file of it is damaged or was replaced.
    """
    folder = RunFolder(root)
    plan, bundles = open_plan(folder)
    described = open_reductions(folder, plan.protocol, bundles)
    return examine(
        plan,
        bundles,
        open_evidence(folder),
        {pair: tuple(value["deleted"]) for pair, value in described.items()},
        reduced_texts(folder, plan.protocol),
    )


def verify_certificate(
    path: Path,
    trusted: Sequence[str] | None,
    against: Sequence[Path],
    run: Examined | None = None,
) -> tuple[Verification, str]:
    """Verify a certificate that lies in its run's folder; otherwise as verify_envelope."""
    folder = RunFolder(path.resolve().parent.parent)
    return verify_envelope(read_json(path), str(path), folder, trusted, against, run)


def verify_envelope(
    envelope: Mapping[str, Any],
    where: str,
    folder: RunFolder,
    trusted: Sequence[str] | None,
    against: Sequence[Path],
    run: Examined | None = None,
) -> tuple[Verification, str]:
    """Verify a certificate against a run's folder; returns the result and the kind of evidence.

    Args:
        envelope: The signed certificate.
        where: Its name in messages.
        folder: The run's folder.
        trusted: Public keys (hex) that the reader trusts; None if none were given.
        against: Bundles as they stand now.
        run: The folder, if it has been examined already.

    Raises:
        InputError: Not a certificate, or not the folder of a finished run.
        EvidenceError: The certificate's signature does not verify, or the folder is damaged.
    """
    statement, signer = open_envelope(envelope, where)
    check_statement(statement, where)
    run = run or examine_run(folder.root)
    predicate = statement["predicate"]
    kind = _verified_kind(run.plan, str(predicate["evidence"]))
    given = CertificateSurroundings(
        plan=run.plan.statement,
        plan_digest=run.plan.digest,
        scope="bundle" if len(run.bundles) == 1 else "panel",
        evidence=kind,
        world=_WORLD,
        outcome_root=run.outcome_root,
        record_root=run.record_root,
        heads={name: head_json(head) for name, head in run.evidence.heads.items()},
        findings=run.findings,
        prior_runs=predicate["prior_runs_of_this_pair"],
    )
    current = {
        key: load_bundle(place)
        for key, place in bundles_by_id(list(against)).items()
        if key in run.bundles
    }
    name = predicate["unit"]["deployment"]["name"]
    identities = {name: deployment_named(name).identity} if name in known_deployments() else {}
    return verify(Subject(statement, signer, run), trusted, current, identities, given), kind


def _verified_kind(plan: Plan, stated: str) -> str:
    """Return the kind of evidence that the plan's deployments give, not what a signer says.

    Where one of them is unknown here or configured differently, the stated kind is all there is.
    """
    names = plan.protocol.deployments
    if not set(names) <= set(known_deployments()):
        return stated
    present = {name: deployment_named(name) for name in names}
    as_planned = all(
        digest_of(dict(item.identity)) == plan.statement["deployments"].get(name)  # type: ignore[union-attr]  # a mapping
        for name, item in present.items()
    )
    return _evidence_kind(present) if as_planned else stated
