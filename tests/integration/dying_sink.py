"""``python -m tests.integration.dying_sink CONFIG``: a monitor that is killed in the middle.

CONFIG is JSON: `bundle` (folder), `record` (file), `sent` (file that gets a line for each act),
`dies` ("before", "after" the act, or "never"), `message` (what is asked). The reply, where there
is one, goes to standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retire.bundle import load_bundle
from sink.contract import load_contract, read_snapshot
from sink.decision import Binding
from sink.monitor import Monitor, Surroundings
from sink.ports import ActResult, ActStatus, Frozen
from sink.record_file import RecordFile

if TYPE_CHECKING:
    from sink.decision import Action


class DyingActuator:
    """Holds one frozen episode; ends its process when it is told to act."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        bundle = load_bundle(Path(config["bundle"]))
        self._snapshot = bundle.member("authorized").snapshot
        self._digest = bundle.member("authorized").snapshot_digest
        self._contract = bundle.digests.contract

    async def frozen(self, attempt: str) -> Frozen:
        return Frozen(
            self._snapshot, self._digest, self._config["message"]["episode"], self._contract, 1
        )

    async def act(self, attempt: str, revision: int, action: Action) -> ActResult:
        if self._config["dies"] == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        with Path(self._config["sent"]).open("a") as file:
            file.write(f"{attempt} {action.service}\n")
        if self._config["dies"] == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return ActResult(ActStatus.DONE)


async def ask(config: dict[str, Any]) -> dict[str, Any]:
    path = Path(config["bundle"]) / "contract.yaml"
    contract = load_contract(path.read_bytes(), str(path))
    record = RecordFile(Path(config["record"]))
    monitor = Monitor(
        {config["message"]["contract"]: contract},
        Binding.CANONICAL,
        record,
        DyingActuator(config),
        Surroundings(
            now=lambda: "2026-01-01T00:00:00Z",
            nonce=lambda: os.urandom(16).hex(),
            read_snapshot=read_snapshot,
        ),
    )
    await monitor.start()
    try:
        return dict(await monitor.handle(config["message"]))
    finally:
        record.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(ask(json.loads(sys.argv[1])))))
