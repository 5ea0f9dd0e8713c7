"""Taking submissions in: the plan is fixed, the files are kept, and the run is queued."""

from __future__ import annotations

import json
import secrets
import shutil
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from retire.domain.errors import RetireError
from retire.service.debris import arriving, under_way
from retire.service.port import ConflictError, RunRow, Submission
from retire.service.stored import keep_submitted, prepare_stored, submission_digest
from retire.store.registry import NewRun, Registry, RepeatedKeyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Row

    from retire.service.settings import KeeperSettings
    from retire.service.shelf import Shelf


class RunQueue:
    """Queues runs, and says what the registry holds of one. Blocks on files and database.

    Args:
        registry: Where runs are queued.
        settings: What the operator configured.
        shelf: The registered bundles.
        now: The present instant as text.
    """

    def __init__(
        self,
        registry: Registry,
        settings: KeeperSettings,
        shelf: Shelf,
        now: Callable[[], str],
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._shelf = shelf
        self._now = now

    def submit(
        self, submission: Submission, owner: str, idempotency_key: str | None
    ) -> tuple[RunRow, bool]:
        """Fix the plan and queue the run; returns it, and whether it is new.

        Raises:
            ConflictError: The key was used for another submission.
            InputError: A bundle, the candidate or the deployment cannot be used.
        """
        run = secrets.token_hex(16)
        source = submission.folder or self._shelf.folder(str(submission.bundle))
        place = self._settings.place(run)
        with under_way(self._settings.data):
            try:
                with arriving(place):
                    row, new = self._queue(run, place, source, submission, owner, idempotency_key)
            except (RetireError, ConflictError, SQLAlchemyError):
                shutil.rmtree(place, ignore_errors=True)
                raise
            if not new:
                shutil.rmtree(place, ignore_errors=True)
            return row, new

    def _queue(
        self,
        run: str,
        place: Path,
        source: Path,
        submission: Submission,
        owner: str,
        idempotency_key: str | None,
    ) -> tuple[RunRow, bool]:
        key = None
        if idempotency_key is not None:
            key = (idempotency_key, submission_digest(submission, source))
            repeated = self._repeated(owner, key)
            if repeated is not None:
                return repeated, False
        request = keep_submitted(submission, source, place)
        prepared = prepare_stored(
            request, place, self._settings.concurrency, self._settings.catalog
        )
        row = NewRun(
            id=run,
            owner=owner,
            plan_digest=prepared.plan.digest,
            request=request.model_dump_json(by_alias=True),
            bundle=next(iter(prepared.bundles)),
            deployment=submission.deployment,
            placement=submission.placement,
            cells_planned=len(prepared.plan.cells),
            created_at=self._now(),
        )
        try:
            self._registry.add(row, key)
        except RepeatedKeyError:
            found = self._repeated(owner, key) if key is not None else None
            if found is None:
                raise
            return found, False
        return self.row(run, owner), True

    def _repeated(self, owner: str, key: tuple[str, str]) -> RunRow | None:
        try:
            self._registry.used_key(owner, key)
        except RepeatedKeyError as error:
            if not error.same:
                raise ConflictError(
                    f"the idempotency key was used for another submission (run {error.run})"
                ) from error
            return self.row(error.run, owner)
        return None

    def row(self, run: str, owner: str | None) -> RunRow:
        """Return one run; raises KeyError where there is none that ``owner`` may see."""
        row = self._registry.run(run)
        if row is None or (owner is not None and row.owner != owner):
            raise KeyError(run)
        return run_row(row)


def run_row(row: Row[Any]) -> RunRow:
    """Return a run as the port gives it, from its row of the registry."""
    values = row._asdict() | {
        "stages": json.loads(row.stages),
        "certificate": row.id if row.certified else None,
    }
    return RunRow.model_validate({name: values[name] for name in RunRow.model_fields})
