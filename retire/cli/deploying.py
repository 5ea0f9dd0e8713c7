"""Which deployments a command can name: options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.inputs import read_input
from retire.domain.errors import InputError
from retire.settings import read_secret

if TYPE_CHECKING:
    from retire.certify.stability import Stability
    from retire.deployments import Catalog
    from retire.settings import Settings

StabilityOption = Annotated[
    list[Path] | None,
    typer.Option("--stability", help="What `retire stability` measured; certificates state it."),
]
BudgetOption = Annotated[
    str | None,
    typer.Option("--budget", help="Stop before it is passed: '5 EUR', '200 calls', '1M tokens'."),
]
DeploymentsOption = Annotated[
    Path | None,
    typer.Option("--deployments", help="Deployments file (or RETIRE_DEPLOYMENTS)."),
]

LauncherOption = Annotated[
    Path | None,
    typer.Option(
        "--launcher", help="Socket of a launcher that starts the programs as several users."
    ),
]


def chosen_catalog(file: Path | None, settings: Settings, *, asks: bool = True) -> Catalog:
    """Return the deployments of a command.

    Args:
        file: What ``--deployments`` names.
        settings: The environment; its file is taken where the option names none.
        asks: Whether models will be asked; otherwise no key needs to be there.

    Raises:
        InputError: The file cannot be used.
    """
    from retire.deployments.assembling import catalog_of

    return catalog_of(file or settings.deployments, settings.models, read_secret if asks else None)


def read_measurements(paths: list[Path] | None) -> tuple[Stability, ...]:
    """Read what ``--stability`` names; raises InputError where a file is no measurement."""
    from retire.certify.stability import read_stability

    return tuple(read_stability(read_input(path), str(path)) for path in paths or [])


def chosen_deployment(name: str, catalog: Catalog) -> tuple[str, Catalog]:
    """Return the name of a deployment and the catalog it is in; ``replay:FILE`` opens a recording.

    Raises:
        InputError: The recording cannot be used, or holds several deployments.
    """
    from retire.deployments.assembling import REPLAY, read_cassette

    if not name.startswith(REPLAY):
        return name, catalog
    cassette = read_cassette(Path(name.removeprefix(REPLAY)))
    if len(cassette.identities) != 1:
        raise InputError(
            f"the recording holds {len(cassette.identities)} deployments "
            f"({', '.join(sorted(cassette.identities))})",
            where=cassette.name,
            mend="Repeat the whole run: retire matrix --replay FILE",
        )
    return next(iter(cassette.identities)), catalog.replaying(cassette)
