"""``retire view``: the reviewer's pages over a run's folder, in a browser on this machine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from retire.cli.console import say
from retire.cli.deploying import DeploymentsOption, chosen_catalog
from retire.domain.errors import InputError
from retire.runner.purging import refuse_purged
from retire.settings import read_settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(view)


def view(
    path: Annotated[Path, typer.Argument(help="A run's folder, or a folder of such folders.")],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on loopback; 0 takes a free one.")
    ] = 8401,
    deployments: DeploymentsOption = None,
) -> None:
    """Show runs in a browser: read-only, on this machine alone, without a database server."""
    from retire.service.reviewing.library import FolderRuns  # an extra
    from retire.service.reviewing.viewing import view_app
    from retire.service.server import LOOPBACK, serve

    refuse_purged(path)
    runs = FolderRuns(path, chosen_catalog(deployments, read_settings(), asks=False))
    folders = runs.folders()
    if not folders:
        raise InputError(
            "there is no run here",
            where=str(path),
            mend="Name a folder that `retire matrix` or `retire certify` wrote, or one of such",
        )
    if len(folders) == 1:
        runs.warm()
    else:
        threading.Thread(target=runs.warm, daemon=True).start()
    serve(view_app(runs), LOOPBACK, port, lambda url: say(f"look at {url}"))
