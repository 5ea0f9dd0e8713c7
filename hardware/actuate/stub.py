"""The actuator of the stub world, over the act face that the launcher handed down."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from counterfactuals.devices import device_text
from hardware.strict import fault_of
from hardware.wire import ActReply, Channel, FrozenReply
from sink.ports import ActResult, ActStatus, Frozen

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from hardware.wire import Message
    from sink.contract import Scalar
    from sink.decision import Action

_Reply = TypeVar("_Reply")
_ACTED, _FROZEN = TypeAdapter(ActReply), TypeAdapter(FrozenReply)


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
        return await frozen_episode(self._channel, attempt)

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
        reply = await self._channel.ask(
            {
                "op": "act",
                "attempt": attempt,
                "service": service,
                "target": target,
                "parameters": {key: device_text(value) for key, value in parameters.items()},
                "revision": revision,
            }
        )
        if "error" in reply:
            return ActResult(ActStatus.REFUSED, str(reply["error"]))
        told = _told(_ACTED, reply)
        return ActResult(ActStatus(told.status), told.detail)


async def frozen_episode(channel: Channel, attempt: str) -> Frozen:
    """Ask a world for the frozen episode of an attempt.

    Raises:
        LookupError: The world knows no such attempt, or stands in another one.
        ConnectionError: It is gone, or answers in another form.
    """
    reply = await channel.ask({"op": "frozen", "attempt": attempt})
    if "error" in reply:
        raise LookupError(str(reply["error"]))
    told = _told(_FROZEN, reply)
    return Frozen(
        told.snapshot.encode(),
        told.snapshot_digest,
        told.episode,
        told.contract,
        told.revision,
        told.age_seconds,
    )


def _told(form: TypeAdapter[_Reply], reply: Message) -> _Reply:
    try:
        return form.validate_python(reply)
    except ValidationError as error:
        raise ConnectionError(f"the world answers in another form: {fault_of(error)}") from error
