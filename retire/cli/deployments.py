"""``retire deployments``: which models a file offers, and what they are good for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import carry_out, say
from retire.cli.inputs import many, printable, read_input
from retire.domain.digests import digest_of
from retire.domain.errors import IncompleteError, InputError
from retire.settings import read_secret, read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.deployments.checking import Checked
    from retire.deployments.configuration import (
        DeploymentsFile,
        LocalConfiguration,
        OpenAIConfiguration,
    )
    from retire.deployments.estimating import Load, Pace, PlanLoad
    from retire.deployments.port import Deployment
    from retire.prompts import Prompt
    from retire.settings import Settings

    AnyConfiguration = OpenAIConfiguration | LocalConfiguration

_OUTPUTS = ("json_schema", "tools", "json")
_TITLES = ("name", "provider", "model", "output", "at once", "key", "identity")

FileOption = Annotated[
    Path | None,
    typer.Option("--file", "--deployments", help="Deployments file (or RETIRE_DEPLOYMENTS)."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Models that an operator offers.", no_args_is_help=True)
    group.command("list")(offered)
    group.command("check")(checked)
    app.add_typer(group, name="deployments")


def offered(file: FileOption = None) -> None:
    """List the deployments of a file: what is asked, how fast, and whether its key is there."""
    from rich.console import Console
    from rich.table import Table

    settings = read_settings()
    _, configured = _read(file, settings)
    rows = [_row(item) for item in configured.deployments]
    console = Console()
    if settings.plain or not console.is_terminal:
        for row in rows:
            say(", ".join(f"{title} {text}" for title, text in zip(_TITLES, row, strict=True)))
        return
    table = Table()
    for title in _TITLES:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*map(_literal, row))
    console.print(table)


def _row(item: AnyConfiguration) -> tuple[str, ...]:
    from retire.deployments.configuration import LocalConfiguration

    if isinstance(item, LocalConfiguration):
        # Its weights are part of the identity; hashing them would take its time here.
        return item.name, "local", item.weights, item.output, "1", "none needed", "by its weights"
    key = "none needed"
    if item.key_variable is not None:
        there = "is set" if read_secret(item.key_variable) else "is not set"
        key = f"{item.key_variable} {there}"
    model, digest = f"{item.model} at {item.base_url}", digest_of(item.identity)[7:19]
    return item.name, "openai", model, item.output, str(item.concurrency), key, digest


def checked(
    names: Annotated[list[str] | None, typer.Argument(help="Some of them; all by default.")] = None,
    file: FileOption = None,
    protocol: Annotated[
        Path | None, typer.Option(help="Say what a run of this protocol will take.")
    ] = None,
    bundles: Annotated[
        list[Path] | None, typer.Option(help="The protocol's bundle folders.")
    ] = None,
) -> None:
    """Call each deployment a few times and say what works, and what a run would take."""
    from retire.deployments.assembling import catalog_of

    settings = read_settings()
    path, configured = _read(file, settings)
    chosen = _chosen(configured, names or [], path)
    plan = None if protocol is None else _plan(protocol, bundles or [Path("bundles/panel")])
    catalog = catalog_of(path, settings.models, read_secret)
    # Made before the first call, so that a missing key is not found half-way.
    made = {item.name: catalog.named(item.name) for item in chosen}
    unusable = []
    for item in chosen:
        asked = plan is not None and item.name in plan.deployments
        found = carry_out(_try(item, made[item.name], plan.long if plan and asked else None))
        _show(item.name, found, plain=settings.plain)
        if plan and asked:
            _say_cost(item, plan.load, found.seconds)
        if not found.usable:
            unusable.append(item.name)
    if unusable:
        raise IncompleteError(
            f"no run can use {', '.join(unusable)}",
            where=str(path),
            mend="See above what fails",
        )


def _read(file: Path | None, settings: Settings) -> tuple[Path, DeploymentsFile]:
    from retire.deployments.configuration import load_deployments

    path = file or settings.deployments
    if path is None:
        raise InputError(
            "no deployments file is named",
            where="--file",
            mend="Name one, or set RETIRE_DEPLOYMENTS; "
            "deploy/deployments.example.yaml shows how it is written",
        )
    return path, load_deployments(read_input(path), str(path))


def _chosen(file: DeploymentsFile, names: Sequence[str], path: Path) -> list[AnyConfiguration]:
    unknown = [name for name in names if name not in file.by_name]
    if unknown:
        raise InputError(
            f"there is no deployment {unknown[0]!r} in the file",
            where=str(path),
            mend=f"It has {', '.join(file.by_name)}",
        )
    return [item for item in file.deployments if not names or item.name in names]


async def _try(item: AnyConfiguration, deployment: Deployment, long: Prompt | None) -> Checked:
    from retire.deployments.checking import Manner, check

    sampling = item.sampling
    return await check(
        deployment, Manner(sampling.max_tokens, sampling.seed, _variants(item), long)
    )


def _variants(item: AnyConfiguration) -> Mapping[str, Deployment]:
    """Return the same endpoint asked in the other ways; a local model is tried as it is."""
    from retire.deployments.configuration import LocalConfiguration
    from retire.deployments.openai_endpoint import OpenAIDeployment

    if isinstance(item, LocalConfiguration):
        return {}
    key = read_secret(item.key_variable) if item.key_variable else None
    return {
        output: OpenAIDeployment(item.model_copy(update={"output": output, "retries": 0}), key)
        for output in _OUTPUTS
        if output != item.output
    }


def _show(name: str, found: Checked, *, plain: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from retire.deployments.checking import Outcome

    console = Console()
    if plain or not console.is_terminal:
        for finding in found.findings:
            say(f"{name}: {finding.topic}: {finding.outcome}: {printable(finding.words)}")
        return
    colours = {Outcome.WORKS: "green", Outcome.FAILS: "red", Outcome.OPEN: "yellow"}
    table = Table("tried", "", "found", title=name, title_justify="left")
    for finding in found.findings:
        colour = colours[finding.outcome]
        table.add_row(finding.topic, f"[{colour}]{finding.outcome}[/]", _literal(finding.words))
    console.print(table)


def _literal(text: str) -> str:
    """Keep square brackets of a server's words from being read as markup."""
    return printable(text).replace("[", r"\[")


