"""The world's own reading of bundle folders."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import rfc8785

from counterfactuals.template import Tasks, World, load_tasks, load_world

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Template:
    """One bundle as the world loaded it by itself."""

    world: World
    tasks: Tasks
    contract_digest: str


def digest(data: bytes) -> str:
    """Return ``sha256:<hex>`` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def template_digest(world: bytes, tasks: bytes) -> str:
    """Return the digest that names a locked template: over the digests of its two files."""
    return digest(rfc8785.dumps({"tasks": digest(tasks), "world": digest(world)}))


def load_templates(folders: Iterable[Path]) -> dict[str, Template]:
    """Load world and tasks of each bundle folder, by template digest.

    Raises:
        sink.strict_yaml.DocumentError: A file cannot be used.
        OSError: A file cannot be read.
    """
    templates = {}
    for folder in folders:
        world, tasks = (folder / "world.yaml").read_bytes(), (folder / "tasks.yaml").read_bytes()
        templates[template_digest(world, tasks)] = Template(
            load_world(world, str(folder / "world.yaml")),
            load_tasks(tasks, str(folder / "tasks.yaml")),
            digest((folder / "contract.yaml").read_bytes()),
        )
    return templates
