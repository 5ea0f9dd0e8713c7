"""``retire serve``, ``retire token`` and ``retire purge``: operating the service."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from retire.cli.console import say
from retire.cli.deploying import DeploymentsOption, LauncherOption, chosen_catalog
from retire.domain.errors import InputError
from retire.settings import read_settings

DATA = Annotated[Path, typer.Option(help="Folder for runs and uploaded bundles.")]
DATABASE = Annotated[
    str | None, typer.Option(help="SQLAlchemy URL; without one, SQLite in the data folder.")
]
DEFAULT_DATA = Path("runs/service")

tokens = typer.Typer(no_args_is_help=True, help="Make, list and revoke bearer tokens.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(serve)
    app.command()(purge)
    app.add_typer(tokens, name="token")


def database_url(data: Path, database: str | None) -> str:
    """Return the service's database; the data folder is made if needed."""
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the data folder cannot be made: {error.strerror}", where=str(data)
        ) from error
    return database or f"sqlite:///{data / 'service.sqlite'}"


def serve(
    data: DATA = DEFAULT_DATA,
    database: DATABASE = None,
    bundles: Annotated[Path, typer.Option(help="Bundles the operator registers.")] = Path(
        "bundles/panel"
    ),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8400,
    runs_at_once: Annotated[int, typer.Option(min=1, max=64)] = 2,
    deployments: DeploymentsOption = None,
    launcher: LauncherOption = None,
) -> None:
    """Run the certification service."""
    from retire.service.assembly import assemble, ready_database  # an extra
    from retire.service.server import serve as run_server
    from retire.service.settings import KeeperSettings

    settings = read_settings()
    catalog = chosen_catalog(deployments, settings)
    engine = ready_database(database_url(data, database))
    keeping = KeeperSettings(
        data=data.resolve(),
        bundles=bundles.resolve(),
        home=settings.home,
        runs_at_once=runs_at_once,
        catalog=catalog,
        launcher=launcher,
    )
    run_server(assemble(engine, keeping), host, port, _say_where)


def _say_where(url: str) -> None:
    """Say the address at once: whoever started the server may wait for it behind a pipe."""
    say(f"listening on {url}")
    sys.stdout.flush()


@tokens.command("new")
def new_token(
    scope: Annotated[list[str], typer.Option(help="certify, read or admin; may be repeated.")],
    data: DATA = DEFAULT_DATA,
    database: DATABASE = None,
) -> None:
    """Make a token; its secret is shown once and only its digest is kept."""
    from retire.service.assembly import ready_database, utc_now
    from retire.service.tokens import Scope, new_secret
    from retire.store.registry import Registry

    known = {str(item) for item in Scope}
    if unknown := sorted(set(scope) - known):
        raise InputError(
            f"there is no scope {unknown[0]!r}", mend=f"Choose among {', '.join(sorted(known))}"
        )
    secret, digest = new_secret()
    name = f"token-{secrets.token_hex(6)}"
    registry = Registry(ready_database(database_url(data, database)))
    registry.add_token(name, digest, " ".join(sorted(set(scope))), utc_now())
    say(f"{name} {secret}")


@tokens.command("list")
def list_tokens(data: DATA = DEFAULT_DATA, database: DATABASE = None) -> None:
    """List tokens: id, scopes, when made, whether revoked. Never a secret."""
    from retire.service.assembly import ready_database
    from retire.store.registry import Registry

    for row in Registry(ready_database(database_url(data, database))).tokens():
        state = "revoked" if row.revoked else "valid"
        say(f"{row.id}  {row.scopes:<20}  {row.created_at}  {state}")


@tokens.command("revoke")
def revoke_token(
    token: Annotated[str, typer.Argument(help="The token's id.")],
    data: DATA = DEFAULT_DATA,
    database: DATABASE = None,
) -> None:
    """Revoke a token by its id."""
    from retire.service.assembly import ready_database
    from retire.store.registry import Registry

    if not Registry(ready_database(database_url(data, database))).revoke(token):
        raise InputError(f"there is no token {token!r}", mend="`retire token list` shows them")
    say(f"{token} is revoked")


def purge(
    run: Annotated[str, typer.Argument(help="The run's id.")],
    data: DATA = DEFAULT_DATA,
    database: DATABASE = None,
    launcher: LauncherOption = None,
) -> None:
    """Remove a run's answers, bundle copies and records; digests and outcomes stay."""
    import asyncio

    from retire.service.assembly import epoch_seconds, ready_database, utc_now
    from retire.service.keeper import RunKeeper
    from retire.service.port import ConflictError
    from retire.service.settings import KeeperSettings

    engine = ready_database(database_url(data, database))
    settings = KeeperSettings(
        data.resolve(), data.resolve(), read_settings().home, launcher=launcher
    )
    keeper = RunKeeper(engine, settings, utc_now, epoch_seconds)
    try:
        asyncio.run(keeper.purge(run, None))
    except KeyError as error:
        raise InputError(f"there is no run {run!r}", mend="GET /runs lists them") from error
    except ConflictError as error:
        raise InputError(str(error), where=run) from error
    say(f"{run}: answers, bundle copies and records are gone; digests and outcomes stay")
