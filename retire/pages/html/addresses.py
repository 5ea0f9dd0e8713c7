"""The addresses of the pages. Pure. A view is its address: filters stand in the query."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from retire.domain.cell import Sample
from retire.pages.html.filters import YES, TraceFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.domain.cell import Condition

ROOT = "/ui"
STATIC = f"{ROOT}/static"
LIST = f"{ROOT}/list"
SIGN_IN = f"{ROOT}/sign-in"
SIGN_OUT = f"{ROOT}/sign-out"


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return a path with those parameters that are neither empty nor zero."""
    kept = {name: str(value) for name, value in query.items() if value not in {"", 0}}
    return f"{path}?{urlencode(kept)}" if kept else path


def runs(before: str = "") -> str:
    """Return the address of the list of runs."""
    return with_query(f"{ROOT}/runs", {"before": before})


def run(run_id: str, deployment: str = "", condition: str = "") -> str:
    """Return the address of a run, with one of its candidates in front."""
    query = {"deployment": deployment, "condition": condition}
    return with_query(f"{ROOT}/runs/{quote(run_id, safe='')}", query)


def part(run_id: str, name: str) -> str:
    """Return the address of a part of a run's page that is loaded by itself."""
    return f"{run(run_id)}/{name}"


def traces(run_id: str, wanted: TraceFilter, after: int = 0, before: int = 0) -> str:
    """Return the address of a page of traces."""
    query = {**wanted.query(), "after": after, "before": before}
    return with_query(f"{run(run_id)}/traces", query)


def cell(run_id: str, seq: int, wanted: TraceFilter | None = None) -> str:
    """Return the address of a cell; the filters say through which list one steps."""
    query = wanted.query() if wanted is not None else {}
    return with_query(f"{run(run_id)}/cells/{seq}", query)


def diff(run_id: str, deployment: str, bundle: str, condition: Condition | str) -> str:
    """Return the address of what a candidate lacks."""
    query = {"deployment": deployment, "bundle": bundle, "condition": str(condition)}
    return with_query(f"{run(run_id)}/diff", query)


def certificate(run_id: str, name: str) -> str:
    """Return the address of a certificate's readable form."""
    return f"{run(run_id)}/certificates/{quote(name, safe='')}"


def envelope(run_id: str, name: str) -> str:
    """Return the address from which a signed certificate is downloaded."""
    return f"{certificate(run_id, name)}/envelope.json"


def verification(run_id: str, name: str) -> str:
    """Return the address that verifies a certificate and gives the result alone."""
    return f"{certificate(run_id, name)}/verification"


def compare(query: Mapping[str, object]) -> str:
    """Return the address of a comparison."""
    return with_query(f"{ROOT}/compare", query)


def leaks(run_id: str, deployment: str, bundle: str, condition: str, member: str) -> str:
    """Return the address of the traces in which a candidate leaked on a member."""
    return traces(
        run_id,
        TraceFilter(
            sample=str(Sample.AUDIT),
            deployment=deployment,
            bundle=bundle,
            condition=condition,
            member=member,
            protected=YES,
        ),
    )
