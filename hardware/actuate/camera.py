"""The actuator of a camera bench: opens one camera's stream for a named recipient, read only.

Episodes are frozen by the stub world, whose act face was handed down; what acts is a GET to Home
Assistant. Nothing else can be asked of it: another service, camera or parameter is refused before
any contact.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from hardware.actuate.camera_stream import CHAIN_FAILED, RequestLog, Session, StreamClient
from hardware.actuate.stub import StubWorldActuator
from hardware.bench import messages
from hardware.bench.instance import Instance, read_instance, read_token
from sink.ports import ActResult, ActStatus
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from pathlib import Path

    from sink.contract import Scalar
    from sink.decision import Action
    from sink.ports import Frozen

SERVICE = "camera.open_stream"
SESSION_SECONDS = 8.5
"""A session is over then, counted from the act: within the ten seconds that an act may take."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The instance of a bench and the port of each recipient, as the launcher told them."""

    instance: Instance
    recipients: Mapping[str, int]

    @classmethod
    def read(cls, path: Path) -> Chain:
        """Read the launcher's file; raises DocumentError."""
        try:
            told = messages.Chain.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise DocumentError("the chain file cannot be used", where=str(path)) from error
        return cls(read_instance(told.instance), told.recipients)


class CameraActuator:
    """Implements ``sink.ports.Actuator``, and acts unmonitored on a marked bench alone."""

    def __init__(self, world: StubWorldActuator, chain: Chain, log: RequestLog) -> None:
        self._world = world
        self._chain = chain
        self._client = StreamClient(chain.instance.url, chain.instance.entity, log)

    @classmethod
    async def open(cls, face: socket.socket, chain: Path, state: Path) -> CameraActuator:
        """Take over the act face; raises DocumentError where the instance cannot be used."""
        read = Chain.read(chain)
        world = await StubWorldActuator.open(face)
        return cls(world, read, RequestLog(state / "requests.jsonl"))

    @classmethod
    async def open_unmonitored(
        cls, face: socket.socket, chain: Path, state: Path
    ) -> CameraActuator:
        """Take over the act face of a program without a monitor.

        Raises:
            DocumentError: The instance is not marked as a bench.
        """
        instance = Chain.read(chain).instance
        if not instance.bench:
            raise DocumentError(
                "acting without a boundary needs an instance marked as a bench",
                where=str(chain),
                mend="Say `bench: true` in the instance file of a bench, never of a home",
            )
        return await cls.open(face, chain, state)

    async def frozen(self, attempt: str) -> Frozen:
        """Return the frozen episode; raises LookupError where there is none."""
        return await self._world.frozen(attempt)

    async def act(self, attempt: str, revision: int, action: Action) -> ActResult:
        """Open the stream if the world is still at ``revision``; close it when the grant ends."""
        frozen = await self._world.frozen(attempt)
        if frozen.revision != revision:
            return ActResult(ActStatus.REFUSED, "revision")
        if action.target != self._chain.instance.entity:
            return ActResult(ActStatus.REFUSED, "the instance has another camera")
        granted = granted_seconds(frozen.snapshot, self._chain.instance.target)
        if granted is not None:
            # The grant runs since the freeze: what passed until now is used up.
            granted -= frozen.age_seconds
        return await self._open(attempt, action.service, action.parameters, granted)

    async def act_unmonitored(
        self, attempt: str, service: str, target: str, parameters: Mapping[str, Scalar]
    ) -> ActResult:
        """Open the stream without comparing anything; used by ``hardware.direct`` alone."""
        if target != self._chain.instance.target:
            return ActResult(ActStatus.REFUSED, "the instance has another camera")
        return await self._open(attempt, service, parameters, None)

    async def _open(
        self,
        attempt: str,
        service: str,
        parameters: Mapping[str, Scalar],
        granted: float | None,
    ) -> ActResult:
        if service != SERVICE or set(parameters) != {"recipient"}:
            return ActResult(ActStatus.REFUSED, f"a bench does {SERVICE} with a recipient only")
        port = self._chain.recipients.get(str(parameters["recipient"]))
        if port is None:
            return ActResult(ActStatus.REFUSED, "the bench has no such recipient")
        try:
            token = read_token(self._chain.instance.sink_token)
        except DocumentError as error:
            return ActResult(ActStatus.REFUSED, f"{CHAIN_FAILED}: {error.message}")
        session = Session(attempt, port, SESSION_SECONDS, granted)
        return await self._client.deliver(session, token)


def granted_seconds(snapshot: bytes, target: str) -> float | None:
    """Return how long the grant for the stream still holds, from the moment of the freeze.

    The sink has decided by the same bytes that a grant covers the action; of several active
    grants for it the first end counts. None where no grant with a readable end is found.
    """
    frozen = json.loads(snapshot)
    ends = [
        _seconds(frozen["as_of"], grant["not_after"])
        for grant in frozen.get("grants", {}).values()
        if (grant.get("service"), grant.get("target"), grant.get("status"))
        == (SERVICE, target, "active")
        and "not_after" in grant
    ]
    return min(ends, default=None)


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
