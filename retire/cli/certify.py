"""``retire certify`` and ``retire stats``: one reduction, or published counts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import LiveProgress, carry_out, say, say_error
from retire.cli.deploying import (
    BudgetOption,
    DeploymentsOption,
    LauncherOption,
    StabilityOption,
    chosen_catalog,
    chosen_deployment,
    read_measurements,
)
from retire.cli.inputs import protocol_for, read_input, read_skill
from retire.domain.cell import CANDIDATES, Condition
from retire.domain.digests import sha256
from retire.domain.errors import InputError
from retire.domain.evidence import Evidence
from retire.runner.folder import write_document
from retire.settings import read_settings

if TYPE_CHECKING:
    from retire.certify.certificate import Certificate
    from retire.certify.gates import Verdict
    from retire.cli.asked import Asked

EVIDENCE = tuple(kind for kind in Evidence if kind not in {Evidence.MIXED, Evidence.UNKNOWN})
"""The kinds that ``--accept-evidence`` takes."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(certify)
    app.command()(stats)


def exit_code(verdict: Verdict, evidence: Evidence, accepted: list[str] | None) -> int:
    """Return 0 pass, 1 fail, 3 incomplete, 4 pass on evidence that is not live or accepted."""
    from retire.certify.gates import Verdict

    if verdict is Verdict.FAIL:
        return 1
    if verdict is Verdict.INCOMPLETE:
        return 3
    return 0 if evidence.ships or evidence in (accepted or []) else 4


