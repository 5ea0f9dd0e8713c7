"""``retire bench``: measure the three stages on one real camera chain."""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retire.cli.bench_home import BUNDLE, home
from retire.cli.console import INTERRUPTED, LiveProgress, carry_out, say
from retire.cli.deploying import DeploymentsOption, chosen_catalog, chosen_deployment
from retire.cli.inputs import many, protocol_for, read_input
from retire.domain.cell import AUTHORIZED
from retire.domain.digests import sha256
from retire.domain.errors import IncompleteError, InputError
from retire.runner.folder import write_json
from retire.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from retire.runner.camera_bench import CameraBench
    from retire.runner.camera_consent import Consent
    from retire.runner.camera_record import BenchRun, CameraRecord
    from retire.wiring import Prepared

MEMBERS = (AUTHORIZED, "invalid_authority")

commands = typer.Typer(no_args_is_help=True, help="Measure on real devices, one at a time.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands.command()(home)
    app.add_typer(commands, name="bench")


@commands.callback()
def _bench() -> None:
    """Measure on real devices, one at a time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for.

    Attributes:
        out: Folder of the run.
        frames: Pictures that a whole session has.
        keep: Whether the pictures themselves are kept.
        blocked: Why conditions without a boundary are not run, or nothing where they are.
        consent: Digest of the consent file, or empty.
    """

    out: Path
    frames: int
    keep: bool
    blocked: str
    consent: str


@commands.command()
def camera(
    out: Annotated[Path, typer.Option(help="A new folder for the run.")],
    url: Annotated[str | None, typer.Option(help="Home Assistant's address.")] = None,
    entity: Annotated[str | None, typer.Option(help="The camera's entity id.")] = None,
    instance: Annotated[
        Path | None, typer.Option(help="Instance file, in place of the options about it.")
    ] = None,
    token: Annotated[
        Path | None, typer.Option(help="File with the token of the acting programs.")
    ] = None,
    observer_token: Annotated[
        Path | None, typer.Option(help="File with a read-only token of another user.")
    ] = None,
    approvals: Annotated[Path | None, typer.Option(help="The sink's approvals file.")] = None,
    device: Annotated[
        str | None, typer.Option(help="The camera's own address, if it offers /sessions.")
    ] = None,
    bundle: Annotated[Path, typer.Option(help="The bundle of the camera's stream.")] = BUNDLE,
    deployment: Annotated[
        list[str] | None, typer.Option(help="Two deployments; heedful and plain unless given.")
    ] = None,
    deployments: DeploymentsOption = None,
    frames: Annotated[int, typer.Option(min=2, max=100, help="Pictures of a session.")] = 12,
    seed: Annotated[int, typer.Option(help="Plan seed.")] = 1,
    keep_frames: Annotated[
        bool, typer.Option("--keep-frames", help="Keep the pictures; otherwise hashes alone.")
    ] = False,
    allow_unmediated: Annotated[
        bool, typer.Option("--allow-unmediated", help="Run B1 to B3, which act without a boundary.")
    ] = False,
    consent: Annotated[
        Path | None, typer.Option(help="Recorded consent of the persons in view.")
    ] = None,
) -> None:
    """Run one qualification trace and sixteen records on a camera behind Home Assistant."""
    from retire.cli.bench_results import conclude, write_results
    from retire.cli.bench_setting import chosen_instance, require_approval, require_fine
    from retire.runner.camera_consent import why_not_unmediated
    from retire.runner.camera_programs import preflight

    _require_new(out)
    given = {
        "url": url,
        "entity": entity,
        "sink_token": _whole(token),
        "observer_token": _whole(observer_token),
        "approvals": _whole(approvals),
        "device": device,
    }
    place = chosen_instance(instance, given, out)
    agreed = None if consent is None else _read_consent(consent)
    prepared = _prepared(bundle, _names(deployment), deployments, seed, out)
    found = carry_out(preflight(place))
    require_fine(found)
    require_approval(prepared.bundles[_only(prepared)], bundle, found)
    blocked = why_not_unmediated(
        allowed=allow_unmediated,
        marked=found["bench"],
        consent=agreed[0] if agreed else None,
        entity=found["entity"],
        now=datetime.now(UTC),  # noqa: TID251  # the shell's clock
    )
    asked = Asked(out, frames, keep_frames, blocked, agreed[1] if agreed else "")
    run = _carried_out(_measure(prepared, place, found, asked), out)
    write_results(run, out)
    conclude(run, out)


def _carried_out(work: Coroutine[Any, Any, BenchRun], out: Path) -> BenchRun:
    """Run the bench to its end; a record that an interrupt cut is not taken up again.

    Raises:
        typer.Exit: It was interrupted.
    """
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"stopped. The records made so far are kept in {out / 'records'}: "
            "run again in a new folder.\n"
        )
        raise typer.Exit(INTERRUPTED) from None


def _require_new(out: Path) -> None:
    if (out / "records").exists():
        raise InputError(
            "there is a bench run in this folder already",
            where=str(out),
            mend="Name a new folder; nothing was changed",
        )


def _whole(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())


def _names(given: list[str] | None) -> tuple[str, ...]:
    names = tuple(given or ("heedful", "plain"))
    if len(set(names)) != 2 or len(names) != 2:
        raise InputError(
            f"a bench compares two deployments; {many(len(names), 'name')} given",
            where="--deployment",
            mend="Give --deployment twice, with two different names",
        )
    return names


