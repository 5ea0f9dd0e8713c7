"""The sink's socket: decide, tell the head, say who it is. Nothing else can be asked."""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from sink.record import sign_head
from sink.wire import listening, serve

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sink.monitor import Monitor
    from sink.record_file import RecordFile


class SinkService:
    """Answers messages for one monitor."""

    def __init__(
        self,
        monitor: Monitor,
        record: RecordFile,
        key: Ed25519PrivateKey,
        binding: str,
        contracts: Mapping[str, str],
    ) -> None:
        self._monitor = monitor
        self._record = record
        self._key = key
        self._binding = binding
        self._contracts = contracts

    async def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer one message."""
        match message.get("op"):
            case "propose":
                return await self._monitor.handle(message)
            case "head":
                head = sign_head(
                    self._key, f"sink/{self._binding}", self._record.seq, self._record.hash
                )
                return {"head": dataclasses.asdict(head)}
            case "hello":
                return {
                    "signer": f"sink/{self._binding}",
                    "key": self._key.public_key().public_bytes_raw().hex(),
                    "contracts": dict(self._contracts),
                }
            case _:
                return {"error": "unknown operation"}

    async def listen(self, path: Path, stop: asyncio.Event) -> None:
        """Serve a Unix socket until ``stop`` is set."""
        listen = partial(asyncio.start_unix_server, path=path, limit=2**21)
        async with listening(partial(serve, handle=self.answer), listen):
            await stop.wait()
