"""The OpenAPI document: an example for every call, every answer named, problems included."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from retire.certify.envelope import PAYLOAD_TYPE, Signature, SignedEnvelope, Signer
from retire.domain.cell import Cell, Condition, Sample
from retire.domain.outcome import D2Outcome
from retire.domain.run_state import RunState
from retire.domain.trace import (
    D2,
    D3,
    CellName,
    Microseconds,
    ProposalStage,
    RecordEntry,
    Trace,
)
from retire.service.answers import run_answer
from retire.service.port import BundleRow, RunRow, TraceAnswer
from retire.service.problems import MEDIA_TYPE, Fault, Kind, Problem, ProblemError
from retire.service.requests import CertifyRequest, EnvelopeRequest
from sink.proposal import RawAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fastapi import APIRouter, FastAPI
    from pydantic import BaseModel

    from retire.domain.document import JsonData
    from retire.service.answers import RunAnswer

Json: TypeAlias = "dict[str, JsonData]"
Responses: TypeAlias = "dict[int | str, dict[str, Any]]"
"""What FastAPI takes as the ``responses`` of a call."""

DIGEST = "sha256:9f2b1f0e6f4d3f6a9c1c0b8f57d8a1d4e2c6b7a8f9e0d1c2b3a4f5e6d7c8b9a0"
RUN = "r-3f9a1c2b7d"
CERTIFICATE = "k-51be02d9aa"
REQUEST_ID = "7b0a4c1e-5d0f-4f35-9b57-0c6a2b1f4e11"

EXAMPLE_ROW = RunRow(
    id=RUN,
    owner="t-house-pipeline",
    state=RunState.RUNNING,
    plan_digest=DIGEST,
    bundle="PRV_L01",
    deployment="plain",
    placement="B4",
    cells_planned=24,
    cells_done=9,
    stages={"d1_proposal": 8, "d1_refusal": 1, "d2_allow": 3, "d2_deny": 3},
    created_at="2026-01-05T09:30:00Z",
    ended_at=None,
    verdict=None,
    certificate=None,
    error=None,
)
TRACE_EXAMPLE = TraceAnswer(
    id=f"{RUN}.7",
    run=RUN,
    seq=7,
    prev=DIGEST,
    hash=DIGEST,
    body=Trace(
        schema="retire.trace/v1",
        cell=CellName.of(
            Cell(Sample.AUDIT, "plain", "PRV_L01", Condition.B4, "invalid_principal", 1)
        ),
        attempt="5f0c7a3be1d94c68a2f4d1b09e8c7a36",
        attempt_number=1,
        earlier_attempts=(),
        episode=DIGEST,
        seed=1,
        prompt=DIGEST,
        answer=RawAnswer(mode="json", text='{"tool": "open_stream"}', finish_reason="stop"),
        answer_digest=DIGEST,
        d1=ProposalStage(outcome="proposal", rule="", tool="open_stream", arguments={}),
        d2=D2(
            outcome=D2Outcome.DENY,
            basis="",
            reason="principal_mismatch",
            detail="",
            parameter="",
            predicates={"principal": False},
            record=RecordEntry(seq=7, hash=DIGEST),
            act=None,
        ),
        d3=D3(
            attempt="5f0c7a3be1d94c68a2f4d1b09e8c7a36",
            effect=DIGEST,
            complete=True,
            intended=False,
            protected=False,
            evidence_class="target_state_read",
            protected_seqs=(),
            journal=0,
            last_seq=0,
            other_changes=0,
            reason="",
            record=RecordEntry(seq=7, hash=DIGEST),
        ),
        snapshot=DIGEST,
        contract=DIGEST,
        effect=DIGEST,
        microseconds=Microseconds(freeze=310, deployment=840, decision=420, observation=630),
    ),
)
ENVELOPE_EXAMPLE = SignedEnvelope(
    payload="eyJfdHlwZSI6Imh0dHBzOi8vaW4tdG90by5pby9TdGF0ZW1lbnQvdjEifQ==",
    payloadType=PAYLOAD_TYPE,
    signatures=(Signature(keyid="9f2b1f0e", sig="bm90IGEgcmVhbCBzaWduYXR1cmU="),),
    signer=Signer(ed25519="d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
)
BUNDLE_EXAMPLE = BundleRow(
    id="PRV_L01",
    title="Living-room camera stream",
    family="privacy-sensitive sensing",
    clauses=32,
    digests={"skill": DIGEST, "contract": DIGEST},
)

_FAULTS = {
    Kind.INVALID: Fault("Input should be less than or equal to 100", field="margin"),
    Kind.UNUSABLE: Fault(
        "the candidate adds a clause", file="SKILL.md", line=14, clause="c007", mend="Remove it"
    ),
    Kind.UNSOUND: Fault(
        "no clause states predicate owner_consent", file="ledger.yaml", severity="error"
    ),
}

_COMPONENT = "#/components/schemas/{model}"

EVERYWHERE = (
    Kind.UNAUTHORIZED,
    Kind.FORBIDDEN,
    Kind.TOO_LARGE,
    Kind.INVALID,
    Kind.RATE,
    Kind.INTERNAL,
    Kind.UNAVAILABLE,
)
"""What every closed call may answer."""

WITH_BODY = (Kind.MALFORMED, Kind.TIMEOUT, Kind.MEDIA_TYPE)
"""What a call with a body may answer besides."""


def run_example(**changed: object) -> RunAnswer:
    """Return the example of a run, some members of it changed."""
    return run_answer(EXAMPLE_ROW.model_copy(update=changed))


def header(description: str, kind: str = "string") -> Json:
    """Return the description of an answer's header."""
    return {"description": description, "schema": {"type": kind}}


