"""The stub world's two faces: resets for the runner, frozen episodes and acts for the actuators."""

from __future__ import annotations

import re
import sqlite3
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from counterfactuals.devices import State, UnsupportedError, effects_of, initial_state
from counterfactuals.template import (
    TemplateError,
    patches_of,
    snapshot_bytes,
)
from hardware.world.bundles import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardware.world.bundles import Template
    from hardware.world.store import WorldStore

_ATTEMPT = re.compile(r"[0-9a-f]{32}\Z")
_LIVE_EPISODES = 8192


@dataclass(slots=True)
class _Episode:
    template: Template
    episode: str
    snapshot: bytes
    snapshot_digest: str
    state: State
    revision: int = field(default=1)
    frozen_at: float = field(default_factory=time.monotonic)


class StubWorld:
    """Episodes by attempt, each a world of its own.

    Args:
        templates: Bundles by template digest.
        store: Where ground truth is kept.
    """

    def __init__(self, templates: Mapping[str, Template], store: WorldStore) -> None:
        self._templates = templates
        self._store = store
        self._live: OrderedDict[str, _Episode] = OrderedDict()
        self._frozen: dict[tuple[str, str, str | None], tuple[bytes, str]] = {}

    async def reset_face(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer the runner: reset, or say which templates exist. Acting is not offered here."""
        match message.get("op"):
            case "reset":
                return self._reset(message)
            case "hello":
                return {"templates": sorted(self._templates)}
            case _:
                return {"error": "this face resets; it neither reads nor acts"}

    async def act_face(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer an actuator: the frozen episode, or one act."""
        episode = self._live.get(str(message.get("attempt")))
        match message.get("op"):
            case "frozen":
                return _frozen_reply(episode)
            case "act":
                return self._act(str(message.get("attempt")), episode, message)
            case _:
                return {"error": "unknown operation", "status": "refused"}

    def _reset(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        attempt, template_key = str(message.get("attempt")), str(message.get("template"))
        task, patch = str(message.get("task")), message.get("patch")
        episode = str(message.get("episode"))
        template = self._templates.get(template_key)
        if template is None or not _ATTEMPT.match(attempt):
            return {"error": f"no template {template_key} or no attempt id {attempt}"}
        if not (patch is None or isinstance(patch, str)) or not episode.isascii():
            return {"error": "the patch is no path, or the episode is not ASCII"}
        try:
            snapshot, snapshot_digest = self._freeze(template_key, template, task, patch)
            row = (
                attempt,
                template_key,
                task,
                patch,
                episode,
                template.contract_digest,
                snapshot_digest,
            )
            self._store.add_episode(row, snapshot)
        except (TemplateError, sqlite3.Error) as error:
            return {"error": f"{type(error).__name__}: {error}"}
        self._live[attempt] = _Episode(
            template,
            episode,
            snapshot,
            snapshot_digest,
            initial_state(template.world.devices),
        )
        if len(self._live) > _LIVE_EPISODES:
            self._live.popitem(last=False)
        return {"snapshot": snapshot.decode(), "snapshot_digest": snapshot_digest}

    def _freeze(
        self, key: str, template: Template, task: str, patch: str | None
    ) -> tuple[bytes, str]:
        """Serialise a snapshot once; everybody hashes and reads these bytes."""
        found = self._frozen.get((key, task, patch))
        if found is None:
            data = snapshot_bytes(template.world, patches_of(template.tasks, task, patch))
            found = self._frozen[key, task, patch] = (data, digest(data))
        return found

    def _act(
        self, attempt: str, episode: _Episode | None, message: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if episode is None:
            return {"status": "refused", "detail": "no such attempt"}
        revision = message.get("revision")
        if revision is not None and revision != episode.revision:
            return {"status": "refused", "detail": "revision"}
        parameters = message.get("parameters")
        if not isinstance(parameters, dict) or not all(
            isinstance(value, str) for value in parameters.values()
        ):
            return {"status": "refused", "detail": "the parameters are no texts by name"}
        try:
            changes = effects_of(
                episode.template.world.devices,
                episode.state,
                str(message.get("service")),
                str(message.get("target")),
                parameters,
            )
        except UnsupportedError as error:
            return {"status": "refused", "detail": str(error)}
        try:
            self._store.add_journal(attempt, changes)
        except sqlite3.Error as error:
            # What the journal cannot hold does not happen: the observer would never see it.
            return {"status": "refused", "detail": f"the journal failed: {type(error).__name__}"}
        for change in changes:
            if change.variable is not None and change.after is not None:
                episode.state[str(message["target"])][change.variable] = change.after
        episode.revision += 1
        return {"status": "done", "detail": f"{len(changes)} journal entries"}


def _frozen_reply(episode: _Episode | None) -> Mapping[str, Any]:
    if episode is None:
        return {"error": "no such attempt"}
    return {
        "snapshot": episode.snapshot.decode(),
        "snapshot_digest": episode.snapshot_digest,
        "episode": episode.episode,
        "contract": episode.template.contract_digest,
        "revision": episode.revision,
        "age_seconds": time.monotonic() - episode.frozen_at,
    }
