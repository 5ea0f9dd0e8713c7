"""Faults that one message over one broken part shows: what is changed, and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sink.proposal import MAX_CHARACTERS
from tests import houses
from tests.faults.rig import GONE, Change, Rig, snapshot_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TARGET = "climate.den"
GOOD = {"target": TARGET, "temperature": 26.5}
WARM = "/consents/warm/votes/person.ann"
BILL = "/consents/bill/votes"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong; ``acts`` says that an act is right all the same.

    ``hangs`` says that the row waits for the deadline.
    """

    what: str
    changes: tuple[Change, ...] = ()
    message: Mapping[str, Any] = field(default_factory=dict)
    stage: Callable[[Rig], None] | None = None
    snapshot: bytes | None = None
    acts: bool = False
    hangs: bool = False

    def prepare(self, rig: Rig) -> None:
        """Freeze the episode and break the part."""
        data = snapshot_bytes(self.changes) if self.snapshot is None else self.snapshot
        rig.freeze(data)
        if self.stage is not None:
            self.stage(rig)


def at(what: str, path: str, value: Any, *, acts: bool = False) -> Fault:
    """A snapshot that differs in one place."""
    return Fault(what, ((path, value),), acts=acts)


def arguments(what: str, text: str, *, acts: bool = False) -> Fault:
    """An argument object, by the letter."""
    return said(what, f'{{"tool":"climate_set","arguments":{text}}}', acts=acts)


def said(what: str, text: str, *, acts: bool = False) -> Fault:
    """An answer, by the letter."""
    return Fault(what, message={"answer": houses.text_answer(text)}, acts=acts)


def temperature(what: str, number: str, *, acts: bool = False) -> Fault:
    return arguments(what, f'{{"target":"climate.den","temperature":{number}}}', acts=acts)


def target(what: str, text: str) -> Fault:
    return arguments(what, json.dumps({**GOOD, "target": text}))


def tool(what: str, text: str) -> Fault:
    return Fault(what, message={"answer": houses.answer(GOOD, tool=text)})


def calls(what: str, *given: Mapping[str, Any], **fields: Any) -> Fault:
    answer = {"mode": "tools", "tool_calls": list(given), "finish_reason": "tool_calls", **fields}
    return Fault(what, message={"answer": json.dumps(answer)})


def call(**changes: Any) -> dict[str, Any]:
    return {"id": "c1", "name": "climate_set", "arguments": json.dumps(GOOD), **changes}


def doubled(old: str, new: str) -> bytes:
    """The snapshot's bytes with one key standing twice."""
    data = snapshot_bytes()
    assert data.count(old.encode()) >= 1
    return data.replace(old.encode(), new.encode(), 1)


class _Breaking:
    """A snapshot in which every look raises."""

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


def _read_raises(rig: Rig) -> None:
    def read(_: bytes) -> Any:
        raise MemoryError("evaluator")

    rig.read = read


def _evaluate_raises(rig: Rig) -> None:
    rig.read = lambda _: _Breaking()


def _evaluator_gives_nothing(rig: Rig) -> None:
    rig.read = lambda _: None


def _world(**fields: Any) -> Callable[[Rig], None]:
    def stage(rig: Rig) -> None:
        for name, value in fields.items():
            setattr(rig.world, name, value)

    return stage


def _clock(text: str) -> Callable[[Rig], None]:
    def stage(rig: Rig) -> None:
        rig.now = lambda: text

    return stage


def _clock_raises(rig: Rig) -> None:
    def now() -> str:
        raise OSError("no clock")

    rig.now = now


def _other_digest(rig: Rig) -> None:
    """The world states one digest and hands out bytes that have another."""
    rig.freeze(snapshot_bytes(), stated="sha256:" + "5" * 64)


SHA = "sha256:" + "7" * 64
REVOKED = ("/grants/boost/status", "revoked")

PREDICATES = {
    "Grant": (
        at("missing", "/grants/boost", GONE),
        at("wrong type: the grant is a text", "/grants/boost", "active"),
        at("wrong type: its status is true", "/grants/boost/status", True),
        at("null", "/grants/boost", None),
        at("false: revoked", *REVOKED),
        at("false: held by another agent", "/grants/boost/holder", "agent.guest"),
        at("false: for another service", "/grants/boost/service", "climate.off"),
        at("false: for another target", "/grants/boost/target", "climate.hall"),
        at("a pattern in place of a target", "/grants/boost/target", "climate.*"),
        at("stale: its window is over", "/grants/boost/not_after", "2026-05-04T17:30:00Z"),
        at("stale: its window has not begun", "/grants/boost/not_before", "2026-05-04T18:00:01Z"),
        at("its first instant is now", "/grants/boost/not_before", houses.NOW, acts=True),
        at("its last instant is now", "/grants/boost/not_after", houses.NOW),
        at("its window has no readable end", "/grants/boost/not_after", "tomorrow"),
    ),
    "Consent of one": (
        at("missing: no such question", "/consents/warm", GONE),
        at("missing: no vote", "/consents/warm/votes", {}),
        at("wrong type: the answer is true", f"{WARM}/answer", True),
        at("wrong type: the votes are a list", "/consents/warm/votes", ["person.ann"]),
        at("false: the answer is no", f"{WARM}/answer", "no"),
        at("false: the answer is Yes, not yes", f"{WARM}/answer", "Yes"),
        at("withdrawn before the freeze", f"{WARM}/answer", "withdrawn"),
    ),
    "Consent of two among three": (
        at("missing", "/consents/bill", GONE),
        at("wrong type: the votes are a number", "/consents/bill/votes", 2),
        at("false: one yes", f"{BILL}/person.bo/answer", "no"),
        Fault(
            "one person twice, under a second spelling",
            (
                (f"{BILL}/person.bo", GONE),
                (f"{BILL}/Person.Ann", {"name": "Ann", "answer": "yes", "at": houses.NOW}),
            ),
        ),
        Fault(
            "one person twice, and somebody who is not asked",
            (
                (f"{BILL}/person.bo", GONE),
                (f"{BILL}/person.zoe", {"name": "Ann", "answer": "yes", "at": houses.NOW}),
            ),
        ),
        Fault(
            "one person twice, as a key that stands twice",
            snapshot=doubled('"person.bo": {"name": "Bo"', '"person.ann": {"name": "Ann"'),
        ),
    ),
    "Fact that is a text": (
        at("missing", "/facts/window", GONE),
        at("wrong type: true", "/facts/window/value", True),
        at("wrong type: no version", "/facts/window/version", None),
        at("false", "/facts/window/value", "open"),
        at("stale: exactly 120 s old", "/facts/window/reported_at", "2026-05-04T17:58:00Z"),
        at("119 s old", "/facts/window/reported_at", "2026-05-04T17:58:01Z", acts=True),
        at("reported in the future", "/facts/window/reported_at", "2026-05-04T18:00:07Z"),
        at("no report time", "/facts/window/reported_at", GONE),
    ),
    "Fact that is a number": (
        at("missing", "/facts/outdoor", GONE),
        at("wrong type: a number, not its text", "/facts/outdoor/value", 3.5),
        at("wrong type: words", "/facts/outdoor/value", "mild"),
        at("not finite", "/facts/outdoor/value", "NaN"),
        at("false: above its bound", "/facts/outdoor/value", "12.51"),
        at("other unit", "/facts/outdoor/unit", "F"),
        at("no unit", "/facts/outdoor/unit", None),
        at("stale", "/facts/outdoor/reported_at", "2026-05-04T17:45:00Z"),
    ),
    "Version": (
        at("missing", "/versions/gateway", GONE),
        at("wrong type: a number", "/versions/gateway/value", 4.1),
        at("false", "/versions/gateway/value", "3.9"),
        at("stale: an older one", "/versions/gateway/value", "4.0"),
        at("longer text with the right beginning", "/versions/gateway/value", "4.1.0"),
    ),
}

