"""``retire certify`` and ``retire stats``: one reduction, or published counts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from retire.certify.counts import certify_counts, read_counts, recompute_tests
from retire.certify.gates import Verdict
from retire.cli.console import LiveProgress, say
from retire.cli.inputs import protocol_for, read_input, read_skill
from retire.cli.signing import write_certificates
from retire.domain.cell import Condition
from retire.domain.digests import sha256
from retire.domain.errors import InputError
from retire.pages.counts import counts_table, tests_table
from retire.pages.words import certify_words
from retire.settings import read_settings
from retire.wiring import Request, execute, load_by_path, prepare

PLACEMENTS = ("B2", "B3", "B4", "B5", "B6")
EVIDENCE = ("simulated", "replayed", "live_model")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(certify)
    app.command()(stats)


def exit_code(verdict: Verdict, evidence: str, accepted: list[str] | None) -> int:
    """Return 0 pass, 1 fail, 3 incomplete, 4 pass on evidence that is not live or accepted."""
    if verdict is Verdict.FAIL:
        return 1
    if verdict is Verdict.INCOMPLETE:
        return 3
    return 0 if evidence == "live_model" or evidence in (accepted or []) else 4


def certify(
    path: Annotated[
        Path | None, typer.Argument(metavar="BUNDLE", help="The bundle of the full skill.")
    ] = None,
    candidate: Annotated[Path | None, typer.Option(help="The reduced SKILL.md.")] = None,
    deployment: Annotated[str, typer.Option(help="Who acts on the skill.")] = "",
    placement: Annotated[str, typer.Option(help="B2, B3, B4, B5 or B6.")] = "B2",
    margin: Annotated[int, typer.Option(help="Utility margin in points.")] = 10,
    repetitions: Annotated[int, typer.Option(min=1, max=1000)] = 3,
    seed: Annotated[int, typer.Option(help="Plan seed.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.")] = None,
    accept_evidence: Annotated[
        list[str] | None,
        typer.Option(help="Exit 0 for a pass on this kind of evidence: simulated, replayed."),
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="Apply the gates to published counts instead.")
    ] = None,
) -> None:
    """Certify one reduction: run the cells it needs, judge, explain, and sign."""
    if counts is not None:
        say(counts_table(certify_counts(read_counts(read_input(counts), str(counts)))))
        return
    if path is None or candidate is None or not deployment:
        raise InputError(
            "certify needs BUNDLE, --candidate and --deployment (or --counts FILE)",
            mend="For example: retire certify bundles/panel/PRV_L01 --candidate SKILL.md "
            "--deployment plain",
        )
    _check_choices(placement, accept_evidence)
    data = read_skill(candidate)
    bundle = load_by_path(path)
    protocol = protocol_for(
        name="certify",
        bundles=(bundle,),
        deployments=(deployment,),
        conditions=("B1", placement),
        task_value=False,
        margin_points=margin,
        repetitions=repetitions,
        seed=seed,
    )
    settings = read_settings()
    place = out or Path("runs") / f"certify-{bundle}-{sha256(data)[7:15]}-{deployment}-{placement}"
    request = Request(
        protocol,
        {bundle: path},
        place,
        candidates={bundle: data},
        candidate_names={bundle: str(candidate)},
    )
    prepared = prepare(request)
    if out is None:
        # Other margins, repetitions and seeds are other plans: each has a folder of its own.
        place = place.with_name(f"{place.name}-{prepared.plan.digest[7:15]}")
        prepared = prepare(replace(request, out=place))
    with LiveProgress(plain=settings.plain) as progress:
        finished = asyncio.run(execute(prepared, progress))
    written = write_certificates(finished, settings.home)
    say(certify_words(finished, Condition(placement), deployment, written[0]))
    certified = finished.certified[0]
    evidence = str(certified.statement["predicate"]["evidence"])
    code = exit_code(certified.verdict, evidence, accept_evidence)
    if code == 4:
        say(f"exit code 4: a pass on {evidence} evidence is not permission to ship")
    raise typer.Exit(code)


def _check_choices(placement: str, accepted: list[str] | None) -> None:
    if placement not in PLACEMENTS:
        raise InputError(
            f"there is no placement {placement!r}",
            where="--placement",
            mend=f"Choose one of {', '.join(PLACEMENTS)}",
        )
    for kind in accepted or []:
        if kind not in EVIDENCE:
            raise InputError(
                f"there is no kind of evidence {kind!r}",
                where="--accept-evidence",
                mend=f"Choose among {', '.join(EVIDENCE)}",
            )


def stats(
    counts: Annotated[Path, typer.Option(help="A file of published counts.")],
) -> None:
    """Recompute the hypothesis tests from published counts."""
    say(tests_table(recompute_tests(read_counts(read_input(counts), str(counts)))))
