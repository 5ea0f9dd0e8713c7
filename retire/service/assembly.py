"""The service put together: database, keeper, tokens, application."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from retire.domain.errors import IncompleteError, InputError
from retire.service.app import create_app
from retire.service.keeper import RunKeeper
from retire.service.reviewing.library import KeptRuns
from retire.service.settings import KeeperSettings, ServiceSettings, deployment_cards
from retire.service.tokens import Scope, Token
from retire.store.database import migrate, open_database
from retire.store.registry import Registry
from retire.store.writer import in_short

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import FastAPI
    from sqlalchemy import Engine


log = logging.getLogger("retire.service")


def utc_now() -> str:
    """Return the present instant as RFC 3339 text, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251  # the shell's clock


def epoch_seconds() -> int:
    """Return the present instant in whole seconds; leases are counted in them."""
    return int(time.time())  # noqa: TID251  # the shell's clock


def ready_database(url: str) -> Engine:
    """Open a database and bring it to the present schema.

    Raises:
        InputError: It cannot be reached or written.
    """
    try:
        engine = open_database(url)
        migrate(engine)
    except SQLAlchemyError as error:
        raise InputError(
            f"the database cannot be used: {str(getattr(error, 'orig', error)).splitlines()[0]}",
            where="--database",
            mend="Check the address, and that the database runs and can be written",
        ) from error
    return engine


class RegisteredTokens:
    """Implements ``retire.service.tokens.Tokens`` on the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def by_digest(self, digest: str) -> Token | None:
        """Return the token whose secret has this digest, revoked or not.

        Raises:
            IncompleteError: The database does not answer, so nobody can be let in.
        """
        try:
            row = await asyncio.to_thread(self._registry.token_by_digest, digest)
        except SQLAlchemyError as error:
            log.warning("no token can be looked up: %s", in_short(error))
            raise IncompleteError(
                "the service's database does not answer", mend="Try again later"
            ) from error
        if row is None:
            return None
        scopes = frozenset(Scope(name) for name in row.scopes.split())
        return Token(row.id, row.digest, scopes, revoked=bool(row.revoked))


def assemble(
    engine: Engine, keeping: KeeperSettings, settings: ServiceSettings | None = None
) -> FastAPI:
    """Return the application with a keeper that works while the server runs."""
    keeper = RunKeeper(engine, keeping, utc_now, epoch_seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await keeper.start()
        try:
            yield
        finally:
            await keeper.stop()

    tokens = RegisteredTokens(Registry(engine))
    settings = settings or ServiceSettings(deployments=deployment_cards(keeping.catalog))
    if settings.uploads is None:
        settings = replace(settings, uploads=keeping.uploads)
    reviews = KeptRuns(keeper, keeping.data / "runs", engine, keeping.catalog)
    return create_app(keeper, tokens, settings, lifespan=lifespan, reviews=reviews)
