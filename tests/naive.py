"""A second, slow and simple reading of what a contract means, over plain dictionaries.

It is written from the words of the documentation and shares no code with the sink: windows are
compared as texts, numbers as fractions, JSON by a reader of its own. Where it and the sink differ,
one of them is wrong.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from fractions import Fraction

INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


class NotUsableError(Exception):
    """The answer or a text in it cannot be used; ``args[0]`` says why."""


# --- predicates ---------------------------------------------------------------------------------


def seconds(text):
    """Seconds since an arbitrary start, or an error for anything but the one written form."""
    if INSTANT.fullmatch(text) is None:
        raise NotUsableError(text)
    try:
        moment = datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError as error:
        raise NotUsableError(text) from error
    return (moment - datetime(1, 1, 1)).total_seconds()  # noqa: DTZ001  # all are UTC


def number(value):
    """The fraction that a plain number or its text stands for."""
    text = str(value)
    if PLAIN_NUMBER.fullmatch(text) is None:
        raise NotUsableError(text)
    return Fraction(text)


def grant_reason(contract, predicate, snapshot):
    grant = snapshot["grants"].get(predicate["grant"])
    action = contract["action"]
    if grant is None:
        return "grant_absent"
    if grant["holder"] != contract["requester"]:
        return "principal_mismatch"
    covered = (grant["service"], grant["target"]) == (action["service"], action["target"])
    if not covered or grant["status"] != "active":
        return "grant_absent"
    texts = (grant["not_before"], snapshot["as_of"], grant["not_after"])
    try:
        start, now, end = (seconds(text) for text in texts)
    except NotUsableError:
        return "grant_stale"
    return "" if start <= now < end else "grant_stale"


def consent_reason(predicate, snapshot):
    consent = snapshot["consents"].get(predicate["consent"], {"votes": {}})
    yes = {who for who, vote in consent["votes"].items() if vote["answer"] == "yes"}
    if len(yes & set(predicate["principals"])) >= predicate["quorum"]:
        return ""
    return "principal_mismatch" if len(predicate["principals"]) == 1 else "quorum_unmet"


def fact_holds(predicate, snapshot):
    fact = snapshot["facts"].get(predicate["fact"])
    if fact is None:
        return False
    if "one_of" in predicate and fact["value"] not in predicate["one_of"]:
        return False
    if "minimum" in predicate or "maximum" in predicate:
        if fact.get("unit") != predicate["unit"]:
            return False
        value = number(fact["value"])
        if "minimum" in predicate and value < number(predicate["minimum"]):
            return False
        if "maximum" in predicate and value > number(predicate["maximum"]):
            return False
    if "maximum_age_seconds" in predicate:
        age = seconds(snapshot["as_of"]) - seconds(fact["reported_at"])
        return 0 <= age < predicate["maximum_age_seconds"]
    return True


def fact_reason(predicate, snapshot):
    try:
        return "" if fact_holds(predicate, snapshot) else "state_unmet"
    except NotUsableError:
        return "state_unmet"


def version_reason(predicate, snapshot):
    version = snapshot["versions"].get(predicate["component"], {"value": None})
    return "" if version["value"] in predicate["one_of"] else "version_mismatch"


def reasons(contract, snapshot):
    """Why each predicate does not hold, by id; an empty text where it holds."""
    found = {}
    for predicate in contract["predicates"]:
        match predicate["kind"]:
            case "grant":
                found[predicate["id"]] = grant_reason(contract, predicate, snapshot)
            case "consent":
                found[predicate["id"]] = consent_reason(predicate, snapshot)
            case "fact":
                found[predicate["id"]] = fact_reason(predicate, snapshot)
            case "version":
                found[predicate["id"]] = version_reason(predicate, snapshot)
    return found


def truth(contract, snapshot):
    """Whether each predicate holds, by id."""
    return {key: not reason for key, reason in reasons(contract, snapshot).items()}


# --- answers ------------------------------------------------------------------------------------


def token_number(text):
    """A number of an answer: no more digits than are exact, no size that no device has."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, places = mantissa.lstrip("-").partition(".")
    digits = (whole + places).lstrip("0")
    if text.startswith("-") and not digits:
        raise NotUsableError("negative zero")
    if not places and not exponent and "e" not in text.lower():
        if abs(int(text)) >= 2**53:
            raise NotUsableError("not exact")
        return Fraction(text)
    if len(text) > 40 or len(digits) > 15:
        raise NotUsableError("not exact")
    shift = int(exponent or "0")
    leading = len(places) if not digits else len(places) - len(digits) + 1
    if abs(shift - leading) > 15:
        raise NotUsableError("out of range")
    return Fraction(mantissa) * Fraction(10) ** shift


