"""The preflight of a bench: is everything there, and if not, what is missing and how to mend it.

It holds the observer's read-only token. It reads the configuration, one state and two stills; it
opens no stream and calls no service.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from hardware.bench.instance import read_token
from hardware.homeassistant.client import (
    HomeAssistantClient,
    HomeAssistantError,
    UnauthorizedError,
    UnreachableError,
)
from hardware.sense.jpeg import Unusable, examine
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hardware.bench.instance import Instance

_SECONDS = 8.0
_STILL_BYTES = 8_388_608
_PAUSE = 0.4
"""Between two stills: a live view has moved on by then."""
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was looked at. ``mend`` is empty where it was found in order."""

    name: str
    found: str
    mend: str = ""

    @property
    def fine(self) -> bool:
        """Whether the bench can be used as far as this step goes."""
        return not self.mend


class _Missing(Exception):
    """Ends the preflight: what is missing, and the fix."""

    def __init__(self, found: str, mend: str) -> None:
        super().__init__(found)
        self.found = found
        self.mend = mend


async def preflight(instance: Instance) -> list[Step]:
    """Look at address, tokens, entity and live view, in this order, up to the first that fails."""
    steps: list[Step] = []
    try:
        token = _tokens(instance)
        steps.append(Step("token files", "both can be read by this user alone"))
        client = HomeAssistantClient(instance.url, token, _SECONDS)
    except _Missing as missing:
        return [Step("token files", missing.found, missing.mend)]
    except HomeAssistantError as error:
        return [Step("software", str(error), "Install the extra and run the same command again")]
    looks: list[tuple[str, Callable[[], Awaitable[str]]]] = [
        ("address and token", lambda: _running(client)),
        ("entity", lambda: _entity(client, instance)),
        ("live view", lambda: _live(instance, token)),
    ]
    try:
        for name, look in looks:
            try:
                steps.append(Step(name, await look()))
            except _Missing as missing:
                steps.append(Step(name, missing.found, missing.mend))
                break
    finally:
        await client.close()
    return steps


def _tokens(instance: Instance) -> str:
    """Check both token files; returns the observer's secret alone."""
    try:
        acting = read_token(instance.sink_token)
        reading = read_token(instance.observer_token)
    except DocumentError as error:
        raise _Missing(f"{error.where}: {error.message}", error.mend) from error
    if acting == reading:
        raise _Missing(
            "the acting programs and the observer have the same token",
            "Make a second user in Home Assistant, member of the read-only group, with its own",
        )
    return reading


async def _running(client: HomeAssistantClient) -> str:
    try:
        config = await client.config()
    except UnauthorizedError as error:
        raise _Missing(
            f"Home Assistant answers, and {error}",
            "Write a long-lived token of the observer's user into its file; it is on the page of "
            "the user in Home Assistant, under Security",
        ) from error
    except UnreachableError as error:
        raise _Missing(
            f"no Home Assistant answers at this address ({error})",
            "Start it, or correct the address; http://HOST:8123 is usual",
        ) from error
    except HomeAssistantError as error:
        raise _Missing(
            f"something answers that is not Home Assistant ({error})", "Correct the address"
        ) from error
    if config.state != "RUNNING":
        raise _Missing(f"Home Assistant is {config.state}", "Wait until it has started")
    return f"Home Assistant {config.version} is running and accepts the token"


async def _entity(client: HomeAssistantClient, instance: Instance) -> str:
    try:
        states = await client.states()
    except HomeAssistantError as error:
        raise _Missing(f"the states cannot be read ({error})", "Look at its log") from error
    cameras = sorted(key for key in states if key.startswith("camera."))
    found = states.get(instance.entity)
    if found is None:
        known = ", ".join(cameras) or "none"
        raise _Missing(f"there is no {instance.entity}", f"Name one of the cameras it has: {known}")
    if found.state in {"unavailable", "unknown", "off"}:
        raise _Missing(
            f"{instance.entity} is {found.state}",
            "Switch the camera on and look at its integration in Home Assistant",
        )
    return f"{instance.entity} is {found.state}"


async def _live(instance: Instance, token: str) -> str:
    """Read stills until two differ; a healthy state says nothing about a view."""
    path = f"/api/camera_proxy/{instance.entity}"
    seen: set[str] = set()
    size = ""
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for _ in range(_TRIES):
            picture = examine(await _still(session, instance.url + path, token))
            if isinstance(picture, Unusable):
                raise _Missing(
                    f"the camera's still is no picture: {picture.fault}",
                    "Open the camera in Home Assistant; it passes on whatever the device sends",
                )
            size = f"{picture.width} x {picture.height}"
            if picture.sha256 not in instance.placeholders:
                seen.add(picture.sha256)
            if len(seen) > 1:
                return f"two different pictures of {size}"
            await asyncio.sleep(_PAUSE)
    found = "the same picture at every look" if seen else "a known placeholder at every look"
    raise _Missing(
        f"no live view: {found}",
        "Check that the camera runs and that something moves in its view",
    )


async def _still(session: aiohttp.ClientSession, url: str, token: str) -> bytes:
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with session.get(url, headers=headers, allow_redirects=False) as response:
            if response.status != 200:
                raise _Missing(
                    f"the camera's still answers {response.status}",
                    "Check that the device is on and that Home Assistant reaches it",
                )
            return await response.content.read(_STILL_BYTES)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _Missing(
            f"the camera's still does not come ({type(error).__name__})",
            "Check that the device is on and that Home Assistant reaches it",
        ) from error