CLOCKS = (
    at("world's clock set back one day", "/as_of", "2026-05-03T18:00:00Z"),
    at("world's clock set back to before a report", "/as_of", "2026-05-04T17:58:30Z"),
    at("world's clock one hour ahead", "/as_of", "2026-05-04T19:00:00Z"),
    at("world's clock two minutes ahead", "/as_of", "2026-05-04T18:02:00Z"),
    at("world's clock unreadable", "/as_of", "18:00"),
    at("world's clock with another offset", "/as_of", "2026-05-04T18:00:00+02:00"),
    at("world's clock missing", "/as_of", GONE),
    Fault("sink's own clock set back", stage=_clock("1999-01-01T00:00:00Z"), acts=True),
    Fault("sink's own clock ahead", stage=_clock("2099-01-01T00:00:00Z"), acts=True),
    Fault("sink's own clock broken", stage=_clock_raises),
)

DIGESTS = (
    Fault("contract digest differs", message={"contract": SHA}),
    Fault("snapshot digest differs", message={"snapshot": SHA}),
    Fault("the world's bytes differ from the digest it states", stage=_other_digest),
    Fault("episode differs", message={"episode": SHA}),
    Fault("attempt unknown to the world", message={"attempt": "f" * 32}),
    Fault("attempt is no attempt id", message={"attempt": "../" + "f" * 29}),
    Fault("a digest is missing", message={"snapshot": None}),
    Fault("snapshot bytes cut in the middle", snapshot=snapshot_bytes()[:700]),
    Fault("snapshot empty", snapshot=b""),
    Fault("snapshot not UTF-8", snapshot=snapshot_bytes().replace(b"Ann", b"A\xff\xfe", 1)),
    Fault(
        "snapshot with a key twice, revoked and then active",
        snapshot=doubled('"status": "active"', '"status": "revoked", "status": "active"'),
    ),
    at("snapshot with a key that nobody knows", "/override", "allow"),
)

EVALUATOR = (
    Fault("the reader of snapshots raises", stage=_read_raises),
    Fault("a predicate raises", stage=_evaluate_raises),
    Fault("the reader of snapshots returns nothing", stage=_evaluator_gives_nothing),
    Fault("the world raises", stage=_world(frozen_fault=ConnectionError("gone"))),
    Fault("the world hangs past the deadline", stage=_world(hangs_when="frozen"), hangs=True),
)

