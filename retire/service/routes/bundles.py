"""Bundles and deployments: what a certification may name."""

from __future__ import annotations

from fastapi import APIRouter, Request

from retire.domain.evidence import Evidence
from retire.service.access import ServicesHere, allowed
from retire.service.answers import BundleList, DeploymentList, RegisteredAnswer
from retire.service.bodies import MULTIPART, read_parts, require_media_type
from retire.service.documenting import BUNDLE_EXAMPLE, DIGEST, WITH_BODY, answers
from retire.service.problems import Kind, field_problem
from retire.service.settings import DeploymentCard
from retire.service.submitting import ARCHIVE, uploaded
from retire.service.tokens import Scope

router = APIRouter(tags=["bundles and deployments"])

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            MULTIPART: {
                "schema": {
                    "type": "object",
                    "required": [ARCHIVE],
                    "additionalProperties": False,
                    "properties": {
                        ARCHIVE: {
                            "type": "string",
                            "format": "binary",
                            "description": "tar.gz or zip of one bundle folder.",
                        }
                    },
                },
                "encoding": {ARCHIVE: {"contentType": "application/gzip, application/zip"}},
            }
        },
    }
}

_CARDS = (DeploymentCard(name="plain", evidence=Evidence.SIMULATED, identity_digest=DIGEST),)


@router.get(
    "/bundles",
    dependencies=allowed(Scope.READ),
    summary="List bundles",
    responses=answers({200: ("The registered bundles", BundleList(bundles=[BUNDLE_EXAMPLE]))}),
)
async def list_bundles(services: ServicesHere) -> BundleList:
    """List the registered bundles.

    Scope `read`.
    """
    return BundleList(bundles=list(await services.keeper.bundles()))


@router.post(
    "/bundles",
    name="register_bundle",
    status_code=201,
    dependencies=allowed(Scope.ADMIN),
    openapi_extra=_BODY,
    summary="Register a bundle",
    responses=answers(
        {201: ("The bundle is registered", RegisteredAnswer(**dict(BUNDLE_EXAMPLE), warnings=[]))},
        *WITH_BODY,
        Kind.CONFLICT,
        Kind.UNUSABLE,
        Kind.UNSOUND,
    ),
)
async def register_bundle(request: Request, services: ServicesHere) -> RegisteredAnswer:
    """Register a bundle that every token may then name; the problem holds lint's whole report.

    Scope `admin`, since every token sees it.
    """
    require_media_type(request, MULTIPART)
    parts = await read_parts(request, services.settings.body_time, frozenset({ARCHIVE}))
    for name in parts.texts:
        raise field_problem(name[:80], "this request has no such field")
    if ARCHIVE not in parts.files:
        raise field_problem(ARCHIVE, "send the bundle as this part")
    async with uploaded(parts.files[ARCHIVE], services) as (folder, warnings):
        row = await services.keeper.register(folder)
    request.state.subject = row.id
    return RegisteredAnswer(**dict(row), warnings=[fault.as_json() for fault in warnings])


@router.get(
    "/deployments",
    dependencies=allowed(Scope.READ),
    summary="List deployments",
    responses=answers({200: ("The configured deployments", DeploymentList(deployments=_CARDS))}),
)
async def list_deployments(services: ServicesHere) -> DeploymentList:
    """List the deployments that the operator configured, never their endpoints.

    Scope `read`.
    """
    return DeploymentList(deployments=services.settings.deployments)
