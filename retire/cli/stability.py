"""``retire stability``: does a deployment repeat itself when it is asked the same twice?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import LiveProgress, carry_out, say
from retire.cli.deploying import DeploymentsOption, chosen_catalog, chosen_deployment
from retire.domain.errors import IncompleteError
from retire.runner.folder import write_json
from retire.settings import read_settings

if TYPE_CHECKING:
    from rich.table import Table

    from retire.certify.stability import Stability


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(stability)


def stability(
    deployment: Annotated[str, typer.Option(help="Who is asked.")],
    bundles: Annotated[
        list[Path] | None, typer.Argument(help="Bundle folders, or folders of bundles.")
    ] = None,
    out: Annotated[Path, typer.Option(help="File of the measurement.")] = Path("stability.json"),
    repetitions: Annotated[int, typer.Option(min=1, max=1000)] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Plan seed.")] = 1,
    deployments: DeploymentsOption = None,
) -> None:
    """Ask every member of every bundle twice with identical input; count proposals that differ."""
    from rich.console import Console

    from retire.bundle import load_bundle
    from retire.bundle.loading import bundles_by_id
    from retire.wiring import stability_of

    settings = read_settings()
    name, catalog = chosen_deployment(deployment, chosen_catalog(deployments, settings))
    folders = bundles_by_id(bundles or [Path("bundles/panel")])
    loaded = {key: load_bundle(folder) for key, folder in folders.items()}
    asked = catalog.named(name)
    with LiveProgress(plain=settings.plain) as progress:
        measured = carry_out(stability_of(asked, loaded, seed, repetitions, progress))
    write_json(out, measured.model_dump(mode="json", by_alias=True))
    Console().print(_table(measured))
    pairs = sum(item.pairs for item in measured.bundles.values())
    say(f"{len(measured.differing)} of {pairs} pairs differ; written to {out}")
    if measured.unanswered:
        first = measured.unanswered[0]
        raise IncompleteError(
            f"{len(measured.unanswered)} pairs have no two answers ({first.cell}: {first.why})",
            where=name,
            mend="Run the same command again when the deployment answers",
        )


def _table(measured: Stability) -> Table:
    from rich.table import Table

    table = Table(
        "bundle", "pairs", "differ", title=f"{measured.deployment}: D1 on identical input"
    )
    for key, item in measured.bundles.items():
        table.add_row(key, str(item.pairs), str(item.differ))
    return table