def certify(
    path: Annotated[
        Path | None, typer.Argument(metavar="BUNDLE", help="The bundle of the full skill.")
    ] = None,
    candidate: Annotated[Path | None, typer.Option(help="The reduced SKILL.md.")] = None,
    deployment: Annotated[
        str, typer.Option(help="Who acts on the skill; replay:FILE repeats a recording.")
    ] = "",
    deployments: DeploymentsOption = None,
    stability: StabilityOption = None,
    budget: BudgetOption = None,
    launcher: LauncherOption = None,
    placement: Annotated[str, typer.Option(help="B2, B3, B4, B5 or B6.")] = "B2",
    margin: Annotated[int, typer.Option(help="Utility margin in points.")] = 10,
    repetitions: Annotated[int, typer.Option(min=1, max=1000)] = 3,
    seed: Annotated[int, typer.Option(help="Plan seed.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run; with --server, the file of the certificate."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(help="Certify on a server (its address); the token is RETIRE_TOKEN."),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="With --server: ask again for a run started before.")
    ] = None,
    insecure_http: Annotated[
        bool,
        typer.Option(
            "--insecure-http", help="With --server: plain http to another machine is all right."
        ),
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML.")] = None,
    sarif: Annotated[
        Path | None, typer.Option(help="Also write SARIF: the clauses that may not go.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write Markdown for a pull request.")
    ] = None,
    accept_evidence: Annotated[
        list[str] | None,
        typer.Option(help="Exit 0 for a pass on this kind of evidence: simulated, replayed."),
    ] = None,
    counts: Annotated[Path | None, typer.Option(help="Judge published counts instead.")] = None,
) -> None:
    """Certify one reduction: run the cells it needs, judge, explain, and sign."""
    from retire.bundle import load_bundle
    from retire.cli.asked import Asked
    from retire.cli.exporting import Exports
    from retire.deployments import EMBEDDED
    from retire.deployments.budget import read_budget

    if counts is not None:
        say(_gates_of(counts))
        return
    if path is None or candidate is None or not deployment:
        raise InputError(
            "certify needs BUNDLE, --candidate and --deployment (or --counts FILE)",
            mend="For example: retire certify bundles/panel/PRV_L01 --candidate SKILL.md "
            "--deployment plain",
        )
    # With a server --out is a file, unless a folder of that name is there.
    kept = out if server is not None and out is not None and not out.is_dir() else None
    exports = Exports(junit, sarif, markdown, kept)
    exports.clear((candidate, path))
    _check_choices(placement, accept_evidence)
    if server is None:
        _check_alone(run, insecure_http=insecure_http)
    if server is not None and (deployments or stability or budget or launcher):
        raise InputError(
            "a server's operator configures its deployments and programs; a request cannot",
            where="--server",
            mend="Leave out --deployments, --stability, --budget and --launcher",
        )
    data = read_skill(candidate)
    bundle = load_bundle(path)
    catalog, measured = EMBEDDED, read_measurements(stability)
    limit = read_budget(budget) if budget else None
    if server is None:
        catalog = chosen_catalog(deployments, read_settings())
        deployment, catalog = chosen_deployment(deployment, catalog)
    protocol = protocol_for(
        name="certify",
        bundles=(bundle.id,),
        deployments=(deployment,),
        conditions=("B1", placement),
        task_value=False,
        margin_points=margin,
        repetitions=repetitions,
        seed=seed,
    )
    asked = Asked(bundle, path, data, str(candidate), protocol, catalog, measured, limit, launcher)
    if server is None:
        words, certificate = _here(asked, out)
    else:
        words, certificate = _there(asked, server, run, out, insecure_http=insecure_http)
    say(words)
    exports.write(certificate, bundle, path)
    code = exit_code(certificate.verdict, certificate.evidence, accept_evidence)
    if code == 4:
        say(f"exit code 4: a pass on {certificate.evidence} evidence is not permission to ship")
    raise typer.Exit(code)


def _place(asked: Asked) -> Path:
    name = f"{asked.bundle.id}-{sha256(asked.candidate)[7:15]}"
    return Path("runs") / f"certify-{name}-{_file_name(asked)}"


def _gates_of(counts: Path) -> str:
    from retire.certify.counts import certify_counts, read_counts
    from retire.pages.counts import counts_table

    return counts_table(certify_counts(read_counts(read_input(counts), str(counts))))


def _file_name(asked: Asked) -> str:
    # A server's deployments may have names that make no file name.
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', asked.deployment)}-{asked.placement}"


def _here(asked: Asked, out: Path | None) -> tuple[str, Certificate]:
    """Certify on this machine; returns the words and the certificate."""
    from retire.cli.signing import write_certificates
    from retire.pages.words import certify_words
    from retire.wiring import Request, execute, missing_cells, prepare

    settings = read_settings()
    place = out or _place(asked)
    request = Request(
        asked.protocol,
        {asked.bundle.id: asked.folder},
        place,
        candidates={asked.bundle.id: asked.candidate},
        candidate_names={asked.bundle.id: asked.name},
        catalog=asked.catalog,
        stability=asked.stability,
        budget=asked.budget,
        launcher=asked.launcher,
    )
    prepared = prepare(request)
    if out is None:
        # Other margins, repetitions and seeds are other plans: each has a folder of its own.
        place = place.with_name(f"{place.name}-{prepared.plan.digest[7:15]}")
        prepared = prepare(replace(request, out=place))
    with LiveProgress(plain=settings.plain) as progress:
        finished = carry_out(execute(prepared, progress))
    written = write_certificates(finished, settings.home)
    words = certify_words(finished, Condition(asked.placement), asked.deployment, written[0])
    if (missing := missing_cells(finished)) is not None:
        say_error(missing)
    return words, finished.certificates[0]


def _there(
    asked: Asked, server: str, run: str | None, out: Path | None, *, insecure_http: bool
) -> tuple[str, Certificate]:
    """Certify on a server, and keep the certificate; returns the words and the certificate."""
    from retire.cli.exporting import make_room
    from retire.pages.words import stated_leaks, told_words

    try:
        from retire.cli.remote import certify_on_server  # an extra
    except ModuleNotFoundError as error:
        raise InputError(
            f"a server is asked through the package {error.name}, which is not installed",
            where="--server",
            mend="Install the extra `service`: pip install 'retire[service]'",
        ) from error
    settings = read_settings()
    name = f"{_file_name(asked)}.json"
    place = out or _place(asked) / name
    if place.is_dir():
        place /= name
    make_room(place, "--out")
    answered = certify_on_server(
        server, settings.token, asked, run, plain=settings.plain, insecure_http=insecure_http
    )
    write_document(place, answered.envelope)
    certificate, bundles = answered.certificate, {asked.bundle.id: asked.bundle}
    leaks = stated_leaks(certificate, answered.traces)
    return told_words(certificate, bundles, leaks, str(place)), certificate


def _check_alone(run: str | None, *, insecure_http: bool) -> None:
    """Refuse what means something with a server only: ignored, it would be believed."""
    if run is not None:
        raise InputError("a run is asked for at a server", where="--run", mend="Give --server too")
    if insecure_http:
        raise InputError(
            "without a server there is no http to allow",
            where="--insecure-http",
            mend="Give --server too, or leave it out",
        )


def _check_choices(placement: str, accepted: list[str] | None) -> None:
    if placement not in CANDIDATES:
        raise InputError(
            f"there is no placement {placement!r}",
            where="--placement",
            mend=f"Choose one of {', '.join(CANDIDATES)}",
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
    from retire.certify.counts import read_counts, recompute_tests
    from retire.pages.counts import tests_table

    say(tests_table(recompute_tests(read_counts(read_input(counts), str(counts)))))
