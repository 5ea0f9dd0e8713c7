"""What callers may send: strict forms, unknown fields refused, no endpoint and no credential."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from retire.certify.envelope import SignedEnvelope
from retire.domain.cell import CandidateName
from retire.domain.document import as_document
from retire.service.problems import Fault, Kind, ProblemError, field_problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic_core import ErrorDetails

CANDIDATE_LIMIT = 256 * 1024
"""Most characters of a candidate: many times any skill, and still parsed in a second or so."""

NAME = r"^[!-~]{1,128}$"
RUN_ID = r"^[A-Za-z0-9_-]{1,64}$"
TRACE_ID = r"^[A-Za-z0-9_-]{1,64}\.[0-9]{1,15}$"
CERTIFICATE_ID = r"^[A-Za-z0-9_.:-]{1,128}$"
LARGEST_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8259, section 6)."""


class Terms(BaseModel):
    """What a certification is judged by; common to JSON and multipart."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    deployment: str = Field(pattern=NAME, description="A name that `GET /deployments` lists.")
    placement: CandidateName = Field(
        default="B2", description="Where the candidate's conditions stand (paper, table 1)."
    )
    margin: int = Field(default=10, ge=0, le=100, description="Utility margin, percentage points.")
    repetitions: int = Field(default=3, ge=1, le=1000, description="Runs of each cell.")
    seed: int = Field(default=1, ge=0, le=LARGEST_INTEGER, description="Seed of the plan.")
    reduce: bool = Field(
        default=False, description="Let the run make the candidate. Else send `candidate`."
    )


class CertifyRequest(Terms):
    """``POST /certify`` as JSON: a registered bundle, and the text of the candidate."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "required": ["candidate"],
                    "properties": {"candidate": {"type": "string"}, "reduce": {"const": False}},
                },
                {
                    "required": ["reduce"],
                    "properties": {"candidate": {"type": "null"}, "reduce": {"const": True}},
                },
            ]
        }
    )

    bundle: str = Field(pattern=NAME, description="Id of a registered bundle.")
    candidate: str | None = Field(
        default=None,
        min_length=1,
        max_length=CANDIDATE_LIMIT,
        description="Text of the reduced `SKILL.md`.",
    )

    @model_validator(mode="after")
    def _one_candidate(self) -> CertifyRequest:
        if self.reduce == (self.candidate is not None):
            raise ValueError('send either "candidate" or "reduce": true')
        return self


EXAMPLE = CertifyRequest(bundle="PRV_L01", reduce=True, deployment="plain", placement="B4")


class UploadRequest(Terms):
    """The text parts of ``POST /certify`` as multipart; archive and candidate are files."""

    bundle: str | None = Field(
        default=None, pattern=NAME, description="Id of a registered bundle, without `archive`."
    )


def read_certify_request(value: object) -> CertifyRequest:
    """Check the JSON body of ``POST /certify``.

    Raises:
        ProblemError: 422, naming every field at fault.
    """
    try:
        return CertifyRequest.model_validate(value)
    except ValidationError as error:
        raise invalid(error.errors(include_input=False, include_url=False)) from error


def read_upload_request(fields: Mapping[str, str], files: Collection[str]) -> UploadRequest:
    """Check the parts of a multipart ``POST /certify``.

    Args:
        fields: The text parts.
        files: Names of the file parts, ``archive`` and ``candidate`` among them or not.

    Raises:
        ProblemError: 422, naming every field at fault.
    """
    # Parts are text: integers and booleans are read by the rules of their type, nothing wider.
    values = {name: _plain(name, text) for name, text in fields.items()}
    try:
        terms = UploadRequest.model_validate(values)
    except ValidationError as error:
        raise invalid(error.errors(include_input=False, include_url=False)) from error
    if (terms.bundle is None) == ("archive" not in files):
        raise field_problem("archive", 'send either "archive" or "bundle"')
    if terms.reduce == ("candidate" in files):
        raise field_problem("candidate", 'send either "candidate" or "reduce": true')
    return terms


def _plain(name: str, text: str) -> str | int | bool:
    if name in {"margin", "repetitions", "seed"} and text.isascii() and text.isdigit():
        # Twenty digits exceed every bound, and int() refuses thousands of them.
        return int(text[:20])
    if name == "reduce" and text in {"true", "false"}:
        return text == "true"
    return text


def invalid(errors: Sequence[ErrorDetails], *, framework: bool = False) -> ProblemError:
    """Return the problem of a form's errors, as pydantic lists them.

    Args:
        errors: ``loc``, ``type`` and ``msg`` of each.
        framework: Whether ``loc`` is ``(query or path or header, name, ...)`` as FastAPI gives it.
    """
    by_field: dict[str | None, Fault] = {}
    for error in errors:
        fault = _fault(error, error["loc"][1:2] if framework else error["loc"])
        by_field.setdefault(fault.field, fault)
    faults = list(by_field.values())
    first = faults[0]
    detail = f"{first.field}: {first.message}" if first.field else first.message
    return ProblemError(Kind.INVALID, detail, faults=faults)


def _fault(error: ErrorDetails, place: Sequence[object]) -> Fault:
    field = ".".join(str(item) for item in place)[:200] or None
    if error["type"] == "extra_forbidden":
        return Fault(
            "this request has no such field",
            field=field,
            mend="Requests carry no endpoint and no credential; operators configure deployments",
        )
    message = str(error["msg"]).removeprefix("Value error, ")
    return Fault(message, field=field)


class SignatureEntry(BaseModel):
    """One signature of an envelope."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    keyid: str = Field(max_length=256)
    sig: str = Field(min_length=1, max_length=4096)


class SignerEntry(BaseModel):
    """The public key that the certifier put beside its signature, in hexadecimal digits."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ed25519: str = Field(pattern=r"^[0-9a-fA-F]{64}$")


class EnvelopeRequest(BaseModel):
    """``POST /verify``: a certificate as ``GET /certificates/{id}`` gives it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    payload: str = Field(min_length=1, pattern=r"^[A-Za-z0-9+/=_-]+$")
    payload_type: Literal["application/vnd.in-toto+json"] = Field(alias="payloadType")
    signatures: list[SignatureEntry] = Field(min_length=1, max_length=16)
    signer: SignerEntry


def check_envelope(value: object) -> SignedEnvelope:
    """Return the envelope of ``POST /verify`` when it has the form of a certificate's.

    Raises:
        ProblemError: 422, naming every field at fault.
    """
    try:
        asked = EnvelopeRequest.model_validate(value)
    except ValidationError as error:
        raise invalid(error.errors(include_input=False, include_url=False)) from error
    return as_document(SignedEnvelope, asked.model_dump(by_alias=True))
