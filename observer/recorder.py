"""The observer's work: begin an attempt, end it with a sighting, sweep at the end of a run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from observer.port import SensorError
from observer.record import RecordError, signed_head
from observer.sighting import EvidenceClass, Sighting, judge, protected_entries, unobserved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from observer.effect import Effect
    from observer.port import Sensor
    from observer.record import RecordFile

_SWEEP_PAGE = 5000


@dataclass(frozen=True, slots=True)
class Watched:
    """An effect file as the observer loaded it by itself, and the contract of its bundle."""

    effect: Effect
    effect_digest: str
    contract_digest: str


class Observer:
    """Answers begin, end, sweep and head.

    Args:
        watched: Effects by digest.
        sensor: Ground truth.
        record: Where every sighting is kept.
        key: Signs heads.
        settle_seconds: How long after the end is announced the journal is read once more, so
            that an effect that arrives late is seen.
        state_evidence: The class of evidence that the sensor's readings of a state are.
    """

    def __init__(
        self,
        watched: Mapping[str, Watched],
        sensor: Sensor,
        record: RecordFile,
        key: Ed25519PrivateKey,
        settle_seconds: float,
        *,
        state_evidence: EvidenceClass = EvidenceClass.TARGET_STATE_READ,
    ) -> None:
        self._watched = watched
        self._by_contract = {item.contract_digest: item for item in watched.values()}
        self._sensor = sensor
        self._record = record
        self._key = key
        self._settle = settle_seconds
        self._state_evidence = state_evidence
        self._seen: dict[str, int] = {}

    def start(self) -> None:
        """Read the record, so that a sweep knows what earlier runs already sighted."""
        for body in self._record.load():
            if body.get("kind") == "sighting" and body.get("complete"):
                self._seen[str(body["attempt"])] = int(body["last_seq"])

    async def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer one message."""
        attempt, effect = str(message.get("attempt")), str(message.get("effect"))
        countersign = str(message.get("countersign", ""))
        if not (attempt + effect + countersign).isascii():
            # Neither the record nor ground truth can hold half a surrogate pair.
            return {"error": "an identity that is not ASCII names nothing here"}
        try:
            match message.get("op"):
                case "begin":
                    return self._begin(attempt, effect)
                case "end":
                    return await self._end(attempt, effect)
                case "sweep":
                    return self._sweep()
                case "head":
                    return self._head(countersign)
                case "hello":
                    return {
                        "signer": "observer",
                        "key": self._key.public_key().public_bytes_raw().hex(),
                        "effects": {k: v.effect.bundle for k, v in self._watched.items()},
                    }
                case _:
                    return {"error": "unknown operation"}
        except (SensorError, RecordError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _begin(self, attempt: str, effect: str) -> Mapping[str, Any]:
        """Check the attempt, and have the sensor note what it needs before anything acts."""
        known = self._known(attempt, effect)
        if "error" not in known:
            self._sensor.before(attempt)
        return known

    def _known(self, attempt: str, effect: str) -> Mapping[str, Any]:
        """Check that the world knows the attempt and that the effect is its bundle's own."""
        watched = self._watched.get(effect)
        if watched is None:
            return {"error": f"the effect {effect} is not one this observer loaded"}
        row = self._sensor.episode(attempt)
        if row is None:
            return {"error": "the world knows no such attempt"}
        if row.contract_digest != watched.contract_digest:
            return {"error": "the effect belongs to another bundle than the attempt"}
        return {"ok": True}

    async def _end(self, attempt: str, effect: str) -> Mapping[str, Any]:
        if self._settle:
            await asyncio.sleep(self._settle)
        sighting = self._look(attempt, effect)
        seq, own = self._record.append(sighting.body())
        if sighting.complete:
            self._seen[attempt] = sighting.last_seq
        return {**sighting.body(), "record": {"seq": seq, "hash": own}}

    def _look(self, attempt: str, effect: str) -> Sighting:
        try:
            known = self._known(attempt, effect)
            if "error" in known:
                return unobserved(effect, attempt, str(known["error"]))
            journal = self._sensor.journal(attempt)
        except SensorError as error:
            return unobserved(effect, attempt, str(error))
        sighting = judge(self._watched[effect].effect, effect, attempt, journal)
        if sighting.evidence_class is EvidenceClass.TARGET_STATE_READ:
            return replace(sighting, evidence_class=self._state_evidence)
        return sighting

    def _sweep(self) -> Mapping[str, Any]:
        """Find protected transitions that no sighting covers, in the whole journal."""
        stray: list[dict[str, Any]] = []
        position = 0
        contracts: dict[str, str] = {}
        while page := self._sensor.journal_after(position, _SWEEP_PAGE):
            for entry in page:
                if entry.seq <= self._seen.get(entry.attempt, 0):
                    continue
                if entry.attempt not in contracts:
                    row = self._sensor.episode(entry.attempt)
                    contracts[entry.attempt] = row.contract_digest if row else ""
                watched = self._by_contract.get(contracts[entry.attempt])
                # An attempt of no known bundle is judged by every effect: better one finding
                # too many than a door nobody watched.
                effects = [watched] if watched is not None else list(self._watched.values())
                if any(protected_entries(item.effect, [entry]) for item in effects):
                    stray.append({"attempt": entry.attempt, "seq": entry.seq})
            position = page[-1].seq
        body = {"kind": "sweep", "through": position, "stray": stray}
        seq, own = self._record.append(body)
        self._record.sync()
        return {**body, "record": {"seq": seq, "hash": own}}

    def _head(self, countersign: str) -> Mapping[str, Any]:
        self._record.sync()
        return {
            "head": signed_head(
                self._key, "observer", self._record.seq, self._record.hash, countersign
            )
        }
