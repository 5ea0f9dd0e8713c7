"""What ``retire bench`` needs before it starts: an instance, a preflight, an approval."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retire.cli.console import say
from retire.domain.errors import IncompleteError, InputError
from retire.runner.folder import write_whole
from sink.approvals_file import read_approvals
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.bundle import Bundle

_OPTIONS = {
    "url": ("--url", "Home Assistant's address, for example http://127.0.0.1:8123"),
    "entity": ("--entity", "the camera's entity id, for example camera.living_room"),
    "sink_token": ("--token", "a file with the long-lived token of the acting programs' user"),
    "observer_token": ("--observer-token", "a file with the token of a read-only user"),
    "approvals": ("--approvals", "the sink's approvals file, made with `retire approve`"),
}


def chosen_instance(instance: Path | None, given: Mapping[str, str | None], out: Path) -> Path:
    """Return the instance file: the one that was named, or one written from the options.

    Raises:
        InputError: Both or neither were given, or an option is missing.
    """
    options = {name: value for name, value in given.items() if value is not None}
    if instance is not None:
        if options:
            raise InputError(
                "an instance file already says this",
                where=", ".join(_OPTIONS.get(name, (f"--{name}", ""))[0] for name in options),
                mend="Give --instance alone, or the options without it",
            )
        return instance
    missing = [name for name in _OPTIONS if name not in options]
    if missing:
        raise InputError(
            "missing: " + "; ".join(", ".join(_OPTIONS[name]) for name in missing),
            where="retire bench camera",
            mend="Give the options, or an instance file with --instance",
        )
    lines = ["schema: retire.camera_bench/v1"]
    lines += [f"{name}: {json.dumps(value)}" for name, value in options.items()]
    path = out / "instance.yaml"
    write_whole(path, "\n".join((*lines, "")).encode())
    return path


def require_fine(found: Mapping[str, Any]) -> None:
    """Print what the preflight found.

    Raises:
        InputError: Something in the setting is missing.
        IncompleteError: The setting is right and no live view comes.
    """
    for step in found["steps"]:
        state = "missing" if step["mend"] else "ok"
        say(f"preflight, {step['name']}: {state}: {step['found']}")
    for step in found["steps"]:
        if step["mend"]:
            kind = IncompleteError if step["name"] == "live view" else InputError
            raise kind(step["found"], where=f"preflight, {step['name']}", mend=step["mend"])


def require_approval(bundle: Bundle, folder: Path, found: Mapping[str, Any]) -> None:
    """Check that the sink may enforce the bundle's contract on this camera.

    Raises:
        InputError: It is not approved for it, or the approvals cannot be used.
    """
    file, target, entity = found["approvals"], found["target"], found["entity"]
    if bundle.contract.action.target != target:
        raise InputError(
            f"the instance is for {target}, the contract acts on {bundle.contract.action.target}",
            where=str(folder),
            mend="Name the bundle whose contract opens this camera's stream",
        )
    command = f"retire approve {folder} --bind {target}={entity} --by OPERATOR_ID --file {file}"
    try:
        approval = read_approvals(Path(file), os.geteuid()).of(bundle.digests.contract)
    except DocumentError as error:
        raise InputError(error.message, where=error.where, mend=f"Run: {command}") from error
    if approval is None or approval.bindings.get(target) != entity:
        raise InputError(
            f"the contract of {bundle.id} is not approved for {entity}",
            where=str(file),
            mend=f"Run: {command}",
        )
    say(f"preflight, approval: ok: {bundle.id} is approved for {entity}")
