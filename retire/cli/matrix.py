"""``retire matrix``: the whole plan of a protocol, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import LiveProgress, carry_out, say
from retire.cli.deploying import (
    BudgetOption,
    DeploymentsOption,
    LauncherOption,
    StabilityOption,
    chosen_catalog,
    read_measurements,
)
from retire.cli.inputs import check_deployments, option_of, read_input, reason_of
from retire.cli.world import STUB, WorldOption, instance_of
from retire.domain.errors import InputError
from retire.settings import read_settings

if TYPE_CHECKING:
    from retire.matrix import Protocol


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(matrix)


def matrix(
    out: Annotated[Path, typer.Option(help="Folder of the run; the same again resumes.")] = Path(
        "runs/panel"
    ),
    protocol: Annotated[Path, typer.Option(help="The protocol file.")] = Path(
        "bundles/protocols/panel.yaml"
    ),
    bundles: Annotated[
        list[Path] | None, typer.Option(help="Bundle folders, or folders of bundles.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=512, help="Attempts at once.")] = 16,
    seed: Annotated[int | None, typer.Option(help="Another plan seed.")] = None,
    follow_up: Annotated[bool, typer.Option("--follow-up", help="Declare B5 and B6 too.")] = False,
    figures: Annotated[bool, typer.Option(help="Draw the two figures.")] = True,
    deployments: DeploymentsOption = None,
    replay: Annotated[
        list[Path] | None, typer.Option(help="A cassette: its deployments answer as recorded.")
    ] = None,
    stability: StabilityOption = None,
    budget: BudgetOption = None,
    world: WorldOption = STUB,
    launcher: LauncherOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that is there; never begin one.")
    ] = False,
) -> None:
    """Run a protocol: reductions, every cell, tables, figures and signed certificates."""
    from retire.bundle.loading import bundles_by_id
    from retire.cli.signing import write_certificates
    from retire.deployments.assembling import read_cassette
    from retire.deployments.budget import read_budget
    from retire.matrix import load_protocol
    from retire.matrix.warnings import plan_warnings
    from retire.pages.results import closing_words, write_results
    from retire.wiring import Request, execute, prepare, require_complete

    settings = read_settings()
    catalog = chosen_catalog(deployments, settings)
    for path in replay or []:
        catalog = catalog.replaying(read_cassette(path))
    declared = changed(load_protocol(read_input(protocol), str(protocol)), seed, follow_up)
    check_deployments(declared, str(protocol), catalog)
    folders = bundles_by_id(bundles or [Path("bundles/panel")])
    missing = [key for key in declared.bundles if key not in folders]
    if missing:
        raise InputError(
            f"the protocol names bundles that are not here: {', '.join(missing)}",
            where=str(protocol),
            mend="Name their folder with --bundles",
        )
    chosen = {key: folders[key] for key in declared.bundles}
    prepared = prepare(
        Request(
            declared,
            chosen,
            out,
            concurrency,
            catalog=catalog,
            stability=read_measurements(stability),
            budget=read_budget(budget) if budget else None,
            home_assistant=instance_of(world),
            launcher=launcher,
        )
    )
    if resume and not prepared.folder.database.exists():
        raise InputError(
            "there is no run to go on with", where=str(out), mend="Leave --resume out to begin one"
        )
    say(f"plan {prepared.plan.digest}: {len(prepared.plan.cells)} cells")
    if prepared.request.home_assistant is not None:
        say("note: a house stands in one attempt at a time; cells run one after the other")
    for warning in plan_warnings(declared):
        say(f"note: {warning}")
    with LiveProgress(plain=settings.plain) as progress:
        finished = carry_out(execute(prepared, progress))
    paths = write_certificates(finished, settings.home)
    write_results(finished, figures=figures)
    say(closing_words(finished))
    say(f"{len(paths)} signed certificates in {prepared.folder.certificates}")
    require_complete(finished)


def changed(protocol: Protocol, seed: int | None, follow_up: bool) -> Protocol:
    """Return the protocol with the command line's changes, which its digest then covers."""
    from pydantic import ValidationError

    from retire.matrix import Protocol

    values = protocol.model_dump(by_alias=True)
    if seed is not None:
        values["seed"] = seed
    if follow_up:
        values["conditions"] = tuple(dict.fromkeys((*protocol.conditions, "B5", "B6")))
    try:
        return Protocol.model_validate(values)
    except ValidationError as error:
        raise InputError(reason_of(error), where=option_of(error)) from error
