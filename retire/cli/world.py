"""``retire world``: a local Home Assistant as the world: start it, set it up, read it."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retire.cli.console import carry_out, say
from retire.domain.cell import episode_of
from retire.domain.errors import IncompleteError, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from retire.bundle import Bundle

_STOP_SECONDS = 60.0

STUB = "stub"
_HOUSE = "homeassistant:"

WorldOption = Annotated[
    str, typer.Option("--world", help="stub, or homeassistant:INSTANCE_FILE.", metavar="WORLD")
]


def instance_of(world: str) -> Path | None:
    """Return the instance file that ``--world`` names; None for the stub world.

    Raises:
        InputError: It names no world, or there is no such file.
    """
    if world == STUB:
        return None
    if not world.startswith(_HOUSE) or world == _HOUSE:
        raise InputError(
            f"there is no world {world!r}",
            where="--world",
            mend="Use stub, or homeassistant:INSTANCE_FILE",
        )
    instance = Path(world.removeprefix(_HOUSE))
    _require_file(instance)
    return instance


InstanceArgument = Annotated[
    Path, typer.Argument(help="The instance file that `retire world homeassistant` names.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(no_args_is_help=True, help="A local Home Assistant as the world.")
    commands.command("homeassistant")(start)
    commands.command("reset")(reset)
    commands.command("read")(read)
    app.add_typer(commands, name="world")


def start(
    state: Annotated[Path, typer.Option(help="Folder of the instance.")] = Path(
        "runs/homeassistant"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 0,
    environment: Annotated[
        Path | None, typer.Option(help="Virtual environment that has Home Assistant.")
    ] = None,
    bundles: Annotated[
        list[Path] | None, typer.Option(help="Bundle folders; otherwise the panel's.")
    ] = None,
) -> None:
    """Start Home Assistant with the house of all bundles; an interrupt ends it."""
    command = [sys.executable, "-m", "hardware.homeassistant"]
    command += ["--state", str(state), "--port", str(port)]
    if environment is not None:
        command += ["--environment", str(environment)]
    if bundles:
        command += ["--bundles", *map(str, bundles)]
    # A session of its own: an interrupt at the terminal ends it in order, through this program.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as starter:
        try:
            code = _follow(starter)
        except KeyboardInterrupt:
            code = _end(starter)
    raise typer.Exit(code)


def _follow(starter: subprocess.Popen[bytes]) -> int:
    line = starter.stdout.readline() if starter.stdout is not None else b""
    if line:
        ready = json.loads(line)
        say(f"Home Assistant runs at {ready['url']}")
        say(f"instance file: {ready['instance']}")
        say("An interrupt (Ctrl-C) ends it.")
        sys.stdout.flush()
    code = starter.wait()
    if line and code:
        raise IncompleteError("Home Assistant ended by itself", mend="Its log lies in the folder")
    return code


def _end(starter: subprocess.Popen[bytes]) -> int:
    if starter.stdin is not None:
        starter.stdin.close()
    starter.wait(timeout=_STOP_SECONDS)
    return 0


def reset(
    instance: InstanceArgument,
    bundle: Annotated[Path, typer.Argument(help="A bundle folder.")],
    member: Annotated[str, typer.Option(help="A member of the locked template.")] = "authorized",
) -> None:
    """Put the house into the state of a member, and say which snapshot was frozen."""
    from retire.bundle import load_bundle

    loaded = load_bundle(bundle)
    if member not in {item.name for item in loaded.members}:
        names = ", ".join(item.name for item in loaded.members)
        raise InputError(f"there is no member {member}", where=str(bundle), mend=f"Use {names}")
    _require_file(instance)
    frozen = carry_out(_reset(instance, bundle, loaded, member))
    say(f"{loaded.id} {member}: the house stands in the state of snapshot {frozen}")


async def _reset(instance: Path, folder: Path, bundle: Bundle, member: str) -> str:
    from retire.runner.processes import running_programs

    [wanted] = [item for item in bundle.members if item.name == member]
    with tempfile.TemporaryDirectory(prefix="retire-world-") as state:
        async with running_programs(Path(state), [folder], home_assistant=instance) as programs:
            frozen = await programs.world.ask(
                {
                    "op": "reset",
                    "attempt": secrets.token_hex(16),
                    "template": bundle.digests.template,
                    "task": "locked",
                    "patch": wanted.path,
                    "episode": episode_of(0, bundle.id, "reset", 1),
                }
            )
    if "error" in frozen:
        raise IncompleteError(f"the world refused the reset: {frozen['error']}")
    return str(frozen["snapshot_digest"])


def read(
    instance: InstanceArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read every device of the house: what is shown, and what the device itself reports."""
    from rich.console import Console

    _require_file(instance)
    command = [sys.executable, "-m", "hardware.homeassistant.show", "--instance", str(instance)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)
    if as_json:
        say(done.stdout.decode().strip())
        return
    found = json.loads(done.stdout)
    say(f"attempt: {found['attempt']}")
    Console().print(_table(found["devices"]))


def _table(devices: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table("device", "state", "variable", "shown", "reported", "last event")
    for key, device in devices.items():
        first = [key, device["state"]]
        last = device["last_event"] or ""
        if not device["variables"]:
            table.add_row(*first, "", "", "", last)
        for name, texts in device["variables"].items():
            table.add_row(*first, name, texts["shown"], texts["reported"], last)
            first, last = ["", ""], ""
    return table


def _require_file(instance: Path) -> None:
    if not instance.is_file():
        raise InputError(
            "there is no instance file",
            where=str(instance),
            mend="Start one with `retire world homeassistant`; it names the file",
        )
