"""The folder of a run: what lies where, and writing files that are whole or absent."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from retire.domain.document import Document


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of one run."""

    root: Path

    @property
    def database(self) -> Path:
        """The run's database."""
        return self.root / "run.sqlite"

    @property
    def processes(self) -> Path:
        """Where world, sinks, direct and observer keep their state."""
        return self.root / "processes"

    @property
    def bundles(self) -> Path:
        """The copies of the bundles that the run used."""
        return self.root / "bundles"

    @property
    def records(self) -> Path:
        """The records as they stood when their heads were signed."""
        return self.root / "records"

    @property
    def plan(self) -> Path:
        """The plan's statement."""
        return self.root / "plan.json"

    @property
    def seal(self) -> Path:
        """Signed heads, the observer's sweep, and the attempts of the run."""
        return self.root / "seal.json"

    @property
    def passes(self) -> Path:
        """For each pass of the run, the user of each program."""
        return self.root / "passes.json"

    @property
    def timings(self) -> Path:
        """Seconds spent so far, over all passes of the run."""
        return self.root / "timings.json"

    @property
    def traces(self) -> Path:
        """Trace rows, one JSON object a line."""
        return self.root / "traces.jsonl"

    @property
    def stability(self) -> Path:
        """Measurements of how its deployments repeat themselves, if the run was given any."""
        return self.root / "stability.json"

    @property
    def cassette(self) -> Path:
        """What live deployments answered, to repeat the run without them."""
        return self.root / "cassette.jsonl.gz"

    @property
    def certificates(self) -> Path:
        """Signed certificates."""
        return self.root / "certificates"

    def reduction(self, deployment: str, bundle: str) -> Path:
        """Where a reduction and its trial ledger lie."""
        return self.root / "reductions" / deployment / bundle

    def prepare(self) -> None:
        """Create the folder.

        Raises:
            InputError: It cannot be created or written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe = self.root / ".writable"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"the output folder cannot be written: {error.strerror}",
                where=str(self.root),
                mend="Choose another --out",
            ) from error

    def reopen(self) -> None:
        """Take the seal off before anything runs: it vouches for what stood there before.

        Raises:
            InputError: The folder cannot be written.
        """
        try:
            self.seal.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"the seal of the earlier pass cannot be taken off: {error.strerror}",
                where=str(self.seal),
                mend="Make the folder writable, or choose another --out",
            ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader finds all of it or the old one.

    Raises:
        InputError: The disk is full or the folder cannot be written.
    """
    write_filled(path, lambda file: file.write(data))


def write_filled(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Have a file filled so that a reader finds all of it or the old one.

    Raises:
        InputError: As :func:`write_whole`.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"the file cannot be written: {error.strerror}",
            where=str(path),
            mend="Free some space or choose another --out, then run the same command again; "
            "nothing stored is lost",
        ) from error


def write_document(path: Path, document: Document) -> None:
    """Write a document as :func:`write_json`."""
    write_json(path, document.as_json())


def write_json(path: Path, value: object) -> None:
    """Write a JSON file for people and programs: sorted keys, two spaces, a final line end."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    write_whole(path, text.encode() + b"\n")


def write_lines(path: Path, values: Iterable[Document]) -> None:
    """Write one JSON object a line, without holding more than one in memory.

    Raises:
        InputError: As :func:`write_whole`.
    """

    def fill(file: IO[bytes]) -> None:
        for value in values:
            line = json.dumps(value.as_json(), separators=(",", ":"), sort_keys=True)
            file.write(line.encode() + b"\n")

    write_filled(path, fill)


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file so that a reader finds all of it or the old one.

    Raises:
        InputError: As :func:`write_whole`.
    """

    def fill(file: IO[bytes]) -> None:
        with source.open("rb") as opened:
            shutil.copyfileobj(opened, file)

    write_filled(target, fill)


def read_bytes(path: Path) -> bytes:
    """Read a file of a run.

    Raises:
        InputError: It is missing or cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(
            "the file is missing", where=str(path), mend="Is this the folder of a finished run?"
        ) from error
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", where=str(path)) from error
