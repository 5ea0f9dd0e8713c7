"""The two faces of a world: resets for the runner, frozen episodes and acts for the actuators."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, TypeAdapter, ValidationError

from counterfactuals.devices import State, UnsupportedError, effects_of, initial_state
from counterfactuals.template import TemplateError, patches_of, snapshot_bytes
from hardware.homeassistant.errors import HomeAssistantError
from hardware.strict import fault_of
from hardware.wire import Act, ActReply, AskFrozen, FrozenReply, Hello, Reset
from hardware.world.bundles import digest
from hardware.world.store import EpisodeRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardware.wire import Message
    from hardware.world.bundles import Template
    from hardware.world.store import WorldStore

_LIVE_EPISODES = 8192
_RESETTING: TypeAdapter[Reset | Hello] = TypeAdapter(
    Annotated[Reset | Hello, Field(discriminator="op")]
)
_ACTING: TypeAdapter[AskFrozen | Act] = TypeAdapter(
    Annotated[AskFrozen | Act, Field(discriminator="op")]
)


class SetUpError(Exception):
    """A world could not be brought into the state of a task."""


@dataclass(slots=True)
class Episode:
    """One attempt as it was frozen; ``row`` is what the register keeps of it."""

    row: EpisodeRow
    snapshot: bytes
    template: Template
    state: State
    revision: int = 1
    frozen_at: float = field(default_factory=time.monotonic)


class World(ABC):
    """What every world does alike: it freezes episodes of its templates and shows them.

    Args:
        templates: Bundles by template digest.
        store: Where ground truth is kept.
    """

    def __init__(self, templates: Mapping[str, Template], store: WorldStore) -> None:
        self._templates = templates
        self._store = store
        self._snapshots: dict[tuple[str, str, str | None], tuple[bytes, str]] = {}

    async def reset_face(self, message: Message) -> Message:
        """Answer the runner: reset, or say which templates exist. Acting is not offered here."""
        try:
            asked = _RESETTING.validate_python(message)
            if isinstance(asked, Hello):
                return {"templates": sorted(self._templates)}
            episode = self._freeze(asked)
            await self._begin(episode)
        except ValidationError as error:
            return {"error": fault_of(error)}
        except (TemplateError, SetUpError, HomeAssistantError, sqlite3.Error) as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {
            "snapshot": episode.snapshot.decode(),
            "snapshot_digest": episode.row.snapshot_digest,
        }

    async def act_face(self, message: Message) -> Message:
        """Answer an actuator: the frozen episode, or one act."""
        try:
            asked = _ACTING.validate_python(message)
        except ValidationError as error:
            return {"error": fault_of(error), "status": "refused"}
        episode = self._standing(asked.attempt)
        if isinstance(asked, Act):
            return vars(self._act(asked, episode))
        if episode is None:
            return {"error": "no such attempt, or the world stands in another one"}
        return vars(
            FrozenReply(
                snapshot=episode.snapshot.decode(),
                snapshot_digest=episode.row.snapshot_digest,
                episode=episode.row.episode,
                contract=episode.row.contract,
                revision=episode.revision,
                age_seconds=time.monotonic() - episode.frozen_at,
            )
        )

    @abstractmethod
    async def _begin(self, episode: Episode) -> None:
        """Stand in a frozen episode and register it."""

    @abstractmethod
    def _standing(self, attempt: str) -> Episode | None:
        """Return the episode of an attempt, if the world stands in it."""

    @abstractmethod
    def _act(self, act: Act, episode: Episode | None) -> ActReply:
        """Act once, or refuse."""

    def _freeze(self, reset: Reset) -> Episode:
        """Serialise a snapshot once; everybody hashes and reads these bytes."""
        template = self._templates.get(reset.template)
        if template is None:
            raise TemplateError(f"no template {reset.template}")
        key = (reset.template, reset.task, reset.patch)
        found = self._snapshots.get(key)
        if found is None:
            patches = patches_of(template.tasks, reset.task, reset.patch)
            data = snapshot_bytes(template.world, patches)
            found = self._snapshots[key] = (data, digest(data))
        snapshot, named = found
        row = EpisodeRow(reset.attempt, *key, reset.episode, template.contract_digest, named)
        return Episode(row, snapshot, template, initial_state(template.world.devices))


class StubWorld(World):
    """Episodes by attempt, each a world of its own."""

    def __init__(self, templates: Mapping[str, Template], store: WorldStore) -> None:
        super().__init__(templates, store)
        self._live: OrderedDict[str, Episode] = OrderedDict()

    async def _begin(self, episode: Episode) -> None:
        self._store.add_episode(episode.row, episode.snapshot)
        self._live[episode.row.attempt] = episode
        if len(self._live) > _LIVE_EPISODES:
            self._live.popitem(last=False)

    def _standing(self, attempt: str) -> Episode | None:
        return self._live.get(attempt)

    def _act(self, act: Act, episode: Episode | None) -> ActReply:
        if episode is None:
            return ActReply("refused", "no such attempt")
        if act.revision is not None and act.revision != episode.revision:
            return ActReply("refused", "revision")
        devices = episode.template.world.devices
        try:
            changes = effects_of(devices, episode.state, act.service, act.target, act.parameters)
            self._store.add_journal(act.attempt, changes)
        except UnsupportedError as error:
            return ActReply("refused", str(error))
        except sqlite3.Error as error:
            # What the journal cannot hold does not happen: the observer would never see it.
            return ActReply("refused", f"the journal failed: {type(error).__name__}")
        for change in changes:
            if change.variable is not None and change.after is not None:
                episode.state[act.target][change.variable] = change.after
        episode.revision += 1
        return ActReply("done", f"{len(changes)} journal entries")
