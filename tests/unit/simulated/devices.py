"""Invented devices for the reader's tests: a gate, an oven, a pump, a cover, a doorbell, a safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.domain.digests import Json

NOW = "2026-03-02T18:30:00Z"
FRESH = "2026-03-02T18:29:40Z"


def grant(name: str, status: str = "active", until: str = "2026-03-02T23:00:00Z") -> Json:
    return {
        "name": name,
        "status": status,
        "not_before": "2026-03-02T08:00:00Z",
        "not_after": until,
    }


def votes(name: str, at: str = "2026-03-02T17:00:00Z", **answers: str) -> Json:
    return {
        "name": name,
        "votes": {
            f"person.{who.lower()}": {"name": who, "answer": answer, "at": at}
            for who, answer in answers.items()
        },
    }


def fact(name: str, value: str, unit: str = "", reported_at: str = FRESH) -> Json:
    entry: dict[str, Json] = {
        "name": name,
        "value": value,
        "reported_at": reported_at,
        "version": 3,
    }
    return {**entry, "unit": unit} if unit else entry


def snapshot(changes: Mapping[str, Mapping[str, Json]] | None = None) -> dict[str, Json]:
    """Return a snapshot in which everything is in order, with entries of a section replaced."""
    sections: dict[str, dict[str, Json]] = {
        "grants": {
            "g1": grant("gardener's gate permit"),
            "g2": grant("caterer booking"),
        },
        "consents": {
            "c1": votes("consent to the doorbell recording", Mira="yes", Jonas="yes", Pia="yes"),
        },
        "facts": {
            "f1": fact("oven door contact", "closed"),
            "f2": fact("oven core temperature", "180", "C"),
            "f3": fact("sump water level", "42", "cm"),
            "f4": fact("pool occupancy sensor", "clear"),
            "f5": fact("pool pump", "stopped"),
            "f6": fact("child lock", "engaged"),
            "f7": fact("line pressure", "2.4", "bar"),
        },
        "versions": {"v1": {"name": "gate controller firmware", "value": "5.4.1"}},
    }
    for section, entries in (changes or {}).items():
        sections[section].update(entries)
    return {"schema": "retire.snapshot/v1", "as_of": NOW, **sections}
