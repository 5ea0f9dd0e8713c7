"""Requests to Home Assistant. The one place that uses the library ``homeassistant-api``.

The library is licensed GPL-3.0-or-later and comes with the extra ``homeassistant``; it is
imported when a client is made. Of its ways to call a service only ``trigger_service`` is used:
the others act and may raise afterwards.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from hardware.homeassistant.errors import (
    DEADLINE_SECONDS,
    FailedError,
    HomeAssistantError,
    RefusedError,
    UnauthorizedError,
    UnreachableError,
)
from hardware.homeassistant.reading import Configuration, EntityState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from homeassistant_api import AsyncClient, State

__all__ = [
    "FailedError",
    "HomeAssistantClient",
    "HomeAssistantError",
    "RefusedError",
    "UnauthorizedError",
    "UnreachableError",
]

_Answer = TypeVar("_Answer")


class HomeAssistantClient:
    """Reads states and calls services with one token.

    Args:
        url: Address without a path, for example ``http://127.0.0.1:8123``.
        token: A long-lived access token.
        deadline_seconds: For one request.
    """

    def __init__(self, url: str, token: str, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._deadline = deadline_seconds
        self._client = _new_client(url, token, deadline_seconds)

    async def states(self) -> dict[str, EntityState]:
        """Return every state that the token may see, by entity id, as of one moment.

        Raises:
            HomeAssistantError: Nothing usable came back.
        """
        found = await self._asked(self._client.get_states())
        return {item.entity_id: _state(item) for item in found}

    async def config(self) -> Configuration:
        """Return how the instance is configured.

        Raises:
            HomeAssistantError: Nothing usable came back.
        """
        found = await self._asked(self._client.get_config())
        try:
            return Configuration.model_validate(found)
        except ValidationError as error:
            raise FailedError("the configuration has another form") from error

    async def call(self, service: str, data: Mapping[str, object]) -> None:
        """Call a service once; what comes back is thrown away, since it proves nothing.

        Raises:
            RefusedError: It was not carried out.
            UnauthorizedError: It was not carried out.
            HomeAssistantError: It may or may not have been carried out.
        """
        domain, _, name = service.partition(".")
        await self._asked(self._client.trigger_service(domain, name, **data))

    async def close(self) -> None:
        """End the connections."""
        await self._client.__aexit__(None, None, None)

    async def _asked(self, question: Awaitable[_Answer]) -> _Answer:
        import homeassistant_api.errors as theirs  # noqa: PLC0415  # the extra may be missing
        from niquests.exceptions import (  # noqa: PLC0415  # comes with it
            RequestException,
            TooManyRedirects,
        )

        try:
            async with asyncio.timeout(self._deadline):
                return await question
        except theirs.UnauthorizedError as error:
            raise UnauthorizedError("the token was refused (401)") from error
        except (theirs.RequestTimeoutError, TimeoutError) as error:
            raise UnreachableError(f"no answer within {self._deadline:g} seconds") from error
        except theirs.RequestError as error:
            raise RefusedError("the request does not fit (400)") from error
        except theirs.EndpointNotFoundError as error:
            raise RefusedError("there is no such thing (404)") from error
        except theirs.UnexpectedStatusCodeError as error:
            raise _unexpected(str(error)) from error
        except (theirs.HomeassistantAPIError, TypeError, ValueError) as error:
            raise FailedError(f"unusable answer: {type(error).__name__}") from error
        except TooManyRedirects as error:
            raise FailedError("it redirects elsewhere; that is not followed") from error
        except (RequestException, OSError) as error:
            raise UnreachableError(type(error).__name__) from error


def _unexpected(text: str) -> HomeAssistantError:
    if "403" in text:
        return UnauthorizedError("the token may not do this (403)")
    return FailedError(text)


def _new_client(url: str, token: str, deadline_seconds: float) -> AsyncClient:
    try:
        from homeassistant_api import AsyncClient  # noqa: PLC0415  # the extra may be missing
        from niquests import AsyncSession  # noqa: PLC0415  # comes with it
    except ImportError as error:
        raise HomeAssistantError(
            "Home Assistant needs the extra 'homeassistant': pip install 'retire[homeassistant]'"
        ) from error
    # One connection per request: a connection that the other side has closed meanwhile would
    # make it unknown whether a call arrived. No retries: a call is sent once.
    session = AsyncSession(retries=0, timeout=deadline_seconds, headers={"Connection": "close"})
    # The token and the call go to this address alone: through no proxy that the environment
    # names, and to no place that an answer names.
    session.trust_env = False
    session.max_redirects = 0
    return AsyncClient(f"{url}/api", token, session=session)


def _state(found: State) -> EntityState:
    # The library fills in the current time where Home Assistant sent none: what was not sent is
    # not believed.
    given = found.model_fields_set
    context = found.context
    return EntityState(
        found.entity_id,
        found.state,
        found.attributes,
        found.last_updated if "last_updated" in given else None,
        found.last_reported if "last_reported" in given else None,
        by_call=context is not None and bool(context.user_id or context.parent_id),
    )
