"""``--junit``, ``--sarif`` and ``--markdown``: files for build servers and pull requests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from retire.domain.errors import InputError
from retire.pages.exports import junit_xml, markdown_comment, sarif_log
from retire.runner.folder import write_json, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import PurePath

    from retire.bundle import Bundle
    from retire.certify.certificate import Certificate


@dataclass(frozen=True, slots=True)
class Exports:
    """Where each form goes; None leaves it out.

    ``certificate`` is written by whoever has it, and cleared with the others.
    """

    junit: Path | None
    sarif: Path | None
    markdown: Path | None
    certificate: Path | None = None

    def clear(self, inputs: Sequence[Path]) -> None:
        """Remove what an earlier run left: a stale file is never taken for this run's.

        Args:
            inputs: Files and folders that the run reads; none of them is ever removed.

        Raises:
            InputError: A file cannot be written there.
        """
        for option, path in (
            ("--junit", self.junit),
            ("--sarif", self.sarif),
            ("--markdown", self.markdown),
            ("--out", self.certificate),
        ):
            if path is None:
                continue
            if any(path.resolve().is_relative_to(read.resolve()) for read in inputs):
                raise InputError(
                    "that is what the run reads",
                    where=f"{option} {path}",
                    mend="Name another file to write",
                )
            make_room(path, option)

    def write(self, certificate: Certificate, bundle: Bundle, folder: Path) -> None:
        """Write every form that was asked for.

        Raises:
            InputError: A file cannot be written.
        """
        skill = bundle.skill
        if self.junit is not None:
            write_whole(self.junit, junit_xml(certificate, skill))
        if self.sarif is not None:
            log = sarif_log(certificate, skill, from_here(folder / "SKILL.md"))
            write_json(self.sarif, log)
        if self.markdown is not None:
            write_whole(self.markdown, markdown_comment(certificate, skill).encode("utf-8"))


def make_room(path: Path, option: str) -> None:
    """Make the folder of a file that will be written, and remove the file if it is there.

    Raises:
        InputError: It cannot be written there.
    """
    where = f"{option} {path}"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError("that is no regular file", where=where, mend="Name a file to write")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", where=where, mend="Check the path"
        ) from error


def from_here(path: Path) -> PurePath:
    """Return a path relative to the working folder where it lies below it, else absolute."""
    whole = path.resolve()
    here = Path.cwd().resolve()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole
