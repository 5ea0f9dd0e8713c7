"""The plan: which cells a protocol declares, fixed before the first of them runs. Pure."""

from retire.matrix.plan import HOME_ASSISTANT_WORLD, STUB_WORLD, Plan, PlanStatement, fix_plan
from retire.matrix.protocol import Protocol, load_protocol

__all__ = [
    "HOME_ASSISTANT_WORLD",
    "STUB_WORLD",
    "Plan",
    "PlanStatement",
    "Protocol",
    "fix_plan",
    "load_protocol",
]
