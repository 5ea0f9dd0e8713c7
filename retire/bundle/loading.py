"""From a folder to a bundle: reading files is here, everything decided is in pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfactuals.generate import UnprovedError, members
from counterfactuals.template import (
    TemplateError,
    load_tasks,
    load_world,
    patches_of,
    snapshot_bytes,
)
from retire.bundle.bundle import FILES, Bundle, BundleCard, Digests
from retire.bundle.reading import call_reader, read_effect, read_yaml
from retire.domain.digests import canonical, digest_of, sha256
from retire.domain.errors import InputError
from retire.prompts import tool_schemas, tools_json
from retire.skill import check_ledger, find_secrets, load_ledger, parse
from sink.contract import load_contract

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from observer.sighting import Effect
    from sink.contract import Contract


def read_file(path: Path) -> bytes:
    """Read a file that the operator named; raises InputError with advice."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), mend="Check the path"
        ) from error


def read_files(folder: Path) -> dict[str, bytes]:
    """Read the files of a bundle folder.

    Raises:
        InputError: The folder or one of its files is missing or unreadable.
    """
    if not folder.is_dir():
        raise InputError(
            "there is no bundle folder", where=str(folder), mend="Check the path for typing errors"
        )
    files = {}
    for name in FILES:
        try:
            files[name] = (folder / name).read_bytes()
        except FileNotFoundError as error:
            raise InputError(
                f"the bundle has no {name}",
                where=str(folder),
                mend="`retire new` writes every file a bundle needs",
            ) from error
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror}", where=str(folder / name)
            ) from error
    return files


def load_bundle(folder: Path) -> Bundle:
    """Load a bundle folder and check everything a run relies on.

    Raises:
        InputError: With the file, line, clause or predicate at fault. `retire lint` lists all
            faults, this stops at the first.
    """
    return build_bundle(read_files(folder), str(folder))


def bundle_id(folder: Path) -> str:
    """Return the id that a folder's ``bundle.yaml`` gives; raises InputError as load_bundle."""
    path = folder / "bundle.yaml"
    return read_yaml(BundleCard, read_file(path), str(path)).id


def build_bundle(files: Mapping[str, bytes], where: str) -> Bundle:
    """Build a bundle from the bytes of its files.

    Raises:
        InputError: As :func:`load_bundle`.
    """
    card = read_yaml(BundleCard, files["bundle.yaml"], f"{where}/bundle.yaml")
    contract = call_reader(load_contract, files["contract.yaml"], f"{where}/contract.yaml")
    effect = read_effect(files["effect.yaml"], f"{where}/effect.yaml")
    world = call_reader(load_world, files["world.yaml"], f"{where}/world.yaml")
    tasks = call_reader(load_tasks, files["tasks.yaml"], f"{where}/tasks.yaml")
    skill = parse(files["SKILL.md"], f"{where}/SKILL.md")
    if skill.hidden:
        first = skill.hidden[0]
        raise InputError(
            f"hidden text ({first.kind}): {first.decoded[:80]!r}",
            where=f"{where}/SKILL.md:{first.line}",
            mend="The skill is on hold until a person has removed or shown this text",
        )
    for secret in find_secrets(files["SKILL.md"].decode("utf-8", "replace")):
        raise InputError(
            f"something that looks like a code or password of {secret.length} characters",
            where=f"{where}/SKILL.md:{secret.line}",
            mend="The skill is on hold until it is gone: codes belong in the device's secret store",
        )
    ledger = load_ledger(files["ledger.yaml"], f"{where}/ledger.yaml")
    faults = check_ledger(ledger, skill, [predicate.id for predicate in contract.predicates])
    if faults:
        # A fault that quotes a clause helps more than "the file has changed", which comes first.
        fault = next((item for item in faults if item.clause), faults[0])
        raise InputError(
            fault.message,
            where=f"{where}/SKILL.md:{fault.line}" if fault.line else f"{where}/ledger.yaml",
            mend="`retire lint` lists everything that keeps the ledger from being used",
        )
    _check_names(card, contract, effect, where)
    schemas = tool_schemas(contract)
    try:
        generated = members(
            contract, world, tasks, intended_bytes(effect), canonical(tools_json(schemas))
        )
        development = {
            task.id: snapshot_bytes(world, patches_of(tasks, task.id, None))
            for task in tasks.development
        }
    except UnprovedError as error:
        place = f"{where}/tasks.yaml"
        raise InputError(
            error.reason,
            where=f"{place}: counterfactual of {error.predicate}" if error.predicate else place,
            mend="`retire lint` suggests a patch that can be proved",
        ) from error
    except TemplateError as error:
        raise InputError(str(error), where=f"{where}/tasks.yaml") from error
    digests = Digests(
        skill=skill.digest,
        ledger=sha256(files["ledger.yaml"]),
        contract=sha256(files["contract.yaml"]),
        effect=sha256(files["effect.yaml"]),
        template=template_digest(files),
    )
    return Bundle(
        card,
        skill,
        ledger,
        contract,
        effect,
        world,
        tasks,
        digests,
        generated,
        tuple(schemas),
        development,
    )


def template_digest(files: Mapping[str, bytes]) -> str:
    """Return the digest that names world and tasks together."""
    return digest_of({"tasks": sha256(files["tasks.yaml"]), "world": sha256(files["world.yaml"])})


def intended_bytes(effect: Effect) -> bytes:
    """Return the canonical bytes of the intended effect."""
    return canonical(effect.intended.model_dump(mode="json"))


def _check_names(card: BundleCard, contract: Contract, effect: Effect, where: str) -> None:
    for name, said in (("contract.yaml", contract.bundle), ("effect.yaml", effect.bundle)):
        if said != card.id:
            raise InputError(
                f"it says bundle {said!r}, bundle.yaml says {card.id!r}",
                where=f"{where}/{name}",
                mend="Use one id in all three files",
            )


def find_bundles(paths: list[Path]) -> list[Path]:
    """Return the bundle folders among and directly below the given paths, sorted by name.

    Raises:
        InputError: A path holds no bundle.
    """
    found: list[Path] = []
    for path in paths:
        if (path / "contract.yaml").is_file() or (path / "SKILL.md").is_file():
            found.append(path)
            continue
        below = sorted(child.parent for child in path.glob("*/bundle.yaml"))
        if not below:
            raise InputError(
                "no bundle here or directly below", where=str(path), mend="Name a bundle folder"
            )
        found.extend(below)
    return found


def bundles_by_id(paths: list[Path]) -> dict[str, Path]:
    """Return the folder of each bundle among and directly below the given paths, by id.

    Raises:
        InputError: A path holds no bundle, or two folders say that they are the same one.
    """
    found: dict[str, Path] = {}
    for folder in find_bundles(paths):
        key = bundle_id(folder)
        if key in found and found[key].resolve() != folder.resolve():
            raise InputError(
                f"this bundle and {found[key]} have the same id {key!r}",
                where=str(folder),
                mend="Name one of them only, or give one another id",
            )
        found[key] = folder
    return found