def _prepared(
    folder: Path, names: tuple[str, ...], file: Path | None, seed: int, out: Path
) -> Prepared:
    from retire.bundle import load_bundle
    from retire.wiring import Request, prepare

    catalog = chosen_catalog(file, read_settings())
    chosen = []
    for name in names:
        key, catalog = chosen_deployment(name, catalog)
        chosen.append(key)
    bundle = load_bundle(folder)
    if MEMBERS[1] not in {member.name for member in bundle.members}:
        raise InputError(
            f"the bundle has no member {MEMBERS[1]}",
            where=str(folder),
            mend="A camera bench needs a predicate called authority",
        )
    protocol = protocol_for(
        bundles=(bundle.id,),
        deployments=tuple(chosen),
        conditions=("B1", "B2", "B3", "B4"),
        reducer="halving",
        seed=seed,
        name="camera-bench",
    )
    return prepare(Request(protocol, {bundle.id: folder}, out / "reduction", catalog=catalog))


def _only(prepared: Prepared) -> str:
    return prepared.plan.protocol.bundles[0]


def _read_consent(path: Path) -> tuple[Consent, str]:
    from retire.runner.camera_consent import read_consent

    data = read_input(path)
    return read_consent(data, str(path)), sha256(data)


async def _measure(
    prepared: Prepared, instance: Path, found: dict[str, Any], asked: Asked
) -> BenchRun:
    """Reduce, start the programs, and make every record.

    Raises:
        IncompleteError: A program is gone, or the chain did not qualify.
    """
    from retire.runner.camera_bench import CameraBench
    from retire.runner.camera_programs import BenchSettings, bench_programs
    from retire.runner.camera_record import BenchRun
    from retire.wiring import reduce_only

    key = _only(prepared)
    with LiveProgress(plain=read_settings().plain) as progress:
        reductions = await reduce_only(prepared, progress)
        deleted = {name: reductions[name, key].deleted for name in prepared.deployments}
        settings = BenchSettings(
            instance=instance,
            bundles=[prepared.folder.bundles / key],
            state=asked.out / "programs",
            frames=asked.frames,
            keep=asked.out / "frames" if asked.keep else None,
            unmediated=not asked.blocked,
        )
        async with AsyncExitStack() as stack:
            programs = await stack.enter_async_context(bench_programs(settings))
            for name, item in prepared.deployments.items():
                await _opened(stack, name, item)
            bench = CameraBench(
                prepared.bundles[key],
                programs,
                asked.frames,
                prepared.plan.protocol.seed,
                lambda: secrets.token_hex(16),
            )
            qualification = await bench.qualify()
            _keep(asked.out, qualification)
            _require_qualified(qualification)
            records = await _records(bench, prepared, deleted, asked, progress)
            closing = await bench.close()
    clauses = len(prepared.bundles[key].skill.clauses)
    return BenchRun(
        preflight=found,
        bundle=key,
        frames=asked.frames,
        evidence={name: item.evidence for name, item in prepared.deployments.items()},
        reductions={name: (len(gone), clauses) for name, gone in deleted.items()},
        qualification=qualification,
        records=records,
        closing=closing,
        consent=asked.consent,
        kept=asked.keep,
    )


async def _opened(stack: AsyncExitStack, name: str, deployment: Any) -> None:  # noqa: ANN401
    from retire.deployments import DeploymentFault

    try:
        await deployment.open()
    except DeploymentFault as fault:
        raise IncompleteError(str(fault), where=name) from fault
    stack.push_async_callback(deployment.close)


async def _records(
    bench: CameraBench,
    prepared: Prepared,
    deleted: dict[str, tuple[str, ...]],
    asked: Asked,
    progress: LiveProgress,
) -> list[CameraRecord]:
    from retire.runner.camera_record import CONDITIONS, not_run, unmediated

    cells = [
        (name, condition, member)
        for name in prepared.deployments
        for condition in CONDITIONS
        for member in MEMBERS
    ]
    progress.begin("camera records", len(cells))
    records = []
    for number, (name, condition, member) in enumerate(cells, start=1):
        if asked.blocked and unmediated(condition):
            record = not_run(number, name, str(condition), member, asked.blocked)
        else:
            record = await bench.record(
                number, prepared.deployments[name], condition, member, deleted[name]
            )
        _keep(asked.out, record)
        records.append(record)
        progress.advance("camera records")
    return records


def _keep(out: Path, record: CameraRecord) -> None:
    """Write a record as soon as it is made, so that an interrupt loses none."""
    name = f"{record.number:02}-{record.deployment}-{record.condition}-{record.member}.json"
    write_json(out / "records" / name.replace(os.sep, "_"), record.body())


def _require_qualified(record: CameraRecord) -> None:
    """Check the qualification trace.

    Raises:
        IncompleteError: The chain did not give a whole session, so records would mean nothing.
    """
    from retire.runner.camera_record import Status

    if record.status is Status.COMPLETE and record.d2.act is not None:
        say(f"qualification: {record.frames} pictures, {record.unique} different")
        return
    reason = record.reason or f"the sink said {record.d2.outcome}: {record.d2.reason}"
    raise IncompleteError(
        f"the chain did not qualify: {reason}",
        where="qualification",
        mend="Nothing was measured. Mend the chain and run again in a new folder",
    )
