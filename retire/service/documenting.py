"""The OpenAPI document: an example for every call, every answer named, problems included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from retire.service.problems import MEDIA_TYPE, Fault, Kind, ProblemError
from retire.service.requests import CertifyRequest, EnvelopeRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI
    from pydantic import BaseModel

DIGEST = "sha256:9f2b1f0e6f4d3f6a9c1c0b8f57d8a1d4e2c6b7a8f9e0d1c2b3a4f5e6d7c8b9a0"
RUN = "r-3f9a1c2b7d"
CERTIFICATE = "k-51be02d9aa"
REQUEST_ID = "7b0a4c1e-5d0f-4f35-9b57-0c6a2b1f4e11"

RUN_EXAMPLE: dict[str, Any] = {
    "id": RUN,
    "owner": "t-house-pipeline",
    "state": "running",
    "plan_digest": DIGEST,
    "bundle": "PRV_L01",
    "deployment": "plain",
    "placement": "B4",
    "cells_planned": 24,
    "cells_done": 9,
    "stages": {"d1_proposal": 8, "d1_refusal": 1, "d2_allow": 3, "d2_deny": 3},
    "created_at": "2026-01-05T09:30:00Z",
    "ended_at": None,
    "verdict": None,
    "certificate": None,
    "error": None,
    "links": {
        "self": f"/runs/{RUN}",
        "events": f"/runs/{RUN}/events",
        "traces": f"/runs/{RUN}/traces",
        "cancel": f"/runs/{RUN}/cancel",
        "certificate": None,
    },
}
TRACE_EXAMPLE: dict[str, Any] = {
    "id": f"{RUN}.7",
    "seq": 7,
    "prev": DIGEST,
    "hash": DIGEST,
    "body": {
        "cell": {
            "sample": "audit",
            "deployment": "plain",
            "bundle": "PRV_L01",
            "condition": "B4",
            "member": "invalid_principal",
            "repetition": 0,
        },
        "d1": {"outcome": "proposal", "rule": ""},
        "d2": {"outcome": "deny", "reason": "principal_mismatch"},
        "d3": {"complete": True, "intended": False, "protected": False},
    },
}
ENVELOPE_EXAMPLE: dict[str, Any] = {
    "payloadType": "application/vnd.in-toto+json",
    "payload": "eyJfdHlwZSI6Imh0dHBzOi8vaW4tdG90by5pby9TdGF0ZW1lbnQvdjEifQ==",
    "signatures": [{"keyid": "9f2b1f0e", "sig": "bm90IGEgcmVhbCBzaWduYXR1cmU="}],
    "signer": {"ed25519": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"},
}
BUNDLE_EXAMPLE: dict[str, Any] = {
    "id": "PRV_L01",
    "title": "Living-room camera stream",
    "family": "privacy-sensitive sensing",
    "clauses": 32,
    "digests": {"skill": DIGEST, "contract": DIGEST},
}

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

_PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457. `type` is explained in docs/service.md; `instance` finds the log.",
    "required": ["type", "title", "status", "detail", "instance"],
    "properties": {
        "type": {"type": "string", "enum": [kind.uri for kind in Kind]},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "checks": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message"],
                "additionalProperties": False,
                "properties": {
                    "message": {"type": "string"},
                    "field": {"type": "string"},
                    "file": {"type": "string"},
                    "line": {"type": "integer"},
                    "clause": {"type": "string"},
                    "mend": {"type": "string"},
                    "severity": {"type": "string", "enum": ["error", "warning"]},
                },
            },
        },
    },
}

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


def header(description: str, kind: str = "string") -> dict[str, Any]:
    """Return the description of an answer's header."""
    return {"description": description, "schema": {"type": kind}}


def answers(
    examples: Mapping[int, tuple[str, Any]],
    *kinds: Kind,
    headers: Mapping[str, Any] | None = None,
) -> dict[int | str, dict[str, Any]]:
    """Return FastAPI's ``responses`` of a closed call.

    Args:
        examples: Description and example by status; an example of None means no JSON body.
        kinds: Problems besides those that every closed call may answer.
        headers: Headers of the successful answers.
    """
    found: dict[int | str, dict[str, Any]] = {}
    for status, (description, example) in examples.items():
        found[status] = {"description": description}
        if example is not None:
            found[status]["content"] = {"application/json": {"example": example}}
        if headers:
            found[status]["headers"] = dict(headers)
    return {**found, **problem_answers(*EVERYWHERE, *kinds)}


def problem_answers(*kinds: Kind) -> dict[int | str, dict[str, Any]]:
    """Return the ``responses`` of problems, kinds of one status together."""
    by_status: dict[int, list[Kind]] = {}
    for kind in kinds:
        by_status.setdefault(kind.status, []).append(kind)
    return {status: _problem_answer(together) for status, together in by_status.items()}


def _problem_answer(kinds: list[Kind]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": "; or: ".join(kind.title for kind in kinds),
        "content": {
            MEDIA_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": {kind.value.slug: {"value": _problem_example(kind)} for kind in kinds},
            }
        },
    }
    if kinds[0].status == 401:
        answer["headers"] = {"WWW-Authenticate": header("How to present a token.")}
    if kinds[0].status in {429, 503}:
        answer["headers"] = {"Retry-After": header("Seconds to wait.", "integer")}
    return answer


def _problem_example(kind: Kind) -> dict[str, Any]:
    fault = _FAULTS.get(kind)
    detail = fault.message if fault else kind.title
    return ProblemError(kind, detail, faults=[fault] if fault else ()).document(REQUEST_ID)


def schema_reference(model: type[BaseModel]) -> dict[str, str]:
    """Return the reference to a request model in the document's components."""
    return {"$ref": _COMPONENT.format(model=model.__name__)}


def json_body(model: type[BaseModel], example: object) -> dict[str, Any]:
    """Return ``openapi_extra`` of a call with a JSON body that it reads itself."""
    content = {"application/json": {"schema": schema_reference(model), "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def openapi_document(app: FastAPI, open_paths: frozenset[str]) -> dict[str, Any]:
    """Return the OpenAPI document of the service.

    Args:
        app: The application with all its routes.
        open_paths: Paths that need no token.
    """
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    _, requests = models_json_schema(
        [(CertifyRequest, "validation"), (EnvelopeRequest, "validation")], ref_template=_COMPONENT
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas |= {**requests["$defs"], "Problem": _PROBLEM_SCHEMA}
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
            _restore_nulls(operation)
    return document


def _restore_nulls(operation: Mapping[str, Any]) -> None:
    """Give examples of runs their null members back: FastAPI drops every null of a document."""
    for response in operation["responses"].values():
        for media in response.get("content", {}).values():
            example = media.get("example")
            if isinstance(example, dict):
                for run in (example, *example.get("runs", ())):
                    _complete_run(run)


def _complete_run(example: dict[str, Any]) -> None:
    if "plan_digest" in example:
        for name, value in RUN_EXAMPLE.items():
            example.setdefault(name, value)
        example["links"].setdefault("certificate", None)
