"""Certificates: read one, verify one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from retire.certify.envelope import SignedEnvelope
from retire.certify.gates import Verdict
from retire.domain.evidence import Evidence
from retire.service.access import CallerHere, ServicesHere, allowed
from retire.service.bodies import JSON, read_json, require_media_type
from retire.service.documenting import (
    CERTIFICATE,
    ENVELOPE_EXAMPLE,
    RUN,
    WITH_BODY,
    answers,
    json_body,
)
from retire.service.paging import found
from retire.service.port import Verified
from retire.service.problems import Kind
from retire.service.requests import CERTIFICATE_ID, EnvelopeRequest, check_envelope
from retire.service.tokens import Scope

router = APIRouter(tags=["certificates"])

CertificateId = Annotated[
    str, Path(pattern=CERTIFICATE_ID, description="Id of a certificate.", examples=[CERTIFICATE])
]

VERIFIED = Verified(
    run=RUN,
    intact=True,
    verdict=Verdict.FAIL,
    evidence=Evidence.SIMULATED,
    problems=(),
    stale=(),
    unknown_signers=(),
    checked=("signature of the certificate",),
)


@router.get(
    "/certificates/{certificate}",
    dependencies=allowed(Scope.READ),
    summary="Read a certificate",
    responses=answers({200: ("The DSSE envelope", ENVELOPE_EXAMPLE)}, Kind.NOT_FOUND),
)
async def read_certificate(
    certificate: CertificateId, caller: CallerHere, services: ServicesHere
) -> SignedEnvelope:
    """Give a certificate: an in-toto Statement in a DSSE envelope.

    Scope `read`.
    """
    work = services.keeper.certificate(certificate, caller.sees)
    return await found(work, "certificate")


@router.post(
    "/verify",
    dependencies=allowed(Scope.READ),
    openapi_extra=json_body(EnvelopeRequest, ENVELOPE_EXAMPLE),
    summary="Verify a certificate",
    responses=answers(
        {200: ("What was found", VERIFIED)},
        *WITH_BODY,
        Kind.UNUSABLE,
        Kind.CONTRADICTED,
        Kind.UNAVAILABLE,
    ),
)
async def verify(request: Request, services: ServicesHere) -> Verified:
    """Check a certificate against the evidence kept here: signatures, digests, roots, gates.

    Scope `read`.
    """
    require_media_type(request, JSON)
    envelope = check_envelope(await read_json(request, services.settings.body_time))
    return await services.keeper.verify(envelope)
