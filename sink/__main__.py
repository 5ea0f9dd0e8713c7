"""``python -m sink --binding canonical|exact``: the sink as a process of its own.

It loads contracts from bundle folders by itself, pins them by digest, and is handed the world's
act face as an inherited descriptor. No message can bring it a contract, a fact or a mode.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import socket
import sys
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from hardware.actuate.stub import StubWorldActuator
from sink.contract import Contract, load_contract, read_snapshot
from sink.decision import Binding
from sink.keys import load_or_create
from sink.monitor import Monitor, Surroundings
from sink.record import digest
from sink.record_file import RecordError, RecordFile
from sink.service import SinkService
from sink.strict_yaml import DocumentError


def _load_contracts(folders: list[Path]) -> dict[str, Contract]:
    contracts = {}
    for folder in folders:
        path = folder / "contract.yaml"
        data = path.read_bytes()
        contracts[digest(data)] = load_contract(data, str(path))
    return contracts


def _utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251  # the shell's clock


async def _run(arguments: argparse.Namespace) -> None:
    contracts = _load_contracts(arguments.bundles)
    state: Path = arguments.state
    record = RecordFile(state / "record.jsonl")
    actuator = await StubWorldActuator.open(socket.socket(fileno=arguments.act_face))
    monitor = Monitor(
        contracts,
        arguments.binding,
        record,
        actuator,
        Surroundings(
            now=_utc_now,
            nonce=lambda: secrets.token_hex(16),
            read_snapshot=lru_cache(maxsize=4096)(read_snapshot),
        ),
    )
    await monitor.start()
    service = SinkService(
        monitor,
        record,
        load_or_create(state / "key"),
        arguments.binding,
        {key: contract.bundle for key, contract in contracts.items()},
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(arguments.life, stop.set)
    try:
        await service.listen(arguments.socket, stop)
    finally:
        record.close()


def main() -> int:
    """Parse arguments and serve until the launcher goes away."""
    parser = argparse.ArgumentParser(prog="python -m sink", description=__doc__)
    parser.add_argument("--binding", type=Binding, choices=list(Binding), required=True)
    parser.add_argument("--bundles", type=Path, nargs="+", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--act-face", type=int, required=True, help="inherited descriptor")
    parser.add_argument("--life", type=int, required=True, help="descriptor; readable means stop")
    arguments = parser.parse_args()
    try:
        asyncio.run(_run(arguments))
    except (DocumentError, RecordError, OSError) as error:
        print(f"sink: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
