"""Runs under review made by hand, from the finished runs that the other pages are tested with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from retire.domain.digests import sha256
from retire.domain.trace import outcome_of
from retire.pages.counting import Counts, evidence_kind
from retire.pages.html.index import Row, TraceIndex
from retire.pages.html.prompt_parts import prompt_of
from retire.pages.html.review import Review, SignedCertificate
from tests.unit.pages.conftest import build, obedient

if TYPE_CHECKING:
    from retire.wiring import Finished

__all__ = ["build", "obedient"]


def index_of(finished: Finished) -> TraceIndex:
    index = TraceIndex()
    for row in finished.evidence.rows:
        index.add(Row(row["seq"], -1, outcome_of(row["body"])))
    return index


def review_of(finished: Finished, *, sealed: bool = True) -> Review:
    index = index_of(finished)
    return Review(
        id="run 1",
        title="run 1",
        plan=finished.prepared.plan,
        bundles=finished.prepared.bundles,
        deleted=finished.run.deleted,
        given=False,
        evidence=evidence_kind(finished),
        certificates=tuple(
            SignedCertificate(
                f"{it.placement.deployment}-{it.placement.condition}", {"payload": ""}, "ab", it
            )
            for it in finished.certified
        )
        if sealed
        else (),
        heads={
            "observer": {"seq": 9, "key": "cd", "signature": "ef"},
            "direct": {"seq": 7, "key": "0d", "signature": "0f"},
        },
        index=index,
        counts=Counts.over(index.outcomes(), finished.prepared.plan.cells),
        sealed=sealed,
    )


def trace_of(review: Review, row: Row, body: dict, answer: str = "{}") -> dict:
    """A whole trace row around the hand-made body of a finished run."""
    return {
        "seq": row.seq,
        "prev": "sha256:01",
        "hash": "sha256:02",
        "body": {
            **body,
            "answer": {"mode": "json", "text": answer, "tool_calls": [], "finish_reason": "stop"},
            "answer_digest": sha256(answer.encode()),
            "prompt": prompt_of(review, row.cell).digest,
            "contract": "sha256:03",
            "effect": "sha256:04",
            "episode": "sha256:05",
            "attempt_number": 1,
            "microseconds": {"freeze": 10, "deployment": 70, "decision": 5, "observation": 15},
        },
    }


@pytest.fixture
def review(build):
    """Two bundles, two deployments, B1, B2 and B4; the reduction leaks once a member."""
    return review_of(build())
