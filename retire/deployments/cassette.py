"""Cassettes: what live deployments answered, recorded so that a run can be repeated without them.

A cassette is gzip-compressed JSON lines. The first line is the header: the schema and, by name,
the identity of every recorded deployment. Every other line is one answer, filed under the digest
of its request, its sample and its repetition, so that repetitions stay apart. Two cells of a plan
can ask the same (two conditions that render the same text); ``place`` then tells their answers
apart. A replayed answer is the recorded one, byte for byte.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from pydantic import Field, ValidationError, field_validator

from retire.deployments.port import Call, Completion, DeploymentFault, Served
from retire.domain.digests import digest_of, sha256
from retire.domain.errors import InputError
from retire.domain.evidence import Evidence
from retire.prompts.prompt import request_digest
from sink.proposal import RawAnswer
from sink.strict_yaml import StrictModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from retire.deployments.port import Identity
    from retire.prompts import ToolSchema

LARGEST = 2**30
"""Most bytes a cassette may unpack to; a file that is read whole needs a bound."""

_RESTORE = "Restore the file as the run wrote it"
Model = TypeVar("Model", bound=StrictModel)


class _Header(StrictModel):
    schema_: Literal["retire.cassette/v1"] = Field("retire.cassette/v1", alias="schema")
    deployments: dict[str, dict[str, object]]

    @property
    def identities(self) -> Mapping[str, Identity]:
        """The recorded deployments by name."""
        return cast("Mapping[str, Identity]", self.deployments)

    @field_validator("deployments")
    @classmethod
    def _digestible(cls, value: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
        digest_of(cast("Mapping[str, Identity]", value))
        return value


class Recorded(StrictModel):
    """One recorded answer.

    ``request`` is the digest of messages and tools, ``place`` the key of the cell or development
    task, ``served`` what the server reported beside the answer.
    """

    deployment: str
    request: str
    sample: str
    repetition: int
    place: str
    answer: RawAnswer
    served: Served


@dataclass(frozen=True, slots=True)
class Cassette:
    """A cassette that has been read.

    Attributes:
        name: Its file, for messages.
        digest: SHA-256 of its unpacked bytes.
        identities: Identity of every recorded deployment, by name.
        answers: Recorded answers by deployment, request, sample and repetition.
    """

    name: str
    digest: str
    identities: Mapping[str, Identity]
    answers: Mapping[tuple[str, str, str, int], tuple[Recorded, ...]]


def pack(identities: Mapping[str, Identity], answers: Iterable[Recorded]) -> bytes:
    """Return the bytes of a cassette; the same answers in any order give the same bytes."""
    header = _Header.model_validate({"schema": "retire.cassette/v1", "deployments": identities})
    lines = sorted({_line(answer) for answer in answers})
    # No time and no name in the gzip header: equal recordings are equal files.
    return gzip.compress(b"".join([_line(header), *lines]), mtime=0)


def _line(value: StrictModel) -> bytes:
    found = value.model_dump(by_alias=True)
    text = json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"


def unpack(data: bytes, name: str) -> Cassette:
    """Read a cassette.

    Raises:
        InputError: It is no cassette, is damaged, or is too large; names file and line.
    """
    text = _decompressed(data, name)
    lines = text.removesuffix(b"\n").split(b"\n")
    if not text:
        raise InputError("the cassette is empty", where=name, mend=_RESTORE)
    header = _read(_Header, lines[0], name, 1)
    found: dict[tuple[str, str, str, int], list[Recorded]] = {}
    for number, line in enumerate(lines[1:], start=2):
        recorded = _read(Recorded, line, name, number)
        if recorded.deployment not in header.deployments:
            raise InputError(
                f"the deployment {recorded.deployment!r} is not in the header",
                where=f"{name}:{number}",
                mend=_RESTORE,
            )
        key = (recorded.deployment, recorded.request, recorded.sample, recorded.repetition)
        found.setdefault(key, []).append(recorded)
    answers = {key: tuple(items) for key, items in found.items()}
    return Cassette(name, sha256(text), header.identities, answers)


def _decompressed(data: bytes, name: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(data, LARGEST)
    except zlib.error as error:
        raise InputError(
            "this is not a cassette (gzip-compressed JSON lines), or it is damaged",
            where=name,
            mend=_RESTORE,
        ) from error
    if unpacker.unconsumed_tail:
        raise InputError(f"it unpacks to more than {LARGEST} bytes", where=name, mend=_RESTORE)
    if not unpacker.eof or unpacker.unused_data:
        raise InputError("the cassette is cut, or something follows it", where=name, mend=_RESTORE)
    return text


def _read(model: type[Model], line: bytes, name: str, number: int) -> Model:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"this is no line of a cassette ({place or 'the line'}: {first['msg']})",
            where=f"{name}:{number}",
            mend=_RESTORE,
        ) from error


class ReplayDeployment:
    """Repeats what one deployment answered; a request that was not recorded has no answer.

    Args:
        cassette: The recording.
        name: Which of its deployments.
    """

    evidence = Evidence.REPLAYED
    concurrency: int | None = None

    def __init__(self, cassette: Cassette, name: str) -> None:
        self.name = name
        self._cassette = cassette

    @property
    def identity(self) -> Identity:
        """The recording, and the deployment that was recorded."""
        recorded = self._cassette.identities[self.name]
        return {
            "provider": "replay",
            "cassette": self._cassette.digest,
            "recorded": recorded,
            "recorded_digest": digest_of(recorded),
        }

    async def open(self) -> None:
        """Need nothing."""

    async def close(self) -> None:
        """Hold nothing."""

    async def propose(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema], call: Call
    ) -> Completion:
        """Answer as recorded; raises DeploymentFault where nothing was recorded."""
        key = (self.name, request_digest(messages, tools), call.sample, call.repetition)
        recorded = self._cassette.answers.get(key, ())
        chosen = _one_of(recorded, call.place)
        if chosen is None:
            raise DeploymentFault(
                f"{self._cassette.name} holds no answer to this request "
                f"({key[1][:23]}..., {call.sample}, repetition {call.repetition})"
            )
        return Completion(chosen.answer, chosen.served)


def _one_of(recorded: Sequence[Recorded], place: str) -> Recorded | None:
    """Return the answer recorded for a place, or the only one that was ever given."""
    for item in recorded:
        if item.place == place:
            return item
    alike = all(item.answer == recorded[0].answer for item in recorded)
    return recorded[0] if recorded and alike else None
