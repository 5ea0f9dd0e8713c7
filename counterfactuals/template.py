"""The world and the tasks of a bundle, and the snapshot that a task gives.

Pure: bytes go in, frozen types and snapshot bytes come out. The stub world freezes episodes with
:func:`snapshot_bytes`; lint and the generator use the same function, so that what is proved about
a member is what the model and the sink later read.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import rfc8785
from pydantic import Field, ValidationError, model_validator

from counterfactuals.people import name_fault
from sink.contract import (
    Consent,
    Fact,
    Grant,
    Identifier,
    Instant,
    Name,
    Snapshot,
    Version,
    read_snapshot,
)
from sink.strict_yaml import StrictModel, read_model

Variables = dict[Name, str]
"""A device's state: text values; numbers are canonical decimal text."""


class ServiceRule(StrictModel):
    """What a service does to a device: sets variables, emits an event, or both.

    A value ``$name`` stands for the parameter of that name, ``$target`` for the target.
    """

    set: dict[Name, str] = Field(default_factory=dict)
    emit: Name | None = None
    fields: dict[Name, str] = Field(default_factory=dict)
    defaults: dict[Name, str] = Field(default_factory=dict)
    """Values for parameters that a caller left out, as the device itself fills them."""

    @model_validator(mode="after")
    def _does_something(self) -> ServiceRule:
        if not self.set and self.emit is None:
            raise ValueError("a service sets a variable or emits an event")
        return self


class Device(StrictModel):
    """A device of the stub world: its state at the start and what its services do."""

    name: str
    state: Variables = Field(default_factory=dict)
    services: dict[Identifier, ServiceRule] = Field(min_length=1)


class World(StrictModel):
    """``world.yaml``: the devices, and everything a snapshot is frozen from."""

    schema_: Literal["retire.world/v1"] = Field(alias="schema")
    now: Instant
    devices: dict[Identifier, Device] = Field(min_length=1)
    grants: dict[Name, Grant] = Field(default_factory=dict)
    consents: dict[Name, Consent] = Field(default_factory=dict)
    facts: dict[Name, Fact] = Field(default_factory=dict)
    versions: dict[Name, Version] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _people_can_be_told_apart(self) -> World:
        for key, consent in self.consents.items():
            fault = name_fault(vote.name for vote in consent.votes.values())
            if fault:
                raise ValueError(f"consent {key}: {fault}")
        return self


class Patch(StrictModel):
    """One changed place of a snapshot: a JSON pointer (RFC 6901) and its new text."""

    path: str = Field(pattern=r"^/(as_of|(grants|consents|facts|versions)/.+)$")
    value: str


class DevelopmentTask(StrictModel):
    """An authorized task that the reducer may see."""

    id: Name
    request: str = Field(min_length=1)
    changes: tuple[Patch, ...] = ()


class Counterfactual(StrictModel):
    """The one patch that makes one predicate false."""

    predicate: Name
    path: str = Field(pattern=r"^/(as_of|(grants|consents|facts|versions)/.+)$")
    value: str


class LockedTemplate(StrictModel):
    """The audit's wording, and one counterfactual per predicate."""

    request: str = Field(min_length=1)
    counterfactuals: tuple[Counterfactual, ...]


class Tasks(StrictModel):
    """``tasks.yaml``: authorized development tasks and the locked template."""

    schema_: Literal["retire.tasks/v1"] = Field(alias="schema")
    development: tuple[DevelopmentTask, ...] = Field(min_length=1)
    locked: LockedTemplate

    @model_validator(mode="after")
    def _ids_once(self) -> Tasks:
        ids = [task.id for task in self.development]
        if len(set(ids)) != len(ids) or "locked" in ids:
            raise ValueError("every development task needs its own id, and none is 'locked'")
        return self


class TemplateError(ValueError):
    """A patch or a task does not fit its world; the message names the path."""


def load_world(data: bytes, where: str) -> World:
    """Read a ``world.yaml``; raises ``sink.strict_yaml.DocumentError``."""
    return read_model(World, data, where)


def load_tasks(data: bytes, where: str) -> Tasks:
    """Read a ``tasks.yaml``; raises ``sink.strict_yaml.DocumentError``."""
    return read_model(Tasks, data, where)


LOCKED = "locked"
"""The task id of the locked template."""


def patches_of(tasks: Tasks, task: str, patch: str | None) -> tuple[Patch, ...]:
    """Return the patches of a task and, for the locked template, of one counterfactual path.

    Raises:
        TemplateError: No such task, or the path is no counterfactual of the locked template.
    """
    if task != LOCKED:
        for development in tasks.development:
            if development.id == task and patch is None:
                return development.changes
        raise TemplateError(f"no development task {task!r} without a counterfactual")
    if patch is None:
        return ()
    for counterfactual in tasks.locked.counterfactuals:
        if counterfactual.path == patch:
            return (Patch(path=counterfactual.path, value=counterfactual.value),)
    raise TemplateError(f"{patch} is not a counterfactual path of the locked template")


def request_of(tasks: Tasks, task: str) -> str:
    """Return the wording of a task.

    Raises:
        TemplateError: No such task.
    """
    if task == LOCKED:
        return tasks.locked.request
    for development in tasks.development:
        if development.id == task:
            return development.request
    raise TemplateError(f"no task {task!r}")


def snapshot_bytes(world: World, patches: tuple[Patch, ...]) -> bytes:
    """Freeze a world under some patches: RFC 8785 bytes, the same for prompt, sink and record.

    Raises:
        TemplateError: A patch names a place that does not exist or whose value is not text, or
            the result is no valid snapshot.
    """
    value: dict[str, Any] = {
        "schema": "retire.snapshot/v1",
        "as_of": world.now,
        "grants": {key: item.model_dump() for key, item in world.grants.items()},
        "consents": {key: item.model_dump() for key, item in world.consents.items()},
        "facts": {key: item.model_dump(exclude_none=True) for key, item in world.facts.items()},
        "versions": {key: item.model_dump() for key, item in world.versions.items()},
    }
    for patch in patches:
        _apply(value, patch)
    data = rfc8785.dumps(value)
    try:
        read_snapshot(data)
    except ValidationError as error:
        raise TemplateError(f"the patched world gives no valid snapshot: {error}") from error
    return data


def parse_snapshot(data: bytes) -> Snapshot:
    """Read snapshot bytes that :func:`snapshot_bytes` made."""
    return read_snapshot(data)


def pointer_parts(path: str) -> tuple[str, ...]:
    """Split a JSON pointer into its unescaped parts (RFC 6901, section 4)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])


def _apply(value: dict[str, Any], patch: Patch) -> None:
    *parents, last = pointer_parts(patch.path)
    place: Any = value
    for part in parents:
        if not isinstance(place, dict) or part not in place:
            raise TemplateError(f"{patch.path}: there is no {part!r} in this world")
        place = place[part]
    if not isinstance(place, dict) or not isinstance(place.get(last), str):
        raise TemplateError(f"{patch.path}: there is no text at this place to replace")
    place[last] = patch.value


def differing_paths(left: bytes, right: bytes) -> tuple[str, ...]:
    """Return the JSON pointers at which two snapshots differ, in canonical order."""
    return tuple(_differences(json.loads(left), json.loads(right), ""))


def _differences(left: object, right: object, path: str) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        result: list[str] = []
        for key in sorted(set(left) | set(right)):
            pointer = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
            if key not in left or key not in right:
                result.append(pointer)
            else:
                result.extend(_differences(left[key], right[key], pointer))
        return result
    return [] if left == right and type(left) is type(right) else [path]