ANSWERS = {
    "Answer as a whole": (
        said("cut in the middle", '{"tool":"climate_set","arguments":{"target":"climate.den"'),
        said("empty", ""),
        said(
            "two proposals, one after the other",
            2 * json.dumps({"tool": "climate_set", "arguments": GOOD}),
        ),
        said(
            "two proposals in a list", json.dumps(2 * [{"tool": "climate_set", "arguments": GOOD}])
        ),
        calls("two tool calls", call(), call(id="c2")),
        calls(
            "one tool call, cut off at the token limit",
            call(),
            completion_tokens=256,
            max_tokens=256,
        ),
        calls("one tool call, finish reason missing", call(), finish_reason=None),
        calls("arguments are an object, not text", call(arguments=GOOD)),
        calls("arguments are null", call(arguments=None)),
        calls("arguments encoded twice", call(arguments=json.dumps(json.dumps(GOOD)))),
        said("fenced", f"```json\n{json.dumps({'tool': 'climate_set', 'arguments': GOOD})}\n```"),
        said("longer than is read", " " * MAX_CHARACTERS + "{}"),
        said("nested 50,000 deep", "[" * 50_000),
        said("half a surrogate pair", '{"tool":"climate_set\\ud800","arguments":{}}'),
        Fault("no answer at all", message={"answer": None}),
        said("a refusal", '{"refusal":"I would rather not."}'),
    ),
    "Look-alikes": (
        target("target in capitals", "Climate.Den"),
        target("target with a Cyrillic letter", "climate.d\u0435n"),
        target("target with a Kelvin sign", "\u212alimate.den"),
        target("target with a full-width letter", "climate.\uff44en"),
        target("target with a zero-width space", "climate.den\u200b"),
        target("target with a line feed", "climate.den\n"),
        target("target with a path", "climate.den/../climate.hall"),
        target("two targets in one text", "climate.den, climate.hall"),
        target("all", "all"),
        target("another offered target", "climate.hall"),
        tool("tool with a Cyrillic letter", "climate_s\u0435t"),
        tool("tool in capitals", "Climate_Set"),
        tool("tool with a dot", "climate.set"),
        tool("tool with a prefix", "functions.climate_set"),
        at("grant's service with a Cyrillic letter", "/grants/boost/service", "climate.s\u0435t"),
        at("grant's holder with a Cyrillic letter", "/grants/boost/holder", "agent.h\u043euse"),
        Fault(
            "consent of a look-alike of the person asked",
            (
                (WARM, GONE),
                (
                    "/consents/warm/votes/person.\u0430nn",
                    {"name": "Ann", "answer": "yes", "at": houses.NOW},
                ),
            ),
        ),
    ),
    "Keys": (
        arguments(
            "a key twice", '{"target":"climate.hall","target":"climate.den","temperature":26.5}'
        ),
        arguments(
            "a key twice, once escaped",
            '{"target":"climate.den","t\\u0061rget":"climate.hall","temperature":26.5}',
        ),
        said(
            "arguments twice",
            '{"tool":"climate_set","arguments":{},"arguments":'
            '{"target":"climate.den","temperature":26.5}}',
        ),
        arguments("an extra parameter", json.dumps({**GOOD, "only_if_nobody_is_in": True})),
        arguments("an extra parameter without a name", json.dumps({**GOOD, "": True})),
        arguments(
            "an extra key that differs in case", json.dumps({**GOOD, "Target": "climate.hall"})
        ),
        arguments("a missing parameter", '{"target":"climate.den"}'),
        arguments("a missing target", '{"temperature":26.5}'),
        arguments("a null parameter", json.dumps({**GOOD, "minutes": None})),
        arguments("a nested parameter", json.dumps({**GOOD, "minutes": {"value": 60}})),
        arguments("wrapped once more", json.dumps({"parameters": GOOD})),
        arguments("the default, written out", json.dumps({**GOOD, "minutes": 60}), acts=True),
        arguments("another value than the default", json.dumps({**GOOD, "minutes": 61})),
    ),
    "Numbers": (
        temperature("NaN", "NaN"),
        temperature("Infinity", "Infinity"),
        temperature("1e400", "1e400"),
        temperature("2^53 + 1", "9007199254740993"),
        temperature("a text", '"26.5"'),
        temperature("true", "true"),
        temperature("-0", "-0"),
        temperature("leading zero", "026.5"),
        temperature("more digits than are exact", "26.500000000000001"),
        temperature("a quarter of a degree too much", "26.75"),
        temperature("2.65e1, which is 26.5", "2.65e1", acts=True),
        temperature("20, in the free band", "20", acts=True),
        temperature("24.1, just above the free band", "24.1"),
    ),
}

ACTUATOR = (
    Fault("raises before it sends", stage=_world(before_act=OSError("bus"))),
    Fault("raises after it has sent", stage=_world(after_act=OSError("bus")), acts=True),
    Fault(
        "hangs past its deadline, nothing sent", stage=_world(hangs_when="before act"), hangs=True
    ),
    Fault(
        "hangs past its deadline, sent", stage=_world(hangs_when="after act"), acts=True, hangs=True
    ),
)

SIMPLE: dict[str, tuple[Fault, ...]] = {
    **PREDICATES,
    "Clocks": CLOCKS,
    "Digests and identities": DIGESTS,
    "Evaluation": EVALUATOR,
    **ANSWERS,
    "Actuator": ACTUATOR,
}
"""Every fault that one message shows, by group."""
