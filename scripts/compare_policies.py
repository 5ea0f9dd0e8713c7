#!/usr/bin/env python3
"""Put the same faults to two public policy libraries and to the sink's decision.

``python scripts/compare_policies.py`` installs the libraries in a temporary environment of their
own, asks everything, prints the table and compares it with the one in ``docs/policy-libraries.md``.
Exit codes: 0 the table is the published one, 1 it differs, 2 a library cannot be installed.
``--write`` puts the table into the page instead.

A policy library is asked through a caller, and the caller here is the plainest one: it reads the
model's answer with ``json.loads`` and hands the snapshot's values on as they are.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REQUIREMENTS = ("cedarpy==4.12.2", "pycasbin==2.8.0")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "policy-libraries.md"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
COLUMNS = (
    "sink",
    "Cedar, permit",
    "Cedar, forbid",
    "Cedar, forbid + schema",
    "Casbin, allow",
    "Casbin, deny",
)
NOT_ASKED = "-"
NOW = "2026-05-04T18:00:00Z"
_INSTALL_SECONDS = 600

CONTRACT = """\
schema: retire.contract/v1
bundle: DEN_HEAT
requester: agent.house
action:
  tool: climate_set
  description: "Set a room's temperature."
  service: climate.set
  targets: {climate.den: "den heating", climate.hall: "hall heating"}
  parameters:
    temperature: {type: number, description: "degrees", required: true, decimals: 1}
  target: climate.den
  canonical: {temperature: 26.5}
predicates:
  - {kind: grant, id: authority, grant: boost}
  - {kind: fact, id: window, fact: window, one_of: ["closed"], maximum_age_seconds: 120}
  - {kind: consent, id: neighbour, consent: warm, principals: [person.ann], quorum: 1}
"""

SNAPSHOT: dict[str, Any] = {
    "schema": "retire.snapshot/v1",
    "as_of": NOW,
    "grants": {
        "boost": {
            "name": "boost",
            "holder": "agent.house",
            "service": "climate.set",
            "target": "climate.den",
            "status": "active",
            "not_before": "2026-05-04T17:00:00Z",
            "not_after": "2026-05-04T19:00:00Z",
        }
    },
    "consents": {
        "warm": {
            "name": "warm",
            "votes": {"person.ann": {"name": "Ann", "answer": "yes", "at": NOW}},
        }
    },
    "facts": {
        "window": {
            "name": "window",
            "value": "closed",
            "reported_at": "2026-05-04T17:59:00Z",
            "version": 7,
        }
    },
    "versions": {},
}

SCOPE = """principal == Agent::"agent.house", action == Action::"climate_set",
  resource == Device::"climate.den\""""
CEDAR_PERMIT = f"""permit({SCOPE}) when {{
  context.grant.status == "active" &&
  context.now >= context.grant.not_before && context.now < context.grant.not_after &&
  context.window.value == "closed" &&
  context.now.durationSince(context.window.reported_at) >= duration("0s") &&
  context.now.durationSince(context.window.reported_at) < duration("120s") &&
  context.votes["person.ann"].answer == "yes" &&
  context.temperature == decimal("26.5")
}};
"""
CEDAR_FORBID = f"""permit({SCOPE});
forbid(principal, action, resource) when {{ context.grant.status != "active" }};
forbid(principal, action, resource) when {{ context.now < context.grant.not_before }};
forbid(principal, action, resource) when {{ context.now >= context.grant.not_after }};
forbid(principal, action, resource) when {{ context.window.value != "closed" }};
forbid(principal, action, resource)
  when {{ context.now.durationSince(context.window.reported_at) < duration("0s") }};
forbid(principal, action, resource)
  when {{ context.now.durationSince(context.window.reported_at) >= duration("120s") }};
forbid(principal, action, resource) when {{ context.votes["person.ann"].answer != "yes" }};
forbid(principal, action, resource) when {{ context.temperature != decimal("26.5") }};
"""
CEDAR_OVERFLOW = """forbid(principal, action, resource)
  when { context.window.version * 9223372036854775807 > 0 };
"""
CEDAR_SCHEMA = """entity Agent; entity Device;
action "climate_set" appliesTo {
  principal: Agent, resource: Device,
  context: {
    now: datetime,
    grant: {status: String, not_before: datetime, not_after: datetime},
    window: {value: String, reported_at: datetime, version: Long},
    votes: {"person.ann": {answer: String}},
    temperature: decimal
  }
};
"""

