"""A deterministic stand-in for a language model: reads rules, judges raw values, proposes.

``read_rules`` is its grammar (docs/simulated-deployments.md), ``propose`` its answer,
``PROFILES`` the embedded panel. It models nobody; its numbers are fixtures.
"""

from retire.deployments.simulated.profiles import PROFILES, Profile
from retire.deployments.simulated.reader import propose
from retire.deployments.simulated.reading import RuleReading, read_rules, rule_holds

__all__ = [
    "PROFILES",
    "Profile",
    "RuleReading",
    "propose",
    "read_rules",
    "rule_holds",
]
