"""Runs under review made by hand, from the finished runs that the other pages are tested with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retire.pages.html.prompt_parts import prompt_of
from retire.service.reviewing.opening import sealed_review
from retire.verify.run import SignedCertificate
from sink.proposal import RawAnswer
from sink.record import Head
from tests.unit.pages.conftest import build, obedient

__all__ = ["build", "obedient"]


def review_of(finished, *, sealed=True):
    review = sealed_review("run 1", "run 1", finished.run)
    signed = [SignedCertificate(it.name, b"{}", "ab", it) for it in finished.certificates]
    heads = {
        name: Head(signer=name, seq=seq, hash="", countersigned="", key="cd", signature="ef")
        for name, seq in (("observer", 9), ("direct", 7))
    }
    certificates = tuple(signed) if sealed else ()
    return replace(review, certificates=certificates, heads=heads, sealed=sealed)


def trace_of(review, row, answer="{}", **stages):
    """The trace row of a cell, with a prompt that renders again, and an answer."""
    trace = review.trace(row.seq)
    said = {
        "answer": RawAnswer(mode="json", text=answer, finish_reason="stop"),
        "prompt": prompt_of(review, row.cell).digest,
    }
    return trace.model_copy(update={"body": trace.body.model_copy(update={**said, **stages})})


@pytest.fixture
def review(build):
    """Two bundles, two deployments, B1, B2 and B4; the reduction leaks once a member."""
    return review_of(build())
