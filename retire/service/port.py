"""What the HTTP layer needs from whoever keeps and runs certifications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from retire.certify.gates import Verdict
from retire.domain.document import Document, Word
from retire.domain.evidence import Evidence
from retire.domain.outcome import D1Outcome
from retire.domain.run_state import RunState
from retire.domain.trace import D2, D3, CellName, Trace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from retire.certify.envelope import SignedEnvelope
    from retire.domain.cell import Condition
    from retire.domain.document import JsonData
    from retire.domain.outcome import D2Outcome


@dataclass(frozen=True, slots=True)
class Submission:
    """A certification to run, after the HTTP layer has checked its form.

    Attributes:
        bundle: Id of a registered bundle, or None with ``folder``.
        folder: A folder with an unpacked uploaded bundle; the keeper moves it into the run.
        candidate: Bytes of the candidate ``SKILL.md``; None asks the run to reduce.
        deployment: Configured name.
        placement: B2 to B6.
    """

    bundle: str | None
    folder: Path | None
    candidate: bytes | None
    deployment: str
    placement: str
    margin_points: int
    repetitions: int
    seed: int


class Answer(BaseModel):
    """Base of what calls answer: it shapes the answers and documents them."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RunRow(Answer):
    """A run as its owner sees it. Instants are RFC 3339 text."""

    id: str
    owner: str = Field(description="Id of the token that started it.")
    state: RunState
    plan_digest: str = Field(
        description="Digest of the declared protocol and its inputs, fixed before the first cell."
    )
    bundle: str
    deployment: str
    placement: str
    cells_planned: int
    cells_done: int
    stages: dict[str, int] = Field(description="Cells by stage outcome, such as d2_deny.")
    created_at: str
    ended_at: str | None
    verdict: Verdict | None = Field(description="Null until there is one.")
    certificate: str | None = Field(description="Id of the certificate, once there is one.")
    error: str | None = Field(description="Why it could not run, and how to mend it.")


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event of a run: progress, or its end."""

    number: int
    kind: str
    data: Mapping[str, JsonData]


class PurgedStage(Document):
    """D1 of a purged trace: no word of the model is left."""

    outcome: Word[D1Outcome]
    rule: str


class PurgedTrace(Document):
    """A trace whose answer was removed; what is not named here is as it was."""

    model_config = ConfigDict(extra="allow")

    cell: CellName
    answer: None
    d1: PurgedStage
    d2: D2
    d3: D3
    purged: Literal[True]


class TraceAnswer(Document):
    """A trace in the chain of its run: ``hash`` covers seq, prev and body, until it is purged."""

    id: str
    run: str
    seq: int
    prev: str
    hash: str
    body: Trace | PurgedTrace


class Verified(Answer):
    """What verifying a certificate found; ``evidence`` is the kind that its run's plan gives."""

    run: str
    intact: bool
    verdict: Verdict
    evidence: Evidence
    problems: tuple[str, ...]
    stale: tuple[str, ...]
    unknown_signers: tuple[str, ...]
    checked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which traces to list; None leaves a field open."""

    bundle: str | None = None
    condition: Condition | None = None
    member: str | None = None
    d1: D1Outcome | None = None
    d2: D2Outcome | None = None
    reason: str | None = None
    protected: bool | None = None


class BundleRow(Answer):
    """A registered bundle."""

    id: str
    title: str
    family: str
    clauses: int
    digests: dict[str, str]


class Keeper(Protocol):
    """Keeps runs and traces, runs what is queued, and resumes after a crash.

    A method that names a run or certificate raises KeyError where there is none, or where its
    owner is another than ``owner`` (None means: may see all).
    """

    async def submit(
        self, submission: Submission, owner: str, idempotency_key: str | None
    ) -> tuple[RunRow, bool]:
        """Fix the plan and queue the run; False as second value for a repeated key.

        Raises:
            InputError: Bundle, candidate or deployment cannot be used; names file, line, clause.
            ConflictError: The key was used for another submission.
        """

    async def run(self, run: str, owner: str | None) -> RunRow:
        """Return one run."""

    async def runs(self, owner: str | None, before: str | None, limit: int) -> Sequence[RunRow]:
        """Return runs, newest first, created before the run of id ``before``."""

    def events(self, run: str, after: int) -> AsyncIterator[Event]:
        """Yield events numbered above ``after`` until the run ends; the last is its end."""

    async def wait(self, run: str, seconds: float) -> RunRow:
        """Return the run when it has ended, or as it stands after so many seconds."""

    async def cancel(self, run: str, owner: str | None) -> RunRow:
        """Ask a run to stop; what it stored stays."""

    async def traces(
        self, run: str, owner: str | None, wanted: TraceFilter, after: int, limit: int
    ) -> Sequence[TraceAnswer]:
        """Return trace rows with sequence numbers above ``after``, in their order."""

    async def trace(self, trace: str, owner: str | None) -> TraceAnswer:
        """Return one trace row by id (``<run>.<seq>``)."""

    async def certificate(self, certificate: str, owner: str | None) -> SignedEnvelope:
        """Return a DSSE envelope by certificate id."""

    async def verify(self, envelope: SignedEnvelope) -> Verified:
        """Verify an envelope against the evidence kept here; raises InputError for none."""

    async def bundles(self) -> Sequence[BundleRow]:
        """Return the registered bundles."""

    async def register(self, folder: Path) -> BundleRow:
        """Register an unpacked bundle that lint found sound; raises InputError otherwise."""

    async def purge(self, run: str, owner: str | None) -> None:
        """Remove prompts, answers and frames of a run; digests stay."""

    async def ready(self) -> Mapping[str, bool]:
        """Say what works: database, runner."""


class ConflictError(Exception):
    """The request contradicts an earlier one."""
