"""``python -m hardware.direct``: the same actuator without a monitor, for B0 to B3.

It exists so that a study can show what happens without a boundary. It parses strictly, records
each act before and after, and compares nothing. It runs against the stub world, or against an
instance that is marked as a bench.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import socket
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field, TypeAdapter, ValidationError

from counterfactuals.devices import device_text
from hardware.actuate.stub import StubWorldActuator
from hardware.homeassistant.access import access_of, add_arguments
from hardware.homeassistant.errors import HomeAssistantError
from hardware.homeassistant.house import HouseError
from hardware.strict import Strict, fault_of
from hardware.wire import Hello, listening, serve
from sink.contract import load_contract
from sink.keys import load_or_create
from sink.ports import ActResult, ActStatus
from sink.proposal import Invalid, Proposal, Refusal, parse, read_answer
from sink.record import digest, sign_head
from sink.record_file import RecordError, RecordFile
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from hardware.wire import Message
    from sink.contract import Scalar

_DEADLINE_SECONDS = 10.0


def load_services(folders: list[Path]) -> dict[str, dict[str, str]]:
    """Return, by contract digest, which service each tool name stands for."""
    services = {}
    for folder in folders:
        path = folder / "contract.yaml"
        data = path.read_bytes()
        contract = load_contract(data, str(path))
        tools = (contract.action, *contract.other_tools)
        services[digest(data)] = {tool.tool: tool.service for tool in tools}
    return services


class UnmonitoredActuator(Protocol):
    """What acts without comparing anything."""

    async def act_unmonitored(
        self, attempt: str, service: str, target: str, parameters: Mapping[str, Scalar]
    ) -> ActResult:
        """Act once."""


class Propose(Strict):
    """A proposal as the runner sends it, whichever door it comes to."""

    op: Literal["propose"]
    attempt: str
    contract: str
    episode: str
    snapshot: str
    answer: str


class AskHead(Strict):
    """Asks for the signed head of the record."""

    op: Literal["head"]


_ASKED: TypeAdapter[Propose | AskHead | Hello] = TypeAdapter(
    Annotated[Propose | AskHead | Hello, Field(discriminator="op")]
)


class Direct:
    """Executes proposals as they come."""

    def __init__(
        self,
        services: Mapping[str, Mapping[str, str]],
        record: RecordFile,
        actuator: UnmonitoredActuator,
        key: Ed25519PrivateKey,
    ) -> None:
        self._services = services
        self._record = record
        self._actuator = actuator
        self._key = key

    async def answer(self, message: Message) -> Message:
        """Answer one message."""
        try:
            match _ASKED.validate_python(message):
                case Propose() as proposed:
                    return await self._execute(proposed)
                case AskHead():
                    head = sign_head(self._key, "direct", self._record.seq, self._record.hash)
                    return {"head": dataclasses.asdict(head)}
                case Hello():
                    return {
                        "signer": "direct",
                        "key": self._key.public_key().public_bytes_raw().hex(),
                        "contracts": sorted(self._services),
                    }
        except ValidationError as error:
            return {"error": fault_of(error)}
        except (RecordError, OSError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    async def _execute(self, proposed: Propose) -> Message:
        sent = proposed.answer.encode()
        answer = read_answer(sent)
        parsed = answer if isinstance(answer, Invalid) else parse(answer)
        if isinstance(parsed, Invalid | Refusal):
            return {"error": "the answer proposes nothing"}
        services = self._services.get(proposed.contract, {})
        intent = await self._record.append(
            {
                "kind": "direct",
                "attempt": proposed.attempt,
                "contract": proposed.contract,
                "answer": digest(sent),
                "tool": parsed.tool[:200],
            }
        )
        result = await self._act(proposed.attempt, services, parsed)
        act = {"status": str(result.status), "detail": result.detail}
        outcome = await self._record.append(
            {
                "kind": "outcome",
                "attempt": proposed.attempt,
                "act": act["status"],
                "detail": result.detail,
            }
        )
        return {
            "decision": "unmediated",
            "record": {"seq": intent.seq, "hash": intent.hash},
            "act": {**act, "seq": outcome.seq},
        }

    async def _act(
        self, attempt: str, services: Mapping[str, str], proposal: Proposal
    ) -> ActResult:
        service = services.get(proposal.tool)
        target = proposal.arguments.get("target")
        if service is None or target is None:
            return ActResult(ActStatus.REFUSED, "no such tool, or no target")
        parameters = {key: item for key, item in proposal.arguments.items() if key != "target"}
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                return await self._actuator.act_unmonitored(
                    attempt, service, device_text(target), parameters
                )
        except (TimeoutError, ConnectionError) as error:
            return ActResult(ActStatus.IN_DOUBT, type(error).__name__)


async def _open_actuator(arguments: argparse.Namespace) -> UnmonitoredActuator:
    """Open what acts: the stub world's, or that of a house or camera marked as a bench."""
    face = socket.socket(fileno=arguments.act_face)
    if arguments.home_assistant is not None:
        return await _open_house(arguments, face)
    if arguments.camera is None:
        return await StubWorldActuator.open(face)
    from hardware.actuate.camera import CameraActuator  # noqa: PLC0415  # needs an extra

    return await CameraActuator.open_unmonitored(face, arguments.camera, arguments.state)


async def _open_house(arguments: argparse.Namespace, face: socket.socket) -> UnmonitoredActuator:
    access = access_of(arguments)
    if not access.house.bench:
        raise HouseError("this house is no bench: nothing may act in it without the sink")
    from hardware.actuate.homeassistant import HomeAssistantActuator  # noqa: PLC0415  # an extra

    return await HomeAssistantActuator.open(face, access, {})


async def _run(arguments: argparse.Namespace) -> None:
    services = load_services(arguments.bundles)
    record = RecordFile(arguments.state / "record.jsonl")
    for _ in record.load():
        pass
    if (recovery := record.recovery()) is not None:
        await record.append(recovery)
    actuator = await _open_actuator(arguments)
    direct = Direct(services, record, actuator, load_or_create(arguments.state / "key"))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(arguments.life, stop.set)
    listen = partial(asyncio.start_unix_server, path=arguments.socket, limit=2**22)
    try:
        async with listening(partial(serve, handle=direct.answer), listen):
            await stop.wait()
    finally:
        record.close()


def main() -> int:
    """Parse arguments and serve until the launcher goes away."""
    parser = argparse.ArgumentParser(prog="python -m hardware.direct", description=__doc__)
    parser.add_argument("--bundles", type=Path, nargs="+", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--act-face", type=int, required=True, help="inherited descriptor")
    add_arguments(parser)
    parser.add_argument("--life", type=int, required=True, help="descriptor; readable means stop")
    parser.add_argument("--camera", type=Path, help="chain file of a marked camera bench")
    arguments = parser.parse_args()
    try:
        asyncio.run(_run(arguments))
    except (DocumentError, RecordError, HouseError, HomeAssistantError, OSError) as error:
        print(f"direct: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
