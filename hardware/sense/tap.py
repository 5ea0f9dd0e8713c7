"""The observer's end of a recipient's tap: which streams arrived, and their bytes."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from pydantic import ValidationError

from hardware.bench.messages import Answer, Question
from observer.port import SensorError

if TYPE_CHECKING:
    from pathlib import Path

    from hardware.bench.messages import TappedStream

_SECONDS = 5.0
_MAX_HEADER = 4_194_304
_MAX_BYTES = 67_108_864


class Tap:
    """Reads a recipient; one connection per question."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def streams(self) -> tuple[TappedStream, ...]:
        """Return every stream that arrived; raises SensorError where that cannot be read."""
        answer, _ = self._ask(Question())
        return answer.sessions

    def chunks(self, number: int) -> list[tuple[float, bytes]]:
        """Return the reads of one stream with their arrival; raises SensorError."""
        answer, payload = self._ask(Question(session=number))
        if answer.session is None or answer.session.chunks is None:
            raise SensorError("the recipient gave no reads of the stream")
        if sum(length for _, length in answer.session.chunks) != len(payload):
            raise SensorError("the recipient gave fewer bytes than it announced")
        found, position = [], 0
        for at, length in answer.session.chunks:
            found.append((at, payload[position : position + length]))
            position += length
        return found

    def _ask(self, question: Question) -> tuple[Answer, bytes]:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_SECONDS)
                connection.connect(str(self._path))
                connection.sendall(question.model_dump_json().encode() + b"\n")
                with connection.makefile("rb") as told:
                    answer = Answer.model_validate_json(told.readline(_MAX_HEADER))
                    payload = told.read(_MAX_BYTES)
        except (OSError, ValidationError) as error:
            raise SensorError(f"the recipient cannot be read: {type(error).__name__}") from error
        if answer.error:
            raise SensorError(answer.error)
        return answer, payload
