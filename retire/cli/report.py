"""``retire report``: a finished run as one HTML file and one PDF for people who get a mail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import say
from retire.domain.errors import InputError
from retire.runner.folder import RunFolder, write_whole
from retire.runner.purging import refuse_purged

if TYPE_CHECKING:
    from collections.abc import Callable

    from retire.pages.report.content import Report


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write; without it, report/ in the run's folder.")
    ] = None,
    deployment: Annotated[
        str, typer.Option(help="Report on this deployment only; without it on all.")
    ] = "",
    pdf: Annotated[bool, typer.Option(help="Write the PDF too.")] = True,
) -> None:
    """Write report.html and report.pdf: the verdict, why, and every leaking cell."""
    forms = _forms(pdf=pdf)
    content = _read(run, deployment)
    folder = out if out is not None else run / "report"
    made = {name: draw(content) for name, draw in forms.items()}
    for name, data in made.items():
        write_whole(folder / name, data)
    say(f"{content.headline}. {content.sentence}")
    say(f"{folder}: {', '.join(made)}")


def _forms(*, pdf: bool) -> dict[str, Callable[[Report], bytes]]:
    """Return what draws each file; the libraries behind it are optional."""
    try:
        from retire.pages.report.page import report_html

        forms: dict[str, Callable[[Report], bytes]] = {"report.html": report_html}
        if pdf:
            from retire.pages.report.document import report_pdf

            forms["report.pdf"] = report_pdf
    except ModuleNotFoundError as error:
        without = ", or add --no-pdf" if error.name and "reportlab" in error.name else ""
        raise InputError(
            f"a report needs the library {error.name}, which is not installed",
            where="retire report",
            mend=f"Install it with: pip install 'retire[report]'{without}",
        ) from error
    return forms


def _read(run: Path, deployment: str) -> Report:
    from retire.pages.report.content import report as content_of
    from retire.service.reviewing.opening import sealed_review
    from retire.verify.run import SealedRun

    refuse_purged(run)
    if not RunFolder(run).seal.exists():
        raise InputError(
            "there is no finished run here",
            where=str(run),
            mend="Name a run's folder; one that was cut goes on with the command that began it",
        )
    name = run.resolve().name
    return content_of(sealed_review(name, name, SealedRun(run)), deployment)
