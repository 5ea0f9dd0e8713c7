"""The monitor: from one message to one decision, recorded before anything is sent.

The order is the security argument: read the answer, fetch the frozen episode from the world,
compare digests, decide, spend the nonce, make the intent durable, act, record the outcome. Any
exception, time-out or missing input on the way means deny. This module holds the one place in
the project that catches every exception.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sink.decision import Allow, Binding, Deny, Reason, action_record, decide
from sink.ports import ActResult, ActStatus
from sink.proposal import Invalid, Proposal, Refusal, parse, read_answer
from sink.record import digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from sink.approvals import Approvals
    from sink.contract import Contract, Snapshot
    from sink.ports import Actuator, Frozen
    from sink.record_file import RecordFile

_ATTEMPT = re.compile(r"[0-9a-f]{32}\Z")
_IDENTITY = re.compile(r"[!-~]{1,128}\Z")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Message:
    """A request to decide, as the runner sent it: identities and digests, and the raw answer."""

    attempt: str
    contract: str
    episode: str
    snapshot: str
    answer: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the monitor is given instead of reading it: time, nonces, snapshots, deadlines.

    With ``approvals`` the world is a real one, and no other contract is enforced.
    """

    now: Callable[[], str]
    nonce: Callable[[], str]
    read_snapshot: Callable[[bytes], Snapshot]
    deadline_seconds: float = 10.0
    approvals: Approvals | None = None


