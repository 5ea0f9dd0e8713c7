"""The runner's end of the sockets: ask, and match answers by id."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import TYPE_CHECKING, Any

from retire.domain.errors import IncompleteError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MAX_MESSAGE = 4_194_304

DEADLINE_SECONDS = 30.0
"""How long a program may stay silent before it counts as gone.

The sink allows itself ten seconds for each of its two questions to the world; a program that
needs longer than this is stopped or stuck, and silence is never evidence.
"""

_CREDENTIALS = struct.Struct("iII")
"""Process, user and group at the other end (unix(7), ``SO_PEERCRED``)."""

_MEND = "Nothing stored is lost: run the same command again to resume"


class Channel:
    """One connection to one program, with many requests under way.

    Attributes:
        user: Number of the user that listens at the other end, as the kernel says.
    """

    def __init__(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: int
    ) -> None:
        self.user = user
        self._name = name
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = 0
        self._receiver = asyncio.ensure_future(self._receive())

    @classmethod
    async def open(cls, name: str, path: Path) -> Channel:
        """Connect to a program's socket.

        Raises:
            IncompleteError: The program is gone already.
        """
        try:
            reader, writer = await asyncio.open_unix_connection(path, limit=2**22)
        except OSError as error:
            raise IncompleteError(f"the {name} cannot be reached", mend=_MEND) from error
        return cls(name, reader, writer, _user_at(writer))

    async def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message and return its answer.

        Raises:
            IncompleteError: The program is gone, or silent for longer than the deadline.
        """
        if self._receiver.done():
            raise self._gone()
        self._next += 1
        own = self._next
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[own] = future
        data = json.dumps({**message, "id": own}, separators=(",", ":")).encode()
        self._writer.write(len(data).to_bytes(4, "big") + data)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await future
        except TimeoutError as error:
            raise IncompleteError(
                f"the {self._name} did not answer within {DEADLINE_SECONDS:g} seconds", mend=_MEND
            ) from error
        finally:
            self._waiting.pop(own, None)

    async def _receive(self) -> None:
        try:
            while True:
                length = int.from_bytes(await self._reader.readexactly(4), "big")
                if length > _MAX_MESSAGE:
                    break
                reply = json.loads(await self._reader.readexactly(length))
                future = self._waiting.pop(reply["id"], None)
                if future is not None and not future.done():
                    future.set_result(reply)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, KeyError):
            pass
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self._gone())
        self._waiting.clear()

    def _gone(self) -> IncompleteError:
        return IncompleteError(f"the {self._name} is gone", mend=_MEND)

    def close(self) -> None:
        """End the connection."""
        self._receiver.cancel()
        self._writer.close()


def _user_at(writer: asyncio.StreamWriter) -> int:
    """Return the user who called listen(2) on the socket that this end is connected to."""
    connected = writer.get_extra_info("socket")
    data = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(data)[1]
    return user
