"""``retire bench home``: a stand-in camera behind a local Home Assistant, for who has no camera."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import say
from retire.domain.errors import IncompleteError
from retire.runner.folder import write_whole

if TYPE_CHECKING:
    import asyncio

    from retire.runner.camera_home import CameraHome, HomeSettings

BUNDLE = Path("bundles/panel/PRV_L01")
"""The bundle of a camera's stream, unless another is named."""

_CONSENT_HOURS = 24

_CONSENT = """\
# The stand-in camera draws its pictures: nobody stands before it. A consent names at least one
# person, so this id stands for nobody. It is no consent for any other camera.
schema: retire.bench_consent/v1
entity: {entity}
persons:
  - {{id: nobody.drawn-pictures, answer: "yes", at: "{at}"}}
until: "{until}"
"""

_TOLD = """\
stand-in camera at {camera}, with drawn pictures and nobody in view
Home Assistant at {url}, with the camera as {entity}

In a second terminal, in the folder {here}:

1. Approve what the sink may enforce on this camera (once for {state}):

{approve}

2. Measure. Without --allow-unmediated and --consent, only B4 is run:

{bench}

Meanwhile the camera can be unplugged, frozen, and put right:

echo unplugged > {control}
echo frozen > {control}
echo live > {control}

An interrupt (Ctrl-C) or the end of standard input ends camera and Home Assistant."""


def home(
    state: Annotated[Path, typer.Option(help="Folder of the home; private to its user.")] = Path(
        "runs/home"
    ),
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Home Assistant's port; 0: any free port.")
    ] = 0,
    environment: Annotated[
        Path | None, typer.Option(metavar="VENV", help="Environment that has Home Assistant.")
    ] = None,
) -> None:
    """Start a stand-in camera behind a local Home Assistant, and print how to measure it."""
    import asyncio

    from retire.bundle import load_bundle
    from retire.runner.camera_home import HomeSettings

    target = load_bundle(BUNDLE).contract.action.target
    asyncio.run(_until_ended(HomeSettings(state, port, environment), target))


async def _until_ended(settings: HomeSettings, target: str) -> None:
    """Run the home until an interrupt, the end of standard input, or its own end."""
    import asyncio

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    staying = asyncio.ensure_future(_stay(settings, target, stop))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((staying, stopping), return_when=asyncio.FIRST_COMPLETED)
    # Signals only set the event, so nothing cuts the ending short.
    staying.cancel()
    stopping.cancel()
    with suppress(asyncio.CancelledError):
        await staying


async def _stay(settings: HomeSettings, target: str, stop: asyncio.Event) -> None:
    from retire.runner.camera_home import camera_home

    say("starting the stand-in camera and Home Assistant ...")
    sys.stdout.flush()
    async with camera_home(settings) as started:
        _write_consent(settings.state / "consent.yaml", started.entity)
        say(_told(settings, started, target))
        sys.stdout.flush()
        # Only now: without any input, what keeps it from starting is still told.
        _heed_end_of_input(stop)
        ended = await started.ended()
    raise IncompleteError(
        f"{ended} ended by itself",
        mend=f"What Home Assistant said is in {settings.state / 'log'}",
    )


def _heed_end_of_input(stop: asyncio.Event) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    # A job in the background of a terminal is not stopped for looking at its input.
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    def read() -> None:
        # An input that cannot be read has no end to wait for.
        with suppress(OSError, RuntimeError):
            while os.read(0, 4096):
                pass
            loop.call_soon_threadsafe(stop.set)

    # A thread, since a file or /dev/null cannot be waited for by the loop.
    threading.Thread(target=read, daemon=True).start()


def _write_consent(path: Path, entity: str) -> None:
    now = datetime.now(UTC)  # noqa: TID251  # the shell's clock
    until = now + timedelta(hours=_CONSENT_HOURS)
    text = _CONSENT.format(entity=entity, at=_instant(now), until=_instant(until))
    write_whole(path, text.encode())


def _instant(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _told(settings: HomeSettings, started: CameraHome, target: str) -> str:

    state, command = settings.state, _command()
    approve = [command, "approve", BUNDLE, "--bind", f"{target}={started.entity}"]
    approve += ["--by", "operator-1", "--file", state / "approvals.yaml"]
    bench = [command, "bench", "camera", "--instance", state / "instance.yaml"]
    bench += ["--allow-unmediated", "--consent", state / "consent.yaml"]
    bench += ["--out", _new_run(state)]
    return _TOLD.format(
        camera=started.camera,
        url=started.url,
        entity=started.entity,
        here=Path.cwd(),
        state=state,
        approve=shlex.join(map(str, approve)),
        bench=shlex.join(map(str, bench)),
        control=shlex.quote(str(settings.control)),
    )


def _command() -> str:
    """Return how this program was called, short where the shell finds it by its name."""
    called = Path(sys.argv[0])
    found = shutil.which("retire")
    by_name = found is not None and called.exists() and called.samefile(found)
    return "retire" if by_name else str(called)


def _new_run(state: Path) -> Path:
    number = 1
    while (state / f"run-{number}").exists():
        number += 1
    return state / f"run-{number}"
