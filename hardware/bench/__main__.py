"""``python -m hardware.bench preflight|run|recipient``: the programs of a camera bench."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.bench.instance import read_instance
from sink.contract import load_contract
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    from collections.abc import Mapping


def _say(value: object) -> None:
    os.write(sys.stdout.fileno(), json.dumps(value).encode() + b"\n")


def _preflight(arguments: argparse.Namespace) -> int:
    """Print one JSON object: the steps, and what the instance file says of itself."""
    from hardware.bench.preflight import preflight  # noqa: PLC0415  # needs the extra

    instance = read_instance(arguments.instance)
    steps = asyncio.run(preflight(instance))
    _say(
        {
            "fine": all(step.fine for step in steps),
            "steps": [dataclasses.asdict(step) for step in steps],
            "url": instance.url,
            "entity": instance.entity,
            "target": instance.target,
            "bench": instance.bench,
            "approvals": instance.approvals,
            "second_source": instance.device is not None,
        }
    )
    return 0


def _run(arguments: argparse.Namespace) -> int:
    """Start the programs, print their sockets, and stay until something ends."""
    from hardware.bench.launch import BenchLauncher, Setting  # noqa: PLC0415

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    instance = read_instance(arguments.instance)
    setting = Setting(
        arguments.instance, instance, arguments.frames, arguments.keep, arguments.unmediated
    )
    launcher = BenchLauncher(
        arguments.state, arguments.bundles, arguments.settle_milliseconds, setting
    )
    try:
        _say({"sockets": launcher.start(), "pids": launcher.pids()})
        return launcher.wait()
    finally:
        launcher.stop()


def _recipient(arguments: argparse.Namespace) -> int:
    """Receive streams for every recipient that the bundles' contracts name."""
    from hardware.bench.recipient import serve  # noqa: PLC0415

    ports = arguments.state / "ports.json"

    def ready(found: Mapping[str, int]) -> None:
        ports.write_text(json.dumps(found), "utf-8")

    async def until_stopped() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_reader(arguments.life, stop.set)
        names = _recipients(arguments.bundles)
        await serve(names, arguments.frames, ready, arguments.socket, stop)

    asyncio.run(until_stopped())
    return 0


def _recipients(folders: list[Path]) -> list[str]:
    names: set[str] = set()
    for folder in folders:
        path = folder / "contract.yaml"
        parameter = load_contract(path.read_bytes(), str(path)).action.parameters.get("recipient")
        names |= {str(name) for name in (parameter.enum or ())} if parameter else set()
    return sorted(names)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hardware.bench", description=__doc__)
    programs = parser.add_subparsers(required=True)
    look = programs.add_parser("preflight", help="say what is missing, as JSON")
    look.set_defaults(program=_preflight)
    run = programs.add_parser("run", help="start the programs of a bench")
    run.set_defaults(program=_run)
    run.add_argument("--keep", type=Path, help="folder for the pictures themselves")
    run.add_argument("--unmediated", action="store_true", help="start a program without monitor")
    run.add_argument("--settle-milliseconds", type=int, default=300)
    receive = programs.add_parser("recipient", help="receive streams and offer a tap")
    receive.set_defaults(program=_recipient)
    receive.add_argument("--socket", type=Path, required=True, help="the tap")
    receive.add_argument("--life", type=int, required=True, help="descriptor; readable means stop")
    for program in (look, run):
        program.add_argument("--instance", type=Path, required=True)
    for program in (run, receive):
        program.add_argument("--state", type=Path, required=True)
        program.add_argument("--bundles", type=Path, nargs="+", required=True)
        program.add_argument("--frames", type=int, default=12, help="pictures that end a session")
    return parser


def main() -> int:
    """Parse arguments and run the program that was asked for."""
    arguments = _parser().parse_args()
    try:
        code: int = arguments.program(arguments)
    except DocumentError as error:
        mend = f". {error.mend}" if error.mend else ""
        text = f"{error.where}: {error.message}{mend}"
        print(text, file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    except (RuntimeError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
