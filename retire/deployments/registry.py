"""The deployments that can be named: embedded, configured by an operator, or recorded."""

from __future__ import annotations

import difflib
from functools import partial
from typing import TYPE_CHECKING

from retire.deployments.cassette import ReplayDeployment
from retire.deployments.simulated.deployment import SimulatedDeployment
from retire.deployments.simulated.profiles import PROFILES
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from retire.deployments.cassette import Cassette
    from retire.deployments.configuration import LocalConfiguration, OpenAIConfiguration
    from retire.deployments.port import Deployment


class Catalog:
    """Deployments by name; each is made when it is asked for.

    Args:
        makers: What makes each deployment.
        configured: The configuration of those that an operator's file declares.
    """

    def __init__(
        self,
        makers: Mapping[str, Callable[[], Deployment]],
        configured: Mapping[str, OpenAIConfiguration | LocalConfiguration] | None = None,
    ) -> None:
        self._makers = dict(makers)
        self.configured = dict(configured or {})

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, in the order of declaration."""
        return tuple(self._makers)

    def named(self, name: str) -> Deployment:
        """Return a deployment by its configured name.

        Raises:
            InputError: No deployment has this name; close names are suggested.
        """
        maker = self._makers.get(name)
        if maker is None:
            close = difflib.get_close_matches(name, self._makers, n=1)
            guess = f"Did you mean {close[0]}? " if close else ""
            raise InputError(
                f"there is no deployment {name!r}",
                where="--deployment",
                mend=f"{guess}Known: {', '.join(self._makers)}",
            )
        return maker()

    def extended(
        self,
        makers: Mapping[str, Callable[[], Deployment]],
        configured: Mapping[str, OpenAIConfiguration | LocalConfiguration] | None = None,
    ) -> Catalog:
        """Return a catalog with more deployments; one of the same name takes the other's place."""
        kept = {name: item for name, item in self.configured.items() if name not in makers}
        return Catalog({**self._makers, **makers}, {**kept, **(configured or {})})

    def replaying(self, cassette: Cassette) -> Catalog:
        """Return a catalog in which the deployments of a recording repeat what they answered."""
        names = sorted(cassette.identities)
        return self.extended({name: partial(ReplayDeployment, cassette, name) for name in names})


EMBEDDED = Catalog({name: partial(SimulatedDeployment, name, PROFILES[name]) for name in PROFILES})
"""The simulated deployments, which need no configuration."""
