"""The service's registry of runs and tokens, on SQLite or PostgreSQL.

Plain synchronous calls; the service runs them in threads. Time comes in as an argument. A run is
worked on by the server that holds its lease; a lease that ran out may be taken by another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import and_, func, insert, or_, select, true, update
from sqlalchemy.exc import IntegrityError

from retire.domain.run_state import OPEN_STATES, RunState
from retire.store.database import NUMBER_LOCK, take_turns, writing
from retire.store.registry_tables import KEYS, RUNS, TOKENS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Column, Connection, Engine, Row

Columns: TypeAlias = Mapping[str, str | int | None]
"""Values of a run's columns, by name."""


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to queue; ``request`` is the JSON of what was asked for."""

    id: str
    owner: str
    plan_digest: str
    request: str
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


_LISTED = (
    *(column for column in RUNS.c if column.name not in {"request", "certificate"}),
    RUNS.c.certificate.is_not(None).label("certified"),
)
"""What a list shows; request and certificate are large."""


def hold(connection: Connection, run: str, lease: str) -> bool:
    """Whether a lease is held; it cannot be taken by another before this transaction ends."""
    held = and_(RUNS.c.id == run, RUNS.c.lease_owner == lease)
    # An update that changes nothing: it locks the row, where a read would not.
    return connection.execute(update(RUNS).where(held).values(lease_owner=lease)).rowcount == 1


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
            with writing(self._engine) as connection:
                if key is not None:
                    connection.execute(
                        insert(KEYS),
                        {"owner": run.owner, "key": key[0], "submission": key[1], "run": run.id},
                    )
                take_turns(connection, NUMBER_LOCK)
                last = connection.execute(select(func.max(RUNS.c.number))).scalar() or 0
                row = {**asdict(run), "number": last + 1, "state": RunState.QUEUED}
                connection.execute(insert(RUNS), row)
        except IntegrityError:
            if key is not None:
                self._raise_if_repeated(run.owner, key)
            raise

    def _raise_if_repeated(self, owner: str, key: tuple[str, str]) -> None:
        query = select(KEYS).where(KEYS.c.owner == owner, KEYS.c.key == key[0])
        with self._engine.connect() as connection:
            found = connection.execute(query).first()
        if found is not None:
            raise RepeatedKeyError(found.run, same=found.submission == key[1])

    def used_key(self, owner: str, key: tuple[str, str]) -> None:
        """Raise RepeatedKeyError if the owner used this idempotency key before."""
        self._raise_if_repeated(owner, key)

    def run(self, run: str) -> Row[tuple[object, ...]] | None:
        """Return a run's row without its request and certificate, or None."""
        with self._engine.connect() as connection:
            return connection.execute(select(*_LISTED).where(RUNS.c.id == run)).first()

    def runs(
        self, owner: str | None, before: str | None, limit: int
    ) -> Sequence[Row[tuple[object, ...]]]:
        """Return runs, newest first, older than the run ``before``.

        Raises:
            KeyError: The owner has no run ``before``.
        """
        query = select(*_LISTED).order_by(RUNS.c.number.desc()).limit(limit)
        own = true() if owner is None else RUNS.c.owner == owner
        with self._engine.connect() as connection:
            if before is not None:
                place = select(RUNS.c.number).where(RUNS.c.id == before, own)
                number = connection.execute(place).scalar()
                if number is None:
                    raise KeyError(before)
                query = query.where(RUNS.c.number < number)
            return connection.execute(query.where(own)).all()

    def request(self, run: str) -> str:
        """Return the JSON of what was asked for; raises KeyError where there is no such run."""
        return self._one(RUNS.c.request, run)

    def certificate(self, run: str) -> str:
        """Return the JSON of a run's signed certificate; raises KeyError where there is none."""
        return self._one(RUNS.c.certificate, run)

    def _one(self, column: Column[str], run: str) -> str:
        with self._engine.connect() as connection:
            found: str | None = connection.execute(select(column).where(RUNS.c.id == run)).scalar()
        if found is None:
            raise KeyError(run)
        return found

    def by_plan(self, plan_digest: str) -> Sequence[str]:
        """Return the ids of the runs of a plan, newest first."""
        query = (
            select(RUNS.c.id)
            .where(RUNS.c.plan_digest == plan_digest)
            .order_by(RUNS.c.number.desc())
        )
        with self._engine.connect() as connection:
            return connection.execute(query).scalars().all()

    def ask_to_cancel(self, run: str, now: str) -> None:
        """Mark a run as to be cancelled; one that nobody works on is cancelled at once."""
        with writing(self._engine) as connection:
            connection.execute(
                update(RUNS).where(RUNS.c.id == run, RUNS.c.state.in_(OPEN_STATES)).values(cancel=1)
            )
            connection.execute(
                update(RUNS)
                .where(RUNS.c.id == run, RUNS.c.state == RunState.QUEUED)
                .values(state="cancelled", ended_at=now)
            )

    # -- leases ----------------------------------------------------------------------------

    def claim(self, lease: str, now: int, seconds: int, held: Collection[str] = ()) -> str | None:
        """Take the oldest run that nobody works on; returns its id, or None.

        The update names what it expects to find, so of two servers that choose the same run
        exactly one changes a row.

        Args:
            lease: A new name for each claim: who lost a run must not pass for who took it.
            now: Seconds since the epoch.
            seconds: How long the lease lasts unless renewed.
            held: Runs that the caller still carries, its lease run out or not.
        """
        free = or_(RUNS.c.lease_until.is_(None), RUNS.c.lease_until < now)
        query = (
            select(RUNS.c.id, RUNS.c.lease_owner, RUNS.c.lease_until)
            .where(RUNS.c.state.in_(OPEN_STATES), free, RUNS.c.id.not_in(held))
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
            values = {"lease_owner": lease, "lease_until": now + seconds, "state": RunState.RUNNING}
            with writing(self._engine) as connection:
                changed = connection.execute(update(RUNS).where(expected).values(values))
                if changed.rowcount == 1:
                    return str(row.id)
        return None

    def renew(self, run: str, lease: str, until: int, values: Columns | None = None) -> bool:
        """Extend a lease and set columns; False if it was lost or the run is to be cancelled."""
        with writing(self._engine) as connection:
            changed = connection.execute(
                update(RUNS)
                .where(RUNS.c.id == run, RUNS.c.lease_owner == lease, RUNS.c.cancel == 0)
                .values({**(values or {}), "lease_until": until})
            )
            return changed.rowcount == 1

    def release(self, run: str, lease: str, values: Columns) -> bool:
        """End the work on a run, setting columns; False if the lease was lost meanwhile."""
        with writing(self._engine) as connection:
            changed = connection.execute(
                update(RUNS)
                .where(RUNS.c.id == run, RUNS.c.lease_owner == lease)
                .values({**values, "lease_owner": None, "lease_until": None})
            )
            return changed.rowcount == 1

    def let_go(self, server: str) -> None:
        """Give back every lease whose name begins with a server's; the runs are free at once."""
        with writing(self._engine) as connection:
            connection.execute(
                update(RUNS)
                .where(RUNS.c.lease_owner.startswith(server, autoescape=True))
                .values(lease_owner=None, lease_until=None)
            )

    # -- tokens ----------------------------------------------------------------------------

    def add_token(self, token: str, digest: str, scopes: str, now: str) -> None:
        """Store a token by the digest of its secret."""
        with writing(self._engine) as connection:
            connection.execute(
                insert(TOKENS),
                {"id": token, "digest": digest, "scopes": scopes, "created_at": now},
            )

    def token_by_digest(self, digest: str) -> Row[tuple[object, ...]] | None:
        """Return a token's row, or None."""
        with self._engine.connect() as connection:
            return connection.execute(select(TOKENS).where(TOKENS.c.digest == digest)).first()

    def tokens(self) -> Sequence[Row[tuple[object, ...]]]:
        """Return all tokens, oldest first."""
        with self._engine.connect() as connection:
            return connection.execute(select(TOKENS).order_by(TOKENS.c.created_at)).all()

    def revoke(self, token: str) -> bool:
        """Revoke a token; False if there is none."""
        with writing(self._engine) as connection:
            changed = connection.execute(
                update(TOKENS).where(TOKENS.c.id == token).values(revoked=1)
            )
            return changed.rowcount == 1
