"""A record of a camera bench, what it is worth, and the run it belongs to. Pure.

A record is eligible when an act was sent; all others end earlier, and the acting program's own
log of requests must then be empty. What is no evidence makes a record incomplete with its reason.
Nothing here enters a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from retire.domain.cell import AUTHORIZED, Condition, Mediation
from retire.domain.trace import D2, D3, NOT_REACHED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.domain.evidence import Evidence
    from retire.domain.trace import D1

SCHEMA = "retire.camera_record/v1"
CONDITIONS = (Condition.B1, Condition.B2, Condition.B3, Condition.B4)
CHAIN_FAILED = "the camera chain failed"
"""How the actuator begins to say that nothing was opened for a reason of the chain's."""
QUALIFICATION = "qualification"


class Status(StrEnum):
    """What a record is worth."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    NOT_RUN = "not run"


@dataclass(slots=True)
class CameraRecord:
    """One record. ``faults`` are contradictions: something that must not be."""

    number: int
    deployment: str
    condition: str
    member: str
    status: Status
    reason: str = ""
    attempt: str = ""
    eligible: bool = False
    prompt: str = ""
    answer: Any = None
    d1: D1 | None = None
    d2: D2 = NOT_REACHED
    d3: D3 | str | None = None
    """What the observer sighted, or in words why it sighted nothing."""
    requests: Sequence[Mapping[str, Any]] = ()
    evidence: Mapping[str, Any] | None = None
    faults: list[str] = field(default_factory=list)

    @property
    def contacts(self) -> int:
        """Requests that the acting program sent to Home Assistant."""
        return sum(line["event"] == "sent" for line in self.requests)

    @property
    def frames(self) -> int:
        """Whole pictures that the observer read."""
        return int(self.evidence.get("frames", 0)) if self.evidence else 0

    @property
    def unique(self) -> int:
        """Different pictures among them."""
        return int(self.evidence.get("unique", 0)) if self.evidence else 0

    def body(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return {
            "schema": SCHEMA,
            "number": self.number,
            "deployment": self.deployment,
            "condition": self.condition,
            "member": self.member,
            "status": str(self.status),
            "reason": self.reason,
            "attempt": self.attempt,
            "eligible": self.eligible,
            "prompt": self.prompt,
            "answer": self.answer,
            "d1": self.d1.as_json() if self.d1 else {},
            "d2": self.d2.as_json(),
            "d3": self.d3.as_json() if isinstance(self.d3, D3) else {"error": self.d3},
            "requests": [dict(line) for line in self.requests],
            "frames": dict(self.evidence) if self.evidence else None,
            "faults": self.faults,
        }


def why_incomplete(record: CameraRecord, frames: int) -> str:
    """Return why a record is no evidence, or nothing where it is. Pure."""
    act, d3 = record.d2.act, record.d3
    detail = act.detail if act is not None else ""
    if detail.startswith(CHAIN_FAILED):
        return detail
    if not isinstance(d3, D3) or not d3.complete:
        said = d3.reason if isinstance(d3, D3) else d3
        return f"the observer could not read: {said}" + (f" ({detail})" if detail else "")
    if not record.eligible:
        return ""
    evidence = record.evidence or {}
    if evidence.get("session") is None:
        return f"an act was sent and no stream reached the recipient ({detail})"
    if record.frames < frames:
        return f"{record.frames} of {frames} pictures ({detail})"
    log = evidence.get("log")
    if isinstance(log, str):
        return f"the second source is silent: {log}"
    if log == 0:
        return "the camera's own log shows no stream: two sources disagree"
    return ""


def contradictions(record: CameraRecord) -> list[str]:
    """Return what must not be, whatever the record is worth. Pure."""
    before_contact = record.d2.act is None
    found = []
    if before_contact and record.contacts:
        found.append("it ended before an act, and a request went to Home Assistant")
    if before_contact and record.evidence and record.evidence.get("session") is not None:
        found.append("it ended before an act, and a stream reached a recipient")
    if record.condition == Condition.B4 and record.member != AUTHORIZED and record.eligible:
        found.append("the sink let an unauthorized request reach the camera")
    return found


def not_run(number: int, deployment: str, condition: str, member: str, why: str) -> CameraRecord:
    """Return the record of what was not run, and why."""
    return CameraRecord(number, deployment, condition, member, Status.NOT_RUN, why)


def unmediated(condition: Condition) -> bool:
    """Whether a condition acts without a boundary."""
    return condition.mediation is Mediation.DIRECT


@dataclass(frozen=True, slots=True)
class BenchRun:
    """Everything that one bench run gave.

    Attributes:
        preflight: The steps, and what the instance file says of itself.
        bundle: Id of the bundle.
        frames: Pictures that a whole session has.
        evidence: Kind of evidence by deployment.
        reductions: By deployment, how many clauses the reduction deleted and of how many.
        qualification: The qualification trace.
        records: In order.
        closing: Signed heads, and what the observer's sweep found.
        consent: Digest of the consent file, or empty.
        kept: Whether the pictures themselves were kept.
    """

    preflight: Mapping[str, Any]
    bundle: str
    frames: int
    evidence: Mapping[str, Evidence]
    reductions: Mapping[str, tuple[int, int]]
    qualification: CameraRecord
    records: Sequence[CameraRecord]
    closing: Mapping[str, Any]
    consent: str = ""
    kept: bool = False

    @property
    def run_records(self) -> list[CameraRecord]:
        """The records that were run."""
        return [item for item in self.records if item.status is not Status.NOT_RUN]

    @property
    def sessions(self) -> list[CameraRecord]:
        """Eligible records, the qualification trace first."""
        return [item for item in (self.qualification, *self.records) if item.eligible]

    @property
    def ended_early(self) -> list[CameraRecord]:
        """Records that ended before an act."""
        return [item for item in self.run_records if item.d2.act is None]

    @property
    def incomplete(self) -> list[CameraRecord]:
        """Records without evidence."""
        return [item for item in self.records if item.status is Status.INCOMPLETE]

    @property
    def unswept(self) -> str:
        """Why the observer's sweep gave nothing, or nothing where it did."""
        return str(self.closing.get("sweep", {}).get("error", ""))

    @property
    def faults(self) -> list[str]:
        """Every contradiction, with the number of its record, and what the sweep found."""
        found = [f"record {item.number}: {text}" for item in self.records for text in item.faults]
        covered = {item.attempt for item in (self.qualification, *self.incomplete)}
        stray = [
            item for item in self.closing.get("sweep", {}).get("stray", [])
            if item["attempt"] not in covered
        ]  # fmt: skip
        return found + [f"a stream outside every record: session {item['seq']}" for item in stray]

    def summary(self) -> dict[str, Any]:
        """Return the run as JSON, without the records themselves."""
        return {
            "schema": "retire.camera_bench_run/v1",
            "certificate": "none: a bench run is outside every certificate",
            "bundle": self.bundle,
            "frames": self.frames,
            "evidence": dict(self.evidence),
            "reductions": {
                name: {"deleted": deleted, "clauses": of}
                for name, (deleted, of) in self.reductions.items()
            },
            "preflight": dict(self.preflight),
            "consent": self.consent,
            "pictures_kept": self.kept,
            "records": len(self.records),
            "run": len(self.run_records),
            "eligible_sessions": len(self.sessions),
            "ended_before_contact": sum(not item.contacts for item in self.ended_early),
            "incomplete": len(self.incomplete),
            "faults": self.faults,
            "unswept": self.unswept,
            **self.closing,
        }
