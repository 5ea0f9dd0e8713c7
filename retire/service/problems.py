"""Problems as RFC 9457 documents: one table of kinds, one exception, no traceback."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.json_schema import SkipJsonSchema

from retire.bundle import FILES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.domain.document import JsonData
    from retire.domain.errors import RetireError

_Item = TypeVar("_Item")
Known: TypeAlias = _Item | SkipJsonSchema[None]
"""What a document leaves out where it is not known."""

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:problem-type:retire:"
COME_BACK_SECONDS = 5
"""When a caller may try again while a part of the service does not work."""


@dataclass(frozen=True, slots=True)
class _Kind:
    slug: str
    status: int
    title: str


class Kind(Enum):
    """Every kind of problem, with its status and title; `docs/service.md` explains each."""

    MALFORMED = _Kind("malformed-request", 400, "The request cannot be read")
    UNAUTHORIZED = _Kind("unauthorized", 401, "A valid token is needed")
    FORBIDDEN = _Kind("forbidden", 403, "The token has not the scope for this call")
    NOT_FOUND = _Kind("not-found", 404, "There is nothing here that this token may see")
    METHOD = _Kind("method-not-allowed", 405, "This method is not offered here")
    TIMEOUT = _Kind("body-too-slow", 408, "The body did not arrive in time")
    CONFLICT = _Kind("conflict", 409, "The request contradicts an earlier one")
    TOO_LARGE = _Kind("too-large", 413, "The body is larger than this call allows")
    MEDIA_TYPE = _Kind("unsupported-media-type", 415, "The body has another media type")
    INVALID = _Kind("invalid-request", 422, "A field cannot be used")
    UNUSABLE = _Kind("unusable-input", 422, "A file, bundle or candidate cannot be used")
    UNSOUND = _Kind("unsound-bundle", 422, "The bundle has faults")
    CONTRADICTED = _Kind("contradicted-evidence", 422, "The evidence contradicts itself")
    RATE = _Kind("rate-limited", 429, "Too many calls")
    STREAMS = _Kind("too-many-streams", 429, "Too many event streams with this token")
    INTERNAL = _Kind("internal-error", 500, "The service failed; the fault is not yours")
    UNAVAILABLE = _Kind("unavailable", 503, "A part of the service is not working")

    @property
    def uri(self) -> str:
        """The problem's ``type``."""
        return TYPE_PREFIX + self.value.slug

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.value.status

    @property
    def title(self) -> str:
        """The problem's ``title``."""
        return self.value.title


_KIND_BY_STATUS = {
    400: Kind.MALFORMED,
    404: Kind.NOT_FOUND,
    405: Kind.METHOD,
    413: Kind.TOO_LARGE,
    415: Kind.MEDIA_TYPE,
}


def kind_of_status(status: int) -> Kind:
    """Return the kind for a status that the framework chose."""
    return _KIND_BY_STATUS.get(status, Kind.INTERNAL if status >= 500 else Kind.MALFORMED)


@pydantic_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Fault:
    """One thing that was wrong, and where: a field of the request, or a place in a bundle."""

    message: str
    field: Known[str] = None
    file: Known[str] = None
    line: Known[int] = None
    clause: Known[str] = None
    mend: Known[str] = None
    severity: Known[str] = None

    def as_json(self) -> dict[str, str | int]:
        """Return what is known of it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Problem(BaseModel):
    """RFC 9457. `type` is explained in docs/service.md; `instance` finds the log."""

    type: str = Field(json_schema_extra={"enum": [kind.uri for kind in Kind]})
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    instance: str
    checks: Known[dict[str, bool]] = None
    errors: Known[tuple[Fault, ...]] = None


class ProblemError(Exception):
    """Ends a request with a problem.

    Args:
        kind: Which problem.
        detail: What was wrong this time, as a sentence without a full stop.
        faults: Each thing at fault.
        headers: Headers that the answer carries.
        extra: Further members of the document.
    """

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, JsonData] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.faults = tuple(faults)
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})

    def document(self, request_id: str) -> dict[str, JsonData]:
        """Return the problem as JSON; ``request_id`` finds the call in the log."""
        known = Problem(
            type=self.kind.uri,
            title=self.kind.title,
            status=self.kind.status,
            detail=self.detail,
            instance=f"urn:uuid:{request_id}",
            errors=self.faults or None,
        )
        return {**known.model_dump(mode="json", exclude_none=True), **self.extra}


def problem_response(problem: ProblemError, request_id: str) -> JSONResponse:
    """Return the answer for a problem."""
    return JSONResponse(
        problem.document(request_id),
        status_code=problem.kind.status,
        headers=problem.headers,
        media_type=MEDIA_TYPE,
    )


def unavailable(detail: str, faults: Sequence[Fault] = ()) -> ProblemError:
    """Return the problem of a part that does not work now; it says when to come back."""
    headers = {"Retry-After": str(COME_BACK_SECONDS)}
    return ProblemError(Kind.UNAVAILABLE, detail, faults=faults, headers=headers)


def field_problem(field: str, message: str, mend: str | None = None) -> ProblemError:
    """Return the problem of one field that cannot be used."""
    fault = Fault(message, field=field, mend=mend)
    return ProblemError(Kind.INVALID, f"{field}: {message}", faults=[fault])


_FILE = re.compile(rf"(?:^|[/\s])({'|'.join(re.escape(name) for name in FILES)})(?::(\d+))?")
_CLAUSE = re.compile(r"\b(c\d{3,})\b")
_OPTION = re.compile(r"^--([a-z-]+)$")
_FOLDERS = re.compile(r"(?<![\w.:/])/(?:[^\s:'\"/]+/)+")


def without_folders(text: str) -> str:
    """Return text without the folders of absolute paths: a caller learns no path of the server."""
    return _FOLDERS.sub("", text)


def fault_at(where: str, what: str, mend: str, severity: str | None = None) -> Fault:
    """Return a fault of the product with its place taken apart.

    Args:
        where: A place as the product's errors name it: ``folder/SKILL.md:12``, ``--deployment``,
            a clause, an entry of an archive.
        what: What was wrong.
        mend: How to mend it; may be empty.
        severity: ``error`` or ``warning`` of a lint report.
    """
    message = without_folders(what)
    advice = without_folders(mend) or None
    option = _OPTION.match(where)
    if option:
        return Fault(message, field=option[1].replace("-", "_"), mend=advice, severity=severity)
    file = _FILE.search(where)
    clause = _CLAUSE.search(where[file.end() :] if file else where) or _CLAUSE.search(message)
    rest = without_folders(where[file.end() :] if file else where).strip(" :")
    if rest and not (clause and rest == clause[1]):
        message = f"{rest}: {message}"
    return Fault(
        message,
        file=file[1] if file else None,
        line=int(file[2]) if file and file[2] else None,
        clause=clause[1] if clause else None,
        mend=advice,
        severity=severity,
    )


def problem_of(error: RetireError, kind: Kind) -> ProblemError:
    """Return the problem of an error of the product."""
    fault = fault_at(error.where, error.what, error.mend)
    place = fault.file or fault.field
    return ProblemError(
        kind, f"{place}: {fault.message}" if place else fault.message, faults=[fault]
    )
