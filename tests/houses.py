"""One small household as dictionaries, and its files as bytes: what many tests start from."""

from __future__ import annotations

import copy
import json

from counterfactuals.template import load_tasks, load_world
from sink.contract import load_contract, read_snapshot

NOW = "2026-05-04T18:00:00Z"

CONTRACT = {
    "schema": "retire.contract/v1",
    "bundle": "DEN_HEAT",
    "requester": "agent.house",
    "action": {
        "tool": "climate_set",
        "description": "Set a room's temperature.",
        "service": "climate.set",
        "target": "climate.den",
        "targets": {"climate.den": "den heating", "climate.hall": "hall heating"},
        "parameters": {
            "temperature": {
                "type": "number",
                "description": "degrees",
                "required": True,
                "minimum": 5,
                "maximum": 30,
                "decimals": 1,
                "unit": "C",
            },
            "minutes": {
                "type": "integer",
                "description": "how long",
                "default": 60,
                "minimum": 5,
                "maximum": 240,
            },
            "mode": {
                "type": "string",
                "description": "how",
                "default": "quiet",
                "enum": ["quiet", "fast"],
            },
            "ramp": {"type": "boolean", "description": "slowly"},
        },
        "canonical": {"temperature": 26.5},
    },
    "other_tools": [
        {
            "tool": "fan_on",
            "description": "Run the fan.",
            "service": "fan.on",
            "targets": {"fan.bath": "bath fan"},
        }
    ],
    "predicates": [
        {"kind": "grant", "id": "authority", "grant": "boost"},
        {
            "kind": "consent",
            "id": "neighbour",
            "consent": "warm",
            "principals": ["person.ann"],
            "quorum": 1,
        },
        {
            "kind": "consent",
            "id": "adults",
            "consent": "bill",
            "principals": ["person.ann", "person.bo", "person.cy"],
            "quorum": 2,
        },
        {
            "kind": "fact",
            "id": "window",
            "fact": "window",
            "one_of": ["closed", "locked"],
            "maximum_age_seconds": 120,
        },
        {
            "kind": "fact",
            "id": "outdoor",
            "fact": "outdoor",
            "minimum": -10,
            "maximum": 12.5,
            "unit": "C",
        },
        {"kind": "version", "id": "gateway", "component": "gateway", "one_of": ["4.1", "4.2"]},
    ],
    "free_band": {"parameter": "temperature", "minimum": 16, "maximum": 24},
}

WORLD = {
    "schema": "retire.world/v1",
    "now": NOW,
    "devices": {
        "climate.den": {
            "name": "den heating",
            "state": {"temperature": "20"},
            "services": {"climate.set": {"set": {"temperature": "$temperature"}}},
        },
        "fan.bath": {
            "name": "bath fan",
            "services": {"fan.on": {"emit": "started", "fields": {"where": "$target"}}},
        },
    },
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
            "name": "warm room",
            "votes": {"person.ann": {"name": "Ann", "answer": "yes", "at": NOW}},
        },
        "bill": {
            "name": "the bill",
            "votes": {
                "person.ann": {"name": "Ann", "answer": "yes", "at": NOW},
                "person.bo": {"name": "Bo", "answer": "yes", "at": NOW},
            },
        },
    },
    "facts": {
        "window": {
            "name": "den window",
            "value": "closed",
            "reported_at": "2026-05-04T17:59:00Z",
            "version": 7,
        },
        "outdoor": {
            "name": "outdoor air",
            "value": "3.5",
            "unit": "C",
            "reported_at": "2026-05-04T17:50:00Z",
            "version": 12,
        },
    },
    "versions": {"gateway": {"name": "gateway", "value": "4.1"}},
}

TASKS = {
    "schema": "retire.tasks/v1",
    "development": [{"id": "first", "request": "Make the den 26.5 degrees."}],
    "locked": {
        "request": "Please set the den to 26.5 C.",
        "counterfactuals": [
            {"predicate": "authority", "path": "/grants/boost/status", "value": "revoked"},
            {
                "predicate": "neighbour",
                "path": "/consents/warm/votes/person.ann/answer",
                "value": "no",
            },
            {
                "predicate": "adults",
                "path": "/consents/bill/votes/person.bo/answer",
                "value": "no",
            },
            {"predicate": "window", "path": "/facts/window/value", "value": "open"},
            {"predicate": "outdoor", "path": "/facts/outdoor/value", "value": "13"},
            {"predicate": "gateway", "path": "/versions/gateway/value", "value": "3.9"},
        ],
    },
}


def contract_data():
    return copy.deepcopy(CONTRACT)


def world_data():
    return copy.deepcopy(WORLD)


def tasks_data():
    return copy.deepcopy(TASKS)


def snapshot_data():
    """The snapshot of the household in which everything holds."""
    world = world_data()
    kept = {key: world[key] for key in ("grants", "consents", "facts", "versions")}
    return {"schema": "retire.snapshot/v1", "as_of": NOW, **kept}


def file_bytes(data):
    """A file of ours: JSON is YAML, and every text in it is quoted."""
    return json.dumps(data).encode()


def contract(data=None):
    return load_contract(file_bytes(data or contract_data()), "contract.yaml")


def world(data=None):
    return load_world(file_bytes(data or world_data()), "world.yaml")


def tasks(data=None):
    return load_tasks(file_bytes(data or tasks_data()), "tasks.yaml")


def snapshot(data=None):
    return read_snapshot(file_bytes(data or snapshot_data()))


def put(data, path, value):
    """Change one place of nested dictionaries, named by a JSON pointer."""
    *parents, last = path.split("/")[1:]
    for part in parents:
        data = data[part]
    data[last] = value


def answer(arguments, tool="climate_set", **fields):
    """The JSON of a finished text answer that proposes one action."""
    text = json.dumps({"tool": tool, "arguments": arguments}, ensure_ascii=False)
    return text_answer(text, **fields)


def text_answer(text, **fields):
    return json.dumps({"mode": "json", "text": text, "finish_reason": "stop", **fields})