CASBIN_ALLOW_MODEL = """[request_definition]
r = sub, obj, act, ctx
[policy_definition]
p = sub, obj, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.obj == p.obj && r.act == p.act && r.ctx.grant.status == "active" && \
r.ctx.now >= r.ctx.grant.not_before && r.ctx.now < r.ctx.grant.not_after && \
r.ctx.window.value == "closed" && r.ctx.age >= 0 && r.ctx.age < 120 && r.ctx.ann == "yes" && \
r.ctx.temperature == 26.5
"""
CASBIN_DENY_MODEL = """[request_definition]
r = sub, obj, act, ctx
[policy_definition]
p = sub, obj, act, rule, eft
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = r.sub == p.sub && r.obj == p.obj && r.act == p.act && eval(p.rule)
"""
CASBIN_DENY_RULES = (
    'r.ctx.grant.status != "active"',
    "r.ctx.now < r.ctx.grant.not_before",
    "r.ctx.now >= r.ctx.grant.not_after",
    'r.ctx.window.value != "closed"',
    "r.ctx.age < 0",
    "r.ctx.age >= 120",
    'r.ctx.ann != "yes"',
    "r.ctx.temperature != 26.5",
)
GONE = "(gone)"
"""In place of a value: the snapshot lacks that place."""


@dataclass(frozen=True, slots=True)
class Case:
    """One fault; ``policy`` says what happened to the rules: whole, cut, shortened or raising."""

    what: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    arguments: str = '{"target":"climate.den","temperature":26.5}'
    tool: str = "climate_set"
    policy: str = "whole"

    @property
    def snapshot(self) -> dict[str, Any]:
        """The snapshot with the case's changes."""
        data = copy.deepcopy(SNAPSHOT)
        for path, value in self.changes.items():
            *parents, last = path.split("/")
            place = data
            for part in parents:
                place = place[part]
            if value == GONE:
                del place[last]
            else:
                place[last] = value
        return data


def _temperature(what: str, number: str) -> Case:
    return Case(what, arguments=f'{{"target":"climate.den","temperature":{number}}}')


def _target(what: str, target: str) -> Case:
    return Case(what, arguments=json.dumps({"target": target, "temperature": 26.5}))


_VOTE = "consents/warm/votes/person.ann"
CASES = (
    Case("nothing is wrong"),
    Case("fact missing", {"facts/window": GONE}),
    Case("fact has no value", {"facts/window/value": GONE}),
    Case("fact is null", {"facts/window/value": None}),
    Case("fact is true, not a text", {"facts/window/value": True}),
    Case("fact false", {"facts/window/value": "open"}),
    Case("fact stale, exactly 120 s", {"facts/window/reported_at": "2026-05-04T17:58:00Z"}),
    Case("fact from the future", {"facts/window/reported_at": "2026-05-04T18:00:07Z"}),
    Case("fact without a report time", {"facts/window/reported_at": GONE}),
    Case("grant missing", {"grants/boost": GONE}),
    Case("grant revoked", {"grants/boost/status": "revoked"}),
    Case("grant without a status", {"grants/boost/status": GONE}),
    Case("grant at its first instant", {"grants/boost/not_before": NOW}),
    Case("grant at its last instant", {"grants/boost/not_after": NOW}),
    Case("grant's end unreadable", {"grants/boost/not_after": "tomorrow"}),
    Case("clock set back a day", {"as_of": "2026-05-03T18:00:00Z"}),
    Case("clock an hour ahead", {"as_of": "2026-05-04T19:00:00Z"}),
    Case("consent missing", {"consents/warm": GONE}),
    Case("consent refused", {f"{_VOTE}/answer": "no"}),
    Case(
        "consent of a look-alike only",
        {
            _VOTE: GONE,
            "consents/warm/votes/person.\u0430nn": {"name": "Ann", "answer": "yes", "at": NOW},
        },
    ),
    _target("target with a Cyrillic letter", "climate.d\u0435n"),
    _target("target with a line feed", "climate.den\n"),
    _target("target in capitals", "Climate.Den"),
    Case("service with a Cyrillic letter", tool="climate_s\u0435t"),
    _temperature("another temperature", "27.5"),
    _temperature("temperature is 2.65e1", "2.65e1"),
    _temperature("temperature is a text", '"26.5"'),
    _temperature("temperature is NaN", "NaN"),
    _temperature("temperature is 1e400", "1e400"),
    _temperature("temperature is 2^53 + 1", "9007199254740993"),
    _temperature("26.500000000000000001", "26.500000000000000001"),
    Case("temperature missing", arguments='{"target":"climate.den"}'),
    _temperature("temperature is null", "null"),
    Case(
        "an undeclared parameter",
        arguments='{"target":"climate.den","temperature":26.5,"only_if_nobody_is_in":true}',
    ),
    Case(
        "target twice, first the hall",
        arguments='{"target":"climate.hall","target":"climate.den","temperature":26.5}',
    ),
    Case("rules cut in the middle", policy="cut"),
    Case("rules cut between two, fact false", {"facts/window/value": "open"}, policy="shortened"),
    Case("no rules at all", policy="empty"),
    Case("a rule that cannot be computed", policy="raising"),
)