# -- what a run would take ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a protocol asks of each of its deployments."""

    deployments: tuple[str, ...]
    load: PlanLoad
    long: Prompt


def _plan(path: Path, folders: list[Path]) -> _Plan:
    from retire.bundle import load_bundle
    from retire.bundle.loading import bundles_by_id
    from retire.deployments.estimating import longest_development_prompt, plan_load
    from retire.matrix import load_protocol

    protocol = load_protocol(read_input(path), str(path))
    places = bundles_by_id(folders)
    missing = [key for key in protocol.bundles if key not in places]
    if missing:
        raise InputError(
            f"the protocol names bundles that are not here: {', '.join(missing)}",
            where=str(path),
            mend="Name their folder with --bundles",
        )
    loaded = [load_bundle(places[key]) for key in protocol.bundles]
    load = plan_load(protocol, loaded)
    return _Plan(protocol.deployments, load, longest_development_prompt(loaded))


def _say_cost(item: AnyConfiguration, plan: PlanLoad, seconds: float | None) -> None:
    say(f"{item.name}: cells: {_taken(item, plan.cells, seconds)}")
    if plan.most.calls:
        say(f"{item.name}: reductions, at least: {_taken(item, plan.least, seconds)}")
        say(f"{item.name}: reductions, at most: {_taken(item, plan.most, seconds)}")
    whole = plan.cells + plan.most
    say(f"{item.name}: the whole run, at most: {_taken(item, whole, seconds)}")


def _taken(item: AnyConfiguration, load: Load, seconds: float | None) -> str:
    from retire.deployments.configuration import OpenAIConfiguration
    from retire.deployments.estimating import duration, money
    from sink.contract import canonical_decimal

    written = load.calls * item.sampling.max_tokens
    parts = [
        many(load.calls, "call"),
        f"about {_short(load.read)} tokens read",
        f"at most {_short(written)} written",
    ]
    if isinstance(item, OpenAIConfiguration) and item.price is not None:
        amount = money(load, item.sampling, item.price).quantize(Decimal("0.01"), ROUND_CEILING)
        parts.append(f"at most {canonical_decimal(amount)} {item.price.currency}")
    if seconds is not None:
        parts.append(f"about {_span(duration(load, item.sampling, _pace(item, seconds)))}")
    return ", ".join(parts)


def _pace(item: AnyConfiguration, seconds: float) -> Pace:
    from retire.deployments.configuration import LocalConfiguration
    from retire.deployments.estimating import Pace

    if isinstance(item, LocalConfiguration):
        return Pace(seconds, 1)
    return Pace(seconds, item.concurrency, item.requests_per_minute, item.tokens_per_minute)


def _short(number: int) -> str:
    if number >= 1_000_000:
        return f"{number / 1_000_000:.1f}M"
    return f"{number / 1000:.1f}k" if number >= 1000 else str(number)


def _span(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"
