"""Certificates: read one, verify one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from retire.service.access import CallerHere, ServicesHere, allowed
from retire.service.bodies import JSON, read_json, require_media_type
from retire.service.documenting import (
    CERTIFICATE,
    ENVELOPE_EXAMPLE,
    WITH_BODY,
    answers,
    json_body,
)
from retire.service.paging import found
from retire.service.problems import Kind
from retire.service.requests import CERTIFICATE_ID, EnvelopeRequest, check_envelope
from retire.service.tokens import Scope

router = APIRouter(tags=["certificates"])

CertificateId = Annotated[
    str, Path(pattern=CERTIFICATE_ID, description="Id of a certificate.", examples=[CERTIFICATE])
]


@router.get(
    "/certificates/{certificate}",
    dependencies=allowed(Scope.READ),
    summary="Read a certificate",
    responses=answers({200: ("The DSSE envelope", ENVELOPE_EXAMPLE)}, Kind.NOT_FOUND),
)
async def read_certificate(
    certificate: CertificateId, caller: CallerHere, services: ServicesHere
) -> dict[str, Any]:
    """Give a certificate: an in-toto Statement in a DSSE envelope.

    Scope `read`.
    """
    work = services.keeper.certificate(certificate, caller.sees)
    return dict(await found(work, "certificate"))


@router.post(
    "/verify",
    dependencies=allowed(Scope.READ),
    openapi_extra=json_body(EnvelopeRequest, ENVELOPE_EXAMPLE),
    summary="Verify a certificate",
    responses=answers(
        {
            200: (
                "What was found",
                {
                    "verdict": "fail",
                    "intact": True,
                    "problems": [],
                    "stale": [],
                    "unknown_signers": [],
                },
            )
        },
        *WITH_BODY,
        Kind.UNUSABLE,
        Kind.CONTRADICTED,
        Kind.UNAVAILABLE,
    ),
)
async def verify(request: Request, services: ServicesHere) -> dict[str, Any]:
    """Check a certificate against the evidence kept here: signatures, digests, roots, gates.

    Scope `read`.
    """
    require_media_type(request, JSON)
    envelope = check_envelope(await read_json(request, services.settings.body_time))
    return dict(await services.keeper.verify(envelope))
