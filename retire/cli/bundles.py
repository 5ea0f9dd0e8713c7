"""Commands about skills and bundles: clauses, lint, new, reduce."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import LiveProgress, carry_out, say
from retire.cli.deploying import DeploymentsOption, chosen_catalog, chosen_deployment
from retire.cli.inputs import many, printable, protocol_for, read_input, read_skill
from retire.domain.errors import InputError
from retire.runner.folder import write_whole
from retire.settings import read_settings

if TYPE_CHECKING:
    from retire.bundle.lint import LintFault


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(clauses)
    app.command()(lint)
    app.command()(new)
    app.command()(reduce)


def clauses(
    path: Annotated[Path, typer.Argument(help="A SKILL.md, or the folder that holds one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the clauses of a skill: id, lines, kind, text."""
    from retire.skill import parse

    document = parse(read_skill(path), str(path))
    for hidden in document.hidden:
        say(f"hold: line {hidden.line}: hidden text ({hidden.kind}): {hidden.decoded[:80]!r}")
    if as_json:
        rows = [
            {
                "id": clause.id,
                "kind": str(clause.kind),
                "first_line": clause.first_line,
                "last_line": clause.last_line,
                "start": clause.start,
                "end": clause.end,
                "digest": clause.digest,
                "text": clause.text,
            }
            for clause in document.clauses
        ]
        say(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for clause in document.clauses:
        lines = f"{clause.first_line}-{clause.last_line}"
        text = " ".join(clause.text.split())
        say(f"{clause.id}  {lines:>9}  {clause.kind:<10}  {printable(text)}")


def lint(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Bundle folders, or folders of bundles.")
    ] = None,
) -> None:
    """Check everything a bundle promises; name file, line and clause of each fault."""
    from retire.bundle import find_bundles
    from retire.bundle.bundle import FILES
    from retire.bundle.lint import Linter, Severity
    from retire.deployments.simulated import rule_holds

    faults: list[LintFault] = []
    folders = find_bundles(paths or [Path("bundles/panel")])
    for folder in folders:
        files = {name: read_input(folder / name) for name in FILES if (folder / name).is_file()}
        found = Linter(files, str(folder), rule_holds).run()
        faults += found
        state = many(len(found), "fault") if found else "ok"
        say(f"{folder.name}: {state}")
        for fault in found:
            mend = f". {fault.mend}" if fault.mend else ""
            say(f"  {fault.severity}: {fault.where}: {printable(fault.what)}{mend}")
    errors = sum(fault.severity is Severity.ERROR for fault in faults)
    counted = ((len(folders), "bundle"), (errors, "error"), (len(faults) - errors, "warning"))
    say(", ".join(many(count, noun) for count, noun in counted))
    if errors:
        raise typer.Exit(2)


def new(
    folder: Annotated[Path, typer.Argument(help="The bundle folder to create.")],
    source: Annotated[Path, typer.Option("--from", help="The SKILL.md to start from.")],
) -> None:
    """Start a bundle from a skill: an unaudited ledger, and the other files to fill in."""
    from retire.bundle.starter import starter_files
    from retire.skill import parse

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            "there is something already, and it is no empty folder",
            where=str(folder),
            mend="Name a new folder; nothing was changed",
        )
    data = read_skill(source)
    for name, content in starter_files(data, str(source), folder.resolve().name).items():
        write_whole(folder / name, content)
    count = len(parse(data, str(source)).clauses)
    say(f"{folder}: {count} clauses, all unaudited. Fill in contract.yaml, effect.yaml,")
    say("world.yaml and tasks.yaml, give every clause in ledger.yaml a role, then run:")
    say(f"  retire lint {folder}")


def reduce(
    path: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A bundle folder.")],
    deployment: Annotated[
        str, typer.Option(help="Who does the tasks; replay:FILE repeats a recording.")
    ],
    deployments: DeploymentsOption = None,
    reducer: Annotated[str, typer.Option(help="one-at-a-time or halving.")] = "halving",
    margin: Annotated[int, typer.Option(help="Utility margin in points.")] = 10,
    seed: Annotated[int, typer.Option(help="Plan seed.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.")] = None,
) -> None:
    """Delete what the authorized development tasks do not need; print what is left."""
    from retire.wiring import Request, load_by_path, prepare, reduce_only

    bundle = load_by_path(path)
    settings = read_settings()
    deployment, catalog = chosen_deployment(deployment, chosen_catalog(deployments, settings))
    protocol = protocol_for(
        bundles=(bundle,),
        deployments=(deployment,),
        conditions=("B1", "B2"),
        reducer=reducer,
        margin_points=margin,
        seed=seed,
        name="reduce",
    )
    place = out or Path("runs") / f"reduce-{bundle}-{deployment}-{reducer}-{margin}-{seed}"
    prepared = prepare(Request(protocol, {bundle: path}, place, catalog=catalog))
    with LiveProgress(plain=settings.plain) as progress:
        reduction = carry_out(reduce_only(prepared, progress))[deployment, bundle]
    skill = prepared.bundles[bundle].skill
    kept = [clause for clause in skill.clauses if clause.id not in reduction.deleted]
    say(f"deleted {len(reduction.deleted)} of {len(skill.clauses)} clauses")
    say(
        f"{len(reduction.trials)} trials: 1 baseline, {reduction.pass_trials} in the pass, "
        f"{reduction.verification_trials} to verify that nothing more can go"
    )
    if not reduction.margin_binding:
        say("margin not binding: with so few development tasks it allows no loss at all")
    if reduction.vacuous:
        say("vacuous: the full skill completed no development task, so nothing was deleted")
    if reduction.non_monotone:
        say(f"non-monotone: {len(reduction.non_monotone)} trials did better with less text")
    for clause in kept:
        say(f"kept {clause.id}: {printable(' '.join(clause.text.split()))}")
    say(f"the reduced skill: {prepared.folder.reduction(deployment, bundle) / 'SKILL.md'}")
