"""The actuator of the stub world, over the act face that the launcher handed down."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from counterfactuals.devices import device_text
from hardware.wire import Channel
from sink.ports import ActResult, ActStatus, Frozen

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from sink.contract import Scalar
    from sink.decision import Action


class StubWorldActuator:
    """Implements ``sink.ports.Actuator`` for the stub world."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    @classmethod
    async def open(cls, face: socket.socket) -> StubWorldActuator:
        """Take over the inherited end of the act face."""
        face.setblocking(False)  # noqa: FBT003  # the standard library has no keyword
        reader, writer = await asyncio.open_connection(sock=face, limit=2**22)
        return cls(Channel(reader, writer))

    async def frozen(self, attempt: str) -> Frozen:
        """Return the frozen episode; raises LookupError where the world knows no such attempt."""
        reply = await self._channel.ask({"op": "frozen", "attempt": attempt})
        if "error" in reply:
            raise LookupError(str(reply["error"]))
        return Frozen(
            snapshot=reply["snapshot"].encode(),
            snapshot_digest=reply["snapshot_digest"],
            episode=reply["episode"],
            contract_digest=reply["contract"],
            revision=reply["revision"],
            age_seconds=float(reply["age_seconds"]),
        )

    async def act(self, attempt: str, revision: int, action: Action) -> ActResult:
        """Compare and act: the world refuses if it is no longer at ``revision``."""
        return await self._act(attempt, action.service, action.target, action.parameters, revision)

    async def act_unmonitored(
        self, attempt: str, service: str, target: str, parameters: Mapping[str, Scalar]
    ) -> ActResult:
        """Act without comparing anything; used by ``hardware.direct`` alone."""
        return await self._act(attempt, service, target, parameters, None)

    async def _act(
        self,
        attempt: str,
        service: str,
        target: str,
        parameters: Mapping[str, Scalar],
        revision: int | None,
    ) -> ActResult:
        message: dict[str, Any] = {
            "op": "act",
            "attempt": attempt,
            "service": service,
            "target": target,
            "parameters": {key: device_text(value) for key, value in parameters.items()},
            "revision": revision,
        }
        reply = await self._channel.ask(message)
        return ActResult(ActStatus(reply["status"]), str(reply.get("detail", "")))
