"""What the programs of a camera bench tell each other: files, a stream's first line, the tap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003  # in a dataclass field

from pydantic import ConfigDict, FiniteFloat, TypeAdapter, ValidationError, with_config

from hardware.strict import Strict, fault_of


class Chain(Strict):
    """What the launcher tells the acting programs: the instance file, and each recipient's port."""

    instance: Path
    recipients: dict[str, int]


@with_config(ConfigDict(extra="forbid", strict=True))
@dataclass(frozen=True, slots=True)
class CameraSetup:
    """What the launcher tells the observer.

    Attributes:
        tap: The recipient's socket.
        target: What the contract calls the camera.
        evidence: File that receives one line for each attempt read.
        device: Address of the camera where it keeps a log, or None.
        placeholders: SHA-256 of pictures that stand in for a missing view.
        keep: Folder for the pictures themselves, or None: then hashes alone are kept.
    """

    tap: Path
    target: str
    evidence: Path
    device: str | None = None
    placeholders: tuple[str, ...] = ()
    keep: Path | None = None

    @classmethod
    def read(cls, path: Path) -> CameraSetup:
        """Read the launcher's file; raises OSError where it cannot be used."""
        try:
            return SETUP.validate_json(path.read_bytes())
        except ValidationError as error:
            raise OSError(f"{path}: the camera setup cannot be used: {fault_of(error)}") from error


SETUP = TypeAdapter(CameraSetup)


class Header(Strict):
    """The line before a stream's bytes; ``granted`` is how long it may still go on, in seconds."""

    attempt: str
    content_type: str
    granted: FiniteFloat | None


@with_config(ConfigDict(extra="forbid", strict=True))
@dataclass(slots=True)
class Stream:
    """One stream that a recipient received; times on the recipient's clock, in seconds.

    Attributes:
        number: Counted from 1 by the recipient.
        recipient: The name of the door it came through.
        attempt: For which attempt the sender said it was.
        granted: Seconds from its opening until the permission ended, as the sender said.
        closed: None while it is open.
        ended: The recipient's words for how it ended.
        satisfied: Whether the recipient ended it, having what it wanted.
    """

    number: int
    recipient: str
    attempt: str
    content_type: str
    granted: float | None
    opened: float
    closed: float | None = None
    ended: str = ""
    satisfied: bool = False


@dataclass(slots=True)
class TappedStream(Stream):
    """A stream as it is told at the tap: arrival and length of each read, while they are held."""

    chunks: tuple[tuple[float, int], ...] | None = None


class Question(Strict):
    """Asks at the tap for every stream, or for one with its bytes behind the answer."""

    session: int | None = None


class Answer(Strict):
    """What the tap tells."""

    sessions: tuple[TappedStream, ...] = ()
    session: TappedStream | None = None
    error: str = ""
