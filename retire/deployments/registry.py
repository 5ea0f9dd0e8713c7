"""The deployments an operator can name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from retire.deployments.simulated.deployment import SimulatedDeployment
from retire.deployments.simulated.profiles import PROFILES
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from retire.deployments.port import Deployment


def known_deployments() -> tuple[str, ...]:
    """Return the names of the embedded deployments."""
    return tuple(PROFILES)


def deployment_named(name: str) -> Deployment:
    """Return a deployment by its configured name.

    Raises:
        InputError: No deployment has this name; close names are suggested.
    """
    profile = PROFILES.get(name)
    if profile is None:
        close = difflib.get_close_matches(name, PROFILES, n=1)
        guess = f"Did you mean {close[0]}? " if close else ""
        raise InputError(
            f"there is no deployment {name!r}",
            where="--deployment",
            mend=f"{guess}Known: {', '.join(PROFILES)}",
        )
    return SimulatedDeployment(name, profile)
