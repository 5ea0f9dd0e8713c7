"""Health: the process answers, its parts work, what it counted."""

from __future__ import annotations

from fastapi import APIRouter, Response

from retire.service.access import ServicesHere, allowed
from retire.service.answers import HealthAnswer, ReadyAnswer
from retire.service.documenting import answers, problem_answers
from retire.service.problems import Kind, ProblemError
from retire.service.tokens import Scope

router = APIRouter(tags=["health"])


@router.get(
    "/healthz",
    summary="Is the process alive",
    responses={
        200: {
            "description": "The process answers",
            "content": {"application/json": {"example": {"status": "ok"}}},
        },
        **problem_answers(Kind.TOO_LARGE, Kind.INTERNAL),
    },
)
async def healthz() -> HealthAnswer:
    """Say that the process answers. Needs no token and says nothing else."""
    return HealthAnswer(status="ok")


@router.get(
    "/readyz",
    dependencies=allowed(Scope.READ),
    summary="Do all parts work",
    responses=answers(
        {200: ("Every part works", ReadyAnswer(status="ready", checks={"database": True}))},
    ),
)
async def readyz(services: ServicesHere) -> ReadyAnswer:
    """Say whether database and runner work.

    Scope `read`, unless the operator opened it.
    """
    checks = dict(await services.keeper.ready())
    failing = sorted(name for name, works in checks.items() if not works)
    if failing:
        raise ProblemError(
            Kind.UNAVAILABLE,
            f"not working: {', '.join(failing)}",
            headers={"Retry-After": "5"},
            extra={"checks": {**checks}},
        )
    return ReadyAnswer(status="ready", checks=checks)


@router.get(
    "/metrics",
    dependencies=allowed(Scope.READ),
    summary="Counters for Prometheus",
    response_class=Response,
    responses={
        **answers({200: ("Exposition format 0.0.4", None)}),
        200: {
            "description": "Exposition format 0.0.4",
            "content": {
                "text/plain": {
                    "schema": {"type": "string"},
                    "example": "retire_runs_submitted_total 3.0\n",
                }
            },
        },
    },
)
async def metrics(services: ServicesHere) -> Response:
    """Give what the service counted since it started; no id of a token or run among it.

    Scope `read`, unless the operator opened it.
    """
    return Response(services.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
