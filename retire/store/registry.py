"""The service's registry of runs and tokens, on SQLite or PostgreSQL.

Plain synchronous calls; the service runs them in threads. Time comes in as an argument. A run is
worked on by the server that holds its lease; a lease that ran out may be taken by another.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from retire.store.registry_tables import KEYS, RUNS, TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Engine, Row

OPEN_STATES = ("queued", "running")


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to queue."""

    id: str
    owner: str
    plan_digest: str
    request: Mapping[str, Any]
    bundle: str
    deployment: str
    placement: str
    cells_planned: int
    created_at: str


class RepeatedKeyError(Exception):
    """The idempotency key was used before; ``run`` is the run it belongs to.

    ``same`` says whether the submission was the same one.
    """

    def __init__(self, run: str, *, same: bool) -> None:
        super().__init__(run)
        self.run = run
        self.same = same


class Registry:
    """Runs and tokens of one service."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- runs ------------------------------------------------------------------------------

    def add(self, run: NewRun, key: tuple[str, str] | None) -> None:
        """Queue a run; ``key`` is (idempotency key, digest of the submission).

        Raises:
            RepeatedKeyError: The owner used this key before.
        """
        try:
            with self._engine.begin() as connection:
                if key is not None:
                    connection.execute(
                        insert(KEYS),
                        {"owner": run.owner, "key": key[0], "submission": key[1], "run": run.id},
                    )
                last = connection.execute(select(func.max(RUNS.c.number))).scalar() or 0
                connection.execute(
                    insert(RUNS),
                    {
                        "id": run.id,
                        "number": last + 1,
                        "owner": run.owner,
                        "state": "queued",
                        "plan_digest": run.plan_digest,
                        "request": json.dumps(run.request),
                        "bundle": run.bundle,
                        "deployment": run.deployment,
                        "placement": run.placement,
                        "cells_planned": run.cells_planned,
                        "created_at": run.created_at,
                    },
                )
        except IntegrityError:
            if key is not None:
                self._raise_if_repeated(run.owner, key)
            # Two runs were queued at once and took the same number: the next try takes another.
            self.add(run, key)

    def _raise_if_repeated(self, owner: str, key: tuple[str, str]) -> None:
        query = select(KEYS).where(KEYS.c.owner == owner, KEYS.c.key == key[0])
        with self._engine.connect() as connection:
            found = connection.execute(query).first()
        if found is not None:
            raise RepeatedKeyError(found.run, same=found.submission == key[1])

    def used_key(self, owner: str, key: tuple[str, str]) -> None:
        """Raise RepeatedKeyError if the owner used this idempotency key before."""
        self._raise_if_repeated(owner, key)

    def run(self, run: str) -> Row[Any] | None:
        """Return a run's row, or None."""
        with self._engine.connect() as connection:
            return connection.execute(select(RUNS).where(RUNS.c.id == run)).first()

    def runs(self, owner: str | None, before: str | None, limit: int) -> Sequence[Row[Any]]:
        """Return runs, newest first, older than the run ``before``."""
        query = select(RUNS).order_by(RUNS.c.number.desc()).limit(limit)
        if owner is not None:
            query = query.where(RUNS.c.owner == owner)
        if before is not None:
            number = select(RUNS.c.number).where(RUNS.c.id == before).scalar_subquery()
            query = query.where(RUNS.c.number < number)
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def by_plan(self, plan_digest: str) -> Sequence[Row[Any]]:
        """Return the runs of a plan, newest first."""
        query = select(RUNS).where(RUNS.c.plan_digest == plan_digest).order_by(RUNS.c.number.desc())
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def change(self, run: str, values: Mapping[str, Any]) -> None:
        """Set columns of a run."""
        with self._engine.begin() as connection:
            connection.execute(update(RUNS).where(RUNS.c.id == run).values(dict(values)))

    def ask_to_cancel(self, run: str, now: str) -> None:
        """Mark a run as to be cancelled; one that nobody works on is cancelled at once."""
        with self._engine.begin() as connection:
            connection.execute(update(RUNS).where(RUNS.c.id == run).values(cancel=1))
            connection.execute(
                update(RUNS)
                .where(RUNS.c.id == run, RUNS.c.state == "queued")
                .values(state="cancelled", ended_at=now)
            )

    # -- leases ----------------------------------------------------------------------------

    def claim(self, server: str, now: int, seconds: int) -> str | None:
        """Take the oldest run that nobody works on; returns its id, or None.

        The update names what it expects to find, so of two servers that choose the same run
        exactly one changes a row.
        """
        free = or_(RUNS.c.lease_until.is_(None), RUNS.c.lease_until < now)
        query = (
            select(RUNS.c.id, RUNS.c.lease_owner, RUNS.c.lease_until)
            .where(RUNS.c.state.in_(OPEN_STATES), free)
            .order_by(RUNS.c.number)
            .limit(8)
        )
        with self._engine.connect() as connection:
            candidates = connection.execute(query).all()
        for row in candidates:
            expected = and_(
                RUNS.c.id == row.id,
                RUNS.c.state.in_(OPEN_STATES),
                RUNS.c.lease_until.is_(None)
                if row.lease_until is None
                else and_(
                    RUNS.c.lease_until == row.lease_until,
                    RUNS.c.lease_owner == row.lease_owner,
                ),
            )
            values = {"lease_owner": server, "lease_until": now + seconds, "state": "running"}
            with self._engine.begin() as connection:
                changed = connection.execute(update(RUNS).where(expected).values(values))
                if changed.rowcount == 1:
                    return str(row.id)
        return None

    def renew(self, run: str, server: str, until: int) -> bool:
        """Extend a lease; False if it is no longer held or the run is to be cancelled."""
        with self._engine.begin() as connection:
            changed = connection.execute(
                update(RUNS)
                .where(RUNS.c.id == run, RUNS.c.lease_owner == server, RUNS.c.cancel == 0)
                .values(lease_until=until)
            )
            return changed.rowcount == 1

    def release(self, run: str, server: str, values: Mapping[str, Any]) -> bool:
        """End the work on a run, setting columns; False if the lease was lost meanwhile."""
        with self._engine.begin() as connection:
            changed = connection.execute(
                update(RUNS)
                .where(RUNS.c.id == run, RUNS.c.lease_owner == server)
                .values({**values, "lease_owner": None, "lease_until": None})
            )
            return changed.rowcount == 1

    # -- tokens ----------------------------------------------------------------------------

    def add_token(self, token: str, digest: str, scopes: str, now: str) -> None:
        """Store a token by the digest of its secret."""
        with self._engine.begin() as connection:
            connection.execute(
                insert(TOKENS),
                {"id": token, "digest": digest, "scopes": scopes, "created_at": now},
            )

    def token_by_digest(self, digest: str) -> Row[Any] | None:
        """Return a token's row, or None."""
        with self._engine.connect() as connection:
            return connection.execute(select(TOKENS).where(TOKENS.c.digest == digest)).first()

    def tokens(self) -> Sequence[Row[Any]]:
        """Return all tokens, oldest first."""
        with self._engine.connect() as connection:
            return connection.execute(select(TOKENS).order_by(TOKENS.c.created_at)).all()

    def revoke(self, token: str) -> bool:
        """Revoke a token; False if there is none."""
        with self._engine.begin() as connection:
            changed = connection.execute(
                update(TOKENS).where(TOKENS.c.id == token).values(revoked=1)
            )
            return changed.rowcount == 1
