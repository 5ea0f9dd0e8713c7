"""``retire export``: a run's cells as files for notebooks and for other viewers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import say
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from retire.verify.run import SealedRun


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(export)


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    parquet: Annotated[
        Path | None, typer.Option(help="Write a Parquet file, one row a cell.")
    ] = None,
    inspect: Annotated[
        Path | None,
        typer.Option(help="Write Inspect AI logs: a folder of them, or one file NAME.eval."),
    ] = None,
) -> None:
    """Write a run's cells as a table (Parquet) or as logs that another viewer opens."""
    from retire.verify.run import SealedRun

    if parquet is None and inspect is None:
        raise InputError(
            "there is nothing to write",
            where="retire export",
            mend="Name --parquet FILE, --inspect FOLDER, or both",
        )
    if parquet is not None:
        _check_name(parquet, ".parquet", "--parquet")
    if inspect is not None:
        _check_logs(inspect)
    stored = SealedRun(run)
    if parquet is not None:
        _parquet(stored, parquet)
    if inspect is not None:
        _inspect(stored, inspect)


def _parquet(run: SealedRun, path: Path) -> None:
    from retire.cli.exporting import make_room

    try:
        from retire.pages.exports.parquet import write_parquet
    except ModuleNotFoundError as error:
        raise _not_installed("Parquet files", "pyarrow", "data", error) from error
    make_room(path, "--parquet")
    rows = write_parquet(run, path)
    say(f"{path}: {rows} rows, {run.missing} of them without evidence")


def _inspect(run: SealedRun, path: Path) -> None:
    try:
        from retire.pages.exports.inspect_log import write_inspect
    except ModuleNotFoundError as error:
        raise _not_installed("Inspect AI logs", "inspect-ai", "inspect", error) from error
    written = write_inspect(run, path)
    logs = "log" if len(written) == 1 else "logs"
    samples = f"{len(run.plan.cells)} samples, {run.missing} without evidence"
    say(f"{path}: {len(written)} {logs}, {samples}")
    folder = path if path.is_dir() else path.parent
    say(f"open with: inspect view --log-dir {folder}")


def _not_installed(what: str, library: str, extra: str, error: ModuleNotFoundError) -> InputError:
    return InputError(
        f"{what} need the library {library}, and {error.name} is not installed",
        where=f"--{'parquet' if extra == 'data' else 'inspect'}",
        mend=f"Install it with: pip install 'retire[{extra}]'",
    )


def _check_name(path: Path, suffix: str, option: str) -> None:
    # The ending keeps a slip from replacing a file of the run itself.
    if path.suffix != suffix:
        raise InputError(
            f"the name does not end in {suffix}",
            where=f"{option} {path}",
            mend=f"Name a file that ends in {suffix}",
        )


def _check_logs(path: Path) -> None:
    from retire.cli.exporting import make_room

    if path.suffix == ".eval":
        make_room(path, "--inspect")
        return
    if path.exists() and not path.is_dir():
        _check_name(path, ".eval", "--inspect")
    others = [item.name for item in path.iterdir()] if path.is_dir() else []
    others = sorted(name for name in others if not name.endswith(".eval"))
    if others:
        raise InputError(
            f"the folder holds something else than logs: {others[0]}",
            where=f"--inspect {path}",
            mend="Name a new folder, or one that holds .eval files only",
        )