class CannotInstallError(Exception):
    """A library could not be installed; the text says which and why."""


# --- the sink ------------------------------------------------------------------------------------


def sink_answer(case: Case) -> str:
    """Return the sink's decision on a case, with its reason."""
    from sink.contract import load_contract, read_snapshot  # noqa: PLC0415  # not in the other
    from sink.decision import Allow, Binding, decide  # noqa: PLC0415  # environment
    from sink.proposal import Proposal, RawAnswer, parse  # noqa: PLC0415
    from sink.record import digest  # noqa: PLC0415
    from sink.strict_yaml import DocumentError  # noqa: PLC0415

    whole = CONTRACT.encode()
    cut_at = {"cut": len(whole) // 2, "shortened": CONTRACT.index("  - {kind: fact"), "empty": 0}
    if case.policy == "raising":
        return NOT_ASKED
    data = whole[: cut_at.get(case.policy, len(whole))]
    try:
        contract = load_contract(data, "contract.yaml")
    except DocumentError:
        return "does not start"
    if digest(data) != digest(whole):
        return "deny: other digest"
    text = f'{{"tool":{json.dumps(case.tool)},"arguments":{case.arguments}}}'
    parsed = parse(RawAnswer(mode="json", text=text, finish_reason="stop"))
    if not isinstance(parsed, Proposal):
        return "deny: malformed_proposal"
    try:
        snapshot = read_snapshot(json.dumps(case.snapshot).encode())
    except ValueError:
        return "deny: internal_error"
    decision = decide(contract, parsed, snapshot, Binding.CANONICAL)
    return "allow" if isinstance(decision, Allow) else f"deny: {decision.reason}"


# --- the libraries, asked in their own environment -----------------------------------------------


def _instant(text: object) -> Any:  # noqa: ANN401  # JSON
    return {"__extn": {"fn": "datetime", "arg": text}} if isinstance(text, str) else text


def _picked(source: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: source[name] for name in names if name in source}


def _cedar_context(case: Case, arguments: dict[str, Any]) -> dict[str, Any]:
    snapshot = case.snapshot
    context: dict[str, Any] = {"now": _instant(snapshot["as_of"])}
    grant, window = snapshot["grants"].get("boost"), snapshot["facts"].get("window")
    if grant is not None:
        context["grant"] = _picked(grant, ("status", "not_before", "not_after"))
    if window is not None:
        context["window"] = _picked(window, ("value", "reported_at", "version"))
    for record in (context.get("grant", {}), context.get("window", {})):
        for name in ("not_before", "not_after", "reported_at"):
            if name in record:
                record[name] = _instant(record[name])
    if "warm" in snapshot["consents"]:
        votes = snapshot["consents"]["warm"]["votes"]
        context["votes"] = {who: {"answer": vote["answer"]} for who, vote in votes.items()}
    for name, value in arguments.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        decimal = {"__extn": {"fn": "decimal", "arg": str(float(value))}} if number else value
        context[name] = decimal
    context.pop("target", None)
    return context


def cedar_answer(case: Case, style: str) -> str:
    """Return Cedar's decision; an error that it reports beside a decision is told too."""
    import cedarpy  # type: ignore[import-not-found]  # noqa: PLC0415  # only there

    rules = CEDAR_PERMIT if style == "permit" else CEDAR_FORBID
    match case.policy:
        case "cut":
            rules = rules[: len(rules) // 2]
        case "shortened":
            if style == "permit":
                return NOT_ASKED  # one rule: nothing can be lost between two
            rules = _before_window(rules)
        case "empty":
            rules = ""
        case "raising":
            rules += CEDAR_OVERFLOW
        case _:
            pass
    arguments = json.loads(case.arguments)
    request = {
        "principal": {"type": "Agent", "id": "agent.house"},
        "action": {"type": "Action", "id": case.tool},
        "resource": {"type": "Device", "id": arguments["target"]},
        "context": _cedar_context(case, arguments),
    }
    schema = {"schema": CEDAR_SCHEMA} if style == "schema" else {}
    result = cedarpy.is_authorized(request, rules, [], **schema)
    decision = {"Allow": "ALLOW", "Deny": "deny", "NoDecision": "no decision"}
    error = ", error" if result.diagnostics.errors else ""
    return decision[result.decision.value] + (
        error if result.decision.value != "NoDecision" else ""
    )


def _before_window(rules: str) -> str:
    return rules[: rules.index("forbid(principal, action, resource) when { context.window.value")]


def _casbin_context(case: Case, arguments: Mapping[str, Any]) -> dict[str, Any]:
    snapshot = case.snapshot
    context: dict[str, Any] = {"now": snapshot["as_of"], **snapshot["grants"]}
    context["grant"] = context.pop("boost", None)
    if context["grant"] is None:
        del context["grant"]
    context |= {key: value for key, value in arguments.items() if key != "target"}
    window = snapshot["facts"].get("window")
    if window is not None:
        context["window"] = window
        if "reported_at" in window:
            times = (snapshot["as_of"], window["reported_at"])
            now, then = (datetime.fromisoformat(text) for text in times)
            context["age"] = (now - then).total_seconds()
    votes = snapshot["consents"].get("warm", {}).get("votes", {})
    if "person.ann" in votes:
        context["ann"] = votes["person.ann"]["answer"]
    return context


def casbin_answer(case: Case, style: str) -> str:
    """Return Casbin's decision; an exception is the caller's to handle and told as one."""
    import casbin  # type: ignore[import-not-found]  # noqa: PLC0415  # only there

    if case.policy in {"shortened", "raising"} and style == "allow":
        return NOT_ASKED  # one rule: nothing can be lost between two
    if case.policy == "cut":
        return _casbin_cut(casbin, style, case)
    arguments = json.loads(case.arguments)
    subject, act = "agent.house", "climate_set"
    model = casbin.Model()
    model.load_model_from_text(CASBIN_ALLOW_MODEL if style == "allow" else CASBIN_DENY_MODEL)
    enforcer = casbin.Enforcer(model)
    if case.policy != "empty" and style == "allow":
        enforcer.add_policy(subject, "climate.den", act)
    if case.policy != "empty" and style == "deny":
        rules = CASBIN_DENY_RULES[:3] if case.policy == "shortened" else CASBIN_DENY_RULES
        raising = ("r.ctx.age / 0 > 1",) if case.policy == "raising" else ()
        enforcer.add_policy(subject, "climate.den", act, "True", "allow")
        for rule in (*rules, *raising):
            enforcer.add_policy(subject, "climate.den", act, rule, "deny")
    context = _casbin_context(case, arguments)
    try:
        allowed = enforcer.enforce(subject, arguments["target"], case.tool, context)
    except Exception as error:  # noqa: BLE001  # the library documents no exception types
        return f"raises {type(error).__name__}"
    return "ALLOW" if allowed else "deny"


def _casbin_cut(casbin: Any, style: str, case: Case) -> str:  # noqa: ANN401  # an untyped module
    text = CASBIN_ALLOW_MODEL if style == "allow" else CASBIN_DENY_MODEL
    model = casbin.Model()
    try:
        model.load_model_from_text(text[: len(text) // 2])
        enforcer = casbin.Enforcer(model)
        enforcer.add_policy("agent.house", "climate.den", "climate_set")
        context = _casbin_context(case, json.loads(case.arguments))
        allowed = enforcer.enforce("agent.house", "climate.den", "climate_set", context)
    except Exception as error:  # noqa: BLE001  # the library documents no exception types
        return f"raises {type(error).__name__}"
    return "ALLOW" if allowed else "deny"


def library_answers() -> list[list[str]]:
    """Ask the libraries every case; run by the interpreter that has them."""
    asked: tuple[Callable[[Case], str], ...] = (
        lambda case: cedar_answer(case, "permit"),
        lambda case: cedar_answer(case, "forbid"),
        lambda case: cedar_answer(case, "schema"),
        lambda case: casbin_answer(case, "allow"),
        lambda case: casbin_answer(case, "deny"),
    )
    return [[ask(case) for ask in asked] for case in CASES]


# --- the table -----------------------------------------------------------------------------------


def _succeeds(what: str, command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstallError(f"{what}: {error}") from error
    if done.returncode != 0:
        raise CannotInstallError(f"{what}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done.stdout


def asked_in_own_environment() -> list[list[str]]:
    """Install the libraries in a temporary environment and ask them there.

    Raises:
        CannotInstallError: Names the library and the installer's last words.
    """
    with tempfile.TemporaryDirectory(prefix="compare-policies-") as name:
        folder = Path(name) / "env"
        _succeeds("a virtual environment", [sys.executable, "-m", "venv", str(folder)])
        python = str(folder / "bin" / "python")
        for requirement in REQUIREMENTS:
            _succeeds(
                requirement, [python, "-m", "pip", "install", "--quiet", "--no-input", requirement]
            )
        told = _succeeds("asking the libraries", [python, str(Path(__file__).resolve()), "--ask"])
        answers: list[list[str]] = json.loads(told)
        return answers


def table(answers: list[list[str]]) -> str:
    """Return the table as Markdown; allowing where the sink denies is set in bold."""
    lines = ["| fault | " + " | ".join(COLUMNS) + " |", "| --- " * (len(COLUMNS) + 1) + "|"]
    for case, given in zip(CASES, answers, strict=True):
        ours = sink_answer(case)
        told = [_shown(item, agrees=ours in {"allow", NOT_ASKED}) for item in given]
        lines.append(f"| {case.what} | {ours} | " + " | ".join(told) + " |")
    return "\n".join(lines)


def _shown(answer: str, *, agrees: bool) -> str:
    if not answer.startswith("ALLOW"):
        return answer
    return answer.lower() if agrees else f"**{answer}**"


def main() -> int:
    """Run the comparison; returns the exit code."""
    parser = argparse.ArgumentParser(description="Put the same faults to two policy libraries.")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--ask", action="store_true", help="used by itself: ask the libraries")
    arguments = parser.parse_args()
    if arguments.ask:
        sys.stdout.write(json.dumps(library_answers()))
        return 0
    try:
        sys.stdout.write(f"installing {', '.join(REQUIREMENTS)}\n\n")
        sys.stdout.flush()
        found = table(asked_in_own_environment())
    except CannotInstallError as error:
        sys.stderr.write(f"cannot install {error}\n")
        return 2
    sys.stdout.write(found + "\n")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    published, _, after = rest.partition(END)
    if arguments.write:
        PAGE.write_text(f"{before}{BEGIN}\n\n{found}\n\n{END}{after}", encoding="utf-8")
        return 0
    if published.strip() != found:
        sys.stderr.write(f"the table in {PAGE.name} is another one; --write replaces it\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