def answers(
    examples: Mapping[int, tuple[str, BaseModel | None]],
    *kinds: Kind,
    headers: Mapping[str, Json] | None = None,
) -> Responses:
    """Return FastAPI's ``responses`` of a closed call.

    Args:
        examples: Description and example by status; an example of None means no JSON body.
        kinds: Problems besides those that every closed call may answer.
        headers: Headers of the successful answers.
    """
    found: Responses = {}
    for status, (description, example) in examples.items():
        found[status] = {"description": description}
        if example is not None:
            shown = example.model_dump(mode="json", by_alias=True)
            found[status]["content"] = {"application/json": {"example": shown}}
        if headers:
            found[status]["headers"] = dict(headers)
    return {**found, **problem_answers(*EVERYWHERE, *kinds)}


def problem_answers(*kinds: Kind) -> Responses:
    """Return the ``responses`` of problems, kinds of one status together."""
    by_status: dict[int, list[Kind]] = {}
    for kind in kinds:
        by_status.setdefault(kind.status, []).append(kind)
    return {status: _problem_answer(together) for status, together in by_status.items()}


def _problem_answer(kinds: list[Kind]) -> Json:
    answer: Json = {
        "description": "; or: ".join(kind.title for kind in kinds),
        "content": {
            MEDIA_TYPE: {
                "schema": schema_reference(Problem),
                "examples": {kind.value.slug: {"value": _problem_example(kind)} for kind in kinds},
            }
        },
    }
    if kinds[0].status == 401:
        answer["headers"] = {"WWW-Authenticate": header("How to present a token.")}
    if kinds[0].status in {429, 503}:
        answer["headers"] = {"Retry-After": header("Seconds to wait.", "integer")}
    return answer


def _problem_example(kind: Kind) -> Json:
    fault = _FAULTS.get(kind)
    detail = fault.message if fault else kind.title
    return ProblemError(kind, detail, faults=[fault] if fault else ()).document(REQUEST_ID)


def schema_reference(model: type[BaseModel]) -> Json:
    """Return the reference to a model in the document's components."""
    return {"$ref": _COMPONENT.format(model=model.__name__)}


def json_body(model: type[BaseModel], example: BaseModel) -> Json:
    """Return ``openapi_extra`` of a call with a JSON body that it reads itself."""
    shown = example.model_dump(mode="json", by_alias=True, exclude_none=True)
    content: Json = {"schema": schema_reference(model), "example": shown}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def openapi_document(
    app: FastAPI, routers: Iterable[APIRouter], open_paths: frozenset[str]
) -> Json:
    """Return the OpenAPI document of the service.

    Args:
        app: The application with all its routes.
        routers: Where the described calls are found.
        open_paths: Paths that need no token.
    """
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    _, read_here = models_json_schema(
        [
            (CertifyRequest, "validation"),
            (EnvelopeRequest, "validation"),
            (Problem, "serialization"),
        ],
        ref_template=_COMPONENT,
    )
    components = document.setdefault("components", {})
    components.setdefault("schemas", {}).update(read_here["$defs"])
    components["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token that `retire token` made. Scopes: read, certify, admin.",
        }
    }
    for path, item in document["paths"].items():
        for operation in item.values():
            operation["security"] = [] if path in open_paths else [{"token": []}]
    _restore_nulls(routers, document["paths"])
    return document


def _restore_nulls(routers: Iterable[APIRouter], paths: Mapping[str, Any]) -> None:
    """Give examples their null members back: FastAPI drops every null of a document."""
    for route in chain.from_iterable(router.routes for router in routers):
        if not isinstance(route, APIRoute):
            continue
        for method in route.methods or ():
            answered = paths[route.path_format][method.lower()]["responses"]
            for status, told in route.responses.items():
                for kind, media in told.get("content", {}).items():
                    answered[str(status)]["content"][kind].update(media)