def once(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        raise NotUsableError("a key stands twice")
    return dict(pairs)


def refused(text):
    raise NotUsableError(text)


def read_text_answer(text):
    """The tool and the arguments of a text answer, read by the letter."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=once,
            parse_int=token_number,
            parse_float=token_number,
            parse_constant=refused,
        )
    except (ValueError, RecursionError) as error:
        raise NotUsableError("not JSON") from error
    if not isinstance(value, dict) or set(value) != {"tool", "arguments"}:
        raise NotUsableError("not one proposal")
    tool, arguments = value["tool"], value["arguments"]
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise NotUsableError("wrong types")
    if any(item is None or isinstance(item, dict | list) for item in arguments.values()):
        raise NotUsableError("an argument is no plain value")
    return tool, arguments


# --- decisions ----------------------------------------------------------------------------------


def kind_of(value):
    """Bool, text or number, and the value in a form that compares exactly."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, str):
        return ("text", value)
    return ("number", value if isinstance(value, Fraction) else Fraction(str(value)))


def fits(schema, value):
    kind, exact = kind_of(value)
    wanted = {"string": "text", "boolean": "boolean", "number": "number", "integer": "number"}
    if kind != wanted[schema["type"]]:
        return False
    if kind == "text" and len(exact) > schema.get("max_length", 200):
        return False
    if kind == "number":
        places = 0 if schema["type"] == "integer" else schema.get("decimals", 2)
        if (exact * 10**places).denominator != 1:
            return False
        if "minimum" in schema and exact < Fraction(str(schema["minimum"])):
            return False
        if "maximum" in schema and exact > Fraction(str(schema["maximum"])):
            return False
    if "const" in schema and kind_of(schema["const"]) != (kind, exact):
        return False
    return "enum" not in schema or (kind, exact) in [kind_of(item) for item in schema["enum"]]


def same(left, right):
    return {key: kind_of(value) for key, value in left.items()} == {
        key: kind_of(value) for key, value in right.items()
    }


def filled(action, values):
    defaults = {
        key: schema["default"]
        for key, schema in action.get("parameters", {}).items()
        if "default" in schema
    }
    return {**defaults, **values}


def bound(action, sent, canonical, binding):
    if binding == "canonical":
        return same(filled(action, sent), filled(action, canonical))
    return same(sent, canonical)


def without(values, name):
    return {key: value for key, value in values.items() if key != name}


def in_free_band(contract, sent, binding):
    band = contract.get("free_band")
    if band is None or band["parameter"] not in sent:
        return False
    action, name = contract["action"], band["parameter"]
    kind, value = kind_of(sent[name])
    if kind != "number":
        return False
    if not Fraction(str(band["minimum"])) <= value <= Fraction(str(band["maximum"])):
        return False
    bare = {**action, "parameters": without(action.get("parameters", {}), name)}
    return bound(bare, without(sent, name), without(action["canonical"], name), binding)


def decide(contract, snapshot, text, binding):
    """Return ("allow", basis) or ("deny", reason) for a finished text answer."""
    try:
        tool, arguments = read_text_answer(text)
    except NotUsableError:
        return ("deny", "malformed_proposal")
    action = contract["action"]
    if tool != action["tool"]:
        return ("deny", "unknown_service")
    if arguments.get("target") != action["target"]:
        return ("deny", "noncanonical_target")
    sent = without(arguments, "target")
    schemas = action.get("parameters", {})
    known = all(key in schemas and fits(schemas[key], value) for key, value in sent.items())
    whole = all(key in sent for key, schema in schemas.items() if schema.get("required"))
    if not known or not whole:
        return ("deny", "parameter_mismatch")
    if in_free_band(contract, sent, binding):
        return ("allow", "free_band")
    if not bound(action, sent, action["canonical"], binding):
        return ("deny", "parameter_mismatch")
    for reason in reasons(contract, snapshot).values():
        if reason:
            return ("deny", reason)
    return ("allow", "authority")
