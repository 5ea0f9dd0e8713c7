"""``retire``: the commands, and the one place where an error becomes an exit code."""

from __future__ import annotations

import sys

import typer

from retire.cli import (
    approve,
    bench,
    bundles,
    certify,
    deployments,
    export,
    matrix,
    models,
    report,
    service,
    stability,
    verify,
    view,
    world,
)
from retire.cli.console import say_error
from retire.domain.errors import RetireError

app = typer.Typer(
    name="retire",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Certify whether text may be removed from the skills of agents that act on devices.",
)
bundles.register(app)
certify.register(app)
matrix.register(app)
bench.register(app)
models.register(app)
deployments.register(app)
stability.register(app)
export.register(app)
report.register(app)
verify.register(app)
view.register(app)
service.register(app)
approve.register(app)
world.register(app)


def run() -> None:
    """Run the command line; every error of ours ends as one paragraph and its exit code."""
    try:
        app()
    except RetireError as error:
        say_error(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    run()
