"""``python -m sink --binding canonical|exact``: the sink as a process of its own.

It loads contracts from bundle folders by itself, pins them by digest, and is handed the world's
act face as an inherited descriptor. No message can bring it a contract, a fact or a mode. In a
real world (``--real-world``) it enforces only the contracts that stand in its user's approvals.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.actuate.stub import StubWorldActuator
from hardware.homeassistant.access import access_of, add_arguments
from hardware.homeassistant.errors import HomeAssistantError
from hardware.homeassistant.house import HouseError, parse_house
from sink.approvals_file import read_approvals, read_relied_on
from sink.contract import Contract, load_contract, read_snapshot
from sink.decision import Binding
from sink.keys import load_or_create
from sink.monitor import Monitor, Surroundings
from sink.record import digest
from sink.record_file import RecordError, RecordFile
from sink.service import SinkService
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sink.approvals import Approvals
    from sink.ports import Actuator


def _load_contracts(folders: list[Path]) -> dict[str, Contract]:
    contracts = {}
    for folder in folders:
        path = folder / "contract.yaml"
        data = path.read_bytes()
        contracts[digest(data)] = load_contract(data, str(path))
    return contracts


def _utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251  # the shell's clock


def _load_approvals(path: Path, contracts: Mapping[str, Contract]) -> Approvals:
    """Read the approvals; each loaded contract that is approved needs an entity for its target."""
    approvals = read_approvals(path, os.geteuid())
    for contract_digest, contract in contracts.items():
        approval = approvals.of(contract_digest)
        target = contract.action.target
        if approval is not None and target not in approval.bindings:
            raise DocumentError(
                f"{contract_digest} is approved without an entity for {target}",
                where=str(path),
                mend="Approve it again with `retire approve`",
            )
    return approvals


async def _open_actuator(
    arguments: argparse.Namespace, contracts: Mapping[str, Contract]
) -> Actuator:
    """Open what acts: the stub world's, that of a house, or that of a camera bench."""
    face = socket.socket(fileno=arguments.act_face)
    if arguments.home_assistant is not None:
        return await _open_house(arguments, face, contracts)
    if arguments.camera is None:
        return await StubWorldActuator.open(face)
    from hardware.actuate.camera import CameraActuator  # noqa: PLC0415  # needs an extra

    return await CameraActuator.open(face, arguments.camera, arguments.state)


async def _open_house(
    arguments: argparse.Namespace, face: socket.socket, contracts: Mapping[str, Contract]
) -> Actuator:
    access = access_of(arguments)
    if arguments.real_world:
        # Whoever writes the house file says where an approved action goes.
        data = read_relied_on(arguments.house, os.geteuid())
        access = replace(access, house=parse_house(data, str(arguments.house)))
    if not (access.house.bench or arguments.real_world):
        raise HouseError("a house that is no bench is a real world: give --real-world too")
    from hardware.actuate.homeassistant import HomeAssistantActuator  # noqa: PLC0415  # an extra

    bundles = {key: contract.bundle for key, contract in contracts.items()}
    return await HomeAssistantActuator.open(face, access, bundles, approved=arguments.real_world)


async def _run(arguments: argparse.Namespace) -> None:
    contracts = _load_contracts(arguments.bundles)
    approvals = _load_approvals(arguments.approvals, contracts) if arguments.real_world else None
    state: Path = arguments.state
    key = load_or_create(state / "key")
    record = RecordFile(state / "record.jsonl", key)
    actuator = await _open_actuator(arguments, contracts)
    monitor = Monitor(
        contracts,
        arguments.binding,
        record,
        actuator,
        Surroundings(
            now=_utc_now,
            nonce=lambda: secrets.token_hex(16),
            read_snapshot=lru_cache(maxsize=4096)(read_snapshot),
            approvals=approvals,
        ),
    )
    await monitor.start()
    service = SinkService(
        monitor,
        record,
        key,
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
    parser.add_argument(
        "--real-world", action="store_true", help="enforce nothing but what --approvals names"
    )
    parser.add_argument("--approvals", type=Path, help="file of this user that no other can write")
    add_arguments(parser)
    parser.add_argument("--camera", type=Path, help="chain file of a camera bench")
    arguments = parser.parse_args()
    if arguments.camera is not None and not arguments.real_world:
        parser.error("a camera bench is a real world: give --real-world too")
    if arguments.real_world != (arguments.approvals is not None):
        parser.error("--real-world and --approvals FILE are given together")
    try:
        asyncio.run(_run(arguments))
    except (DocumentError, RecordError, HouseError, HomeAssistantError, OSError) as error:
        print(f"sink: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