class Monitor:
    """Decides and acts for one binding; one instance per process and record."""

    def __init__(
        self,
        contracts: Mapping[str, Contract],
        binding: Binding,
        record: RecordFile,
        actuator: Actuator,
        surroundings: Surroundings,
    ) -> None:
        self._contracts = contracts
        self._binding = binding
        self._record = record
        self._actuator = actuator
        self._given = surroundings
        self._spent: set[str] = set()

    async def start(self) -> None:
        """Read the record, so that nothing spent before is spent again."""
        for body in self._record.load():
            if body.get("kind") == "decision" and body.get("decision") == "allow":
                self._spent.add(str(body.get("attempt")))
        recovery = self._record.recovery()
        if recovery is not None:
            await self._record.append({**recovery, "at": self._given.now()})

    async def handle(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer one message; never raises."""
        message = _message(raw)
        if message is None:
            return _reply(Deny(Reason.MALFORMED_PROPOSAL, detail="message"), None)
        answered = await _attempted(self._decide_and_act(message))
        if not isinstance(answered, Exception):
            return answered
        deny = Deny(Reason.INTERNAL_ERROR, detail=_named(answered))
        recorded = await _attempted(self._append(message, deny, None))
        return _reply(deny, None if isinstance(recorded, Exception) else recorded)

    async def _decide_and_act(self, message: Message) -> Mapping[str, Any]:
        approvals = self._given.approvals
        if approvals is not None and approvals.of(message.contract) is None:
            unapproved = Deny(Reason.SNAPSHOT_MISMATCH, detail="the contract is not approved")
            return _reply(unapproved, await self._append(message, unapproved, None))
        try:
            async with asyncio.timeout(self._given.deadline_seconds):
                frozen = await self._actuator.frozen(message.attempt)
        except LookupError:
            unknown = Deny(Reason.EPISODE_MISMATCH, detail="no such attempt")
            return _reply(unknown, await self._append(message, unknown, None))
        decision = self._decide(message, frozen)
        if isinstance(decision, Deny):
            return _reply(decision, await self._append(message, decision, frozen))
        # Check and spend without an await in between: of two copies that arrive together,
        # exactly one passes.
        if message.attempt in self._spent:
            replay = Deny(Reason.GRANT_REPLAYED, predicates=decision.predicates)
            return _reply(replay, await self._append(message, replay, frozen))
        self._spent.add(message.attempt)
        recorded = await self._append(message, decision, frozen)
        return await self._send(message, decision, frozen, recorded)

    def _decide(self, message: Message, frozen: Frozen) -> Allow | Deny:
        contract = self._contracts.get(message.contract)
        if contract is None or frozen.contract_digest != message.contract:
            return Deny(Reason.SNAPSHOT_MISMATCH, detail="contract")
        if frozen.episode != message.episode:
            return Deny(Reason.EPISODE_MISMATCH)
        if (
            frozen.snapshot_digest != message.snapshot
            or digest(frozen.snapshot) != message.snapshot
        ):
            return Deny(Reason.SNAPSHOT_MISMATCH)
        answer = read_answer(_answer_bytes(message))
        parsed = answer if isinstance(answer, Invalid) else parse(answer)
        match parsed:
            case Invalid():
                return Deny(Reason.MALFORMED_PROPOSAL, detail=parsed.rule)
            case Refusal():
                return Deny(Reason.MALFORMED_PROPOSAL, detail="a refusal proposes nothing")
            case Proposal():
                snapshot = self._given.read_snapshot(frozen.snapshot)
                decision = decide(contract, parsed, snapshot, self._binding)
                return self._bound(message.contract, decision)

    def _bound(self, contract: str, decision: Allow | Deny) -> Allow | Deny:
        """In a real world, point the action at the entity that was approved for its target."""
        if self._given.approvals is None or isinstance(decision, Deny):
            return decision
        approval = self._given.approvals.of(contract)
        entity = approval.bindings.get(decision.action.target) if approval is not None else None
        if entity is None:
            detail = "no entity is approved for the target"
            return Deny(Reason.NONCANONICAL_TARGET, detail, predicates=decision.predicates)
        return replace(decision, action=replace(decision.action, target=entity))

    async def _send(
        self, message: Message, decision: Allow, frozen: Frozen, recorded: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        result = await _attempted(self._act(message, decision, frozen))
        if isinstance(result, Exception):
            result = ActResult(ActStatus.IN_DOUBT, type(result).__name__)
        seq = await _attempted(self._append_outcome(message, recorded["nonce"], result))
        if isinstance(seq, Exception):
            # The intent stands without an outcome; to call that "done" would be a guess.
            result, seq = ActResult(ActStatus.IN_DOUBT, "the outcome is not on record"), 0
        reply = {
            **_reply(decision, recorded),
            "act": {"status": result.status, "detail": result.detail, "seq": seq},
        }
        if result.status is ActStatus.REFUSED and result.detail == "revision":
            reply |= {"decision": "deny", "reason": Reason.SNAPSHOT_MISMATCH, "basis": ""}
        return reply

    async def _act(self, message: Message, decision: Allow, frozen: Frozen) -> ActResult:
        async with asyncio.timeout(self._given.deadline_seconds):
            return await self._actuator.act(message.attempt, frozen.revision, decision.action)

    async def _append_outcome(self, message: Message, nonce: str, result: ActResult) -> int:
        outcome = {
            "kind": "outcome",
            "attempt": message.attempt,
            "nonce": nonce,
            "act": result.status,
            "detail": result.detail,
            "at": self._given.now(),
        }
        return (await self._record.append(outcome)).seq

    async def _append(
        self, message: Message, decision: Allow | Deny, frozen: Frozen | None
    ) -> Mapping[str, Any]:
        """Make the decision durable; for an allow this is the intent and spends the nonce."""
        nonce = self._given.nonce()
        body: dict[str, Any] = {
            "kind": "decision",
            "attempt": message.attempt,
            "nonce": nonce,
            "episode": message.episode,
            "contract": message.contract,
            "snapshot": message.snapshot,
            "frozen_snapshot": frozen.snapshot_digest if frozen is not None else "",
            "answer": digest(_answer_bytes(message)),
            "binding": self._binding,
            "at": self._given.now(),
            **_decision_fields(decision),
        }
        entry = await self._record.append(body)
        return {"nonce": nonce, "seq": entry.seq, "hash": entry.hash}


async def _attempted(step: Awaitable[_Result]) -> _Result | Exception:
    """Return a step's result, or whatever it raised: the one place that catches everything.

    Before the intent is on record the caller turns an exception into a deny, after it into
    "in doubt"; a cancelled task is neither and passes through.
    """
    try:
        return await step
    except Exception as error:
        return error


def _named(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"[:300]
    # An error may quote text that is no Unicode, which no record could hold.
    return text.encode("ascii", "backslashreplace").decode()


def _answer_bytes(message: Message) -> bytes:
    # Half a surrogate pair stays visible as bytes that are not UTF-8: the parser names it.
    return message.answer.encode("utf-8", "surrogatepass")


def _message(raw: Mapping[str, Any]) -> Message | None:
    fields = [raw.get(name) for name in ("attempt", "contract", "episode", "snapshot", "answer")]
    if not all(isinstance(field, str) for field in fields):
        return None
    message = Message(*(str(field) for field in fields))
    identities = (message.contract, message.episode, message.snapshot)
    known = _ATTEMPT.match(message.attempt) and all(_IDENTITY.match(item) for item in identities)
    return message if known else None


def _decision_fields(decision: Allow | Deny) -> dict[str, Any]:
    values = {value.id: value.value for value in decision.predicates}
    match decision:
        case Allow():
            return {
                "decision": "allow",
                "basis": decision.basis,
                "reason": "",
                "detail": "",
                "parameter": "",
                "predicates": values,
                "grants": list(decision.grants),
                "action": action_record(decision.action),
            }
        case Deny():
            return {
                "decision": "deny",
                "basis": "",
                "reason": decision.reason,
                "detail": decision.detail,
                "parameter": decision.parameter,
                "predicates": values,
            }


def _reply(decision: Allow | Deny, recorded: Mapping[str, Any] | None) -> dict[str, Any]:
    fields = _decision_fields(decision)
    fields.pop("action", None)
    fields.pop("grants", None)
    return {**fields, "act": None, "record": recorded}
