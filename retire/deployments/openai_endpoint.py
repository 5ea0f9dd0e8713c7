"""A model behind an OpenAI-compatible endpoint, behind the runner's protocol.

A request is made again only where no answer was completed. A completed answer is taken whatever
it is: cut off, empty, filtered or broken; asking again would choose among answers.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from retire.deployments.envelope import Reading
from retire.deployments.estimating import prompt_tokens
from retire.deployments.limits import LONGEST_WAIT_SECONDS, RateLimit, Refused, Unanswered, backoff
from retire.deployments.port import Completion, DeploymentFault
from retire.deployments.requesting import name_table, request_body
from retire.domain.errors import InputError
from retire.domain.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from retire.deployments.configuration import OpenAIConfiguration
    from retire.deployments.exchange import Exchange
    from retire.deployments.port import Call, Identity, Served
    from retire.prompts import ToolSchema
    from sink.proposal import RawAnswer

_SILENT_CALLS = 3
"""After so many calls in a row without an answer, each further call is a single try."""
_SHORTEST_SECRET = 8
"""A key shorter than this may be an everyday word; longer ones never stand in a stored answer."""


@dataclass(frozen=True, slots=True)
class Clockwork:
    """Time and chance, as arguments.

    Attributes:
        clock: Seconds that never run backwards.
        sleep: Waits for so many seconds.
        jitter: A number from 0 to 1.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = secrets.SystemRandom().random


class EndpointFault(DeploymentFault):
    """No completed answer could be had; ``tries`` requests were made for it."""

    def __init__(self, why: str, tries: int) -> None:
        super().__init__(why)
        self.tries = tries


class OpenAIDeployment:
    """Asks one endpoint.

    Args:
        configuration: What fixes the answers, and how fast the endpoint may be asked.
        key: The key, if the endpoint wants one; it is never printed, logged or stored.
        clockwork: Time and chance.
    """

    def __init__(
        self,
        configuration: OpenAIConfiguration,
        key: str | None = None,
        clockwork: Clockwork | None = None,
    ) -> None:
        self._configuration = configuration
        self._key = SecretStr(key) if key else None
        self._clockwork = clockwork or Clockwork()
        self._exchange: Exchange | None = None
        self._silent_calls = 0
        self._limit = RateLimit(
            configuration.concurrency,
            configuration.requests_per_minute,
            configuration.tokens_per_minute,
            self._clockwork.clock,
            self._clockwork.sleep,
        )

    def __repr__(self) -> str:
        return f"OpenAIDeployment({self.name!r})"

    @property
    def name(self) -> str:
        """The configured name."""
        return self._configuration.name

    @property
    def identity(self) -> Identity:
        """What of the configuration fixes the answers."""
        return self._configuration.identity

    @property
    def evidence(self) -> Evidence:
        """A live model."""
        return Evidence.LIVE_MODEL

    @property
    def concurrency(self) -> int | None:
        """The configured number of calls at once."""
        return self._configuration.concurrency

    async def open(self) -> None:
        """Load the library and make the pool; connects to nothing.

        Raises:
            DeploymentFault: The library is not installed.
        """
        if self._exchange is not None:
            return
        try:
            # It takes most of a second to load, which other commands need not wait for.
            from retire.deployments.exchange import Exchange  # noqa: PLC0415
        except ImportError as error:
            raise DeploymentFault(
                f"deployment {self.name} needs the package {error.name}: install retire[models]"
            ) from error
        self._exchange = Exchange(self._configuration, self._key)

    async def close(self) -> None:
        """Close every connection."""
        if self._exchange is not None:
            exchange, self._exchange = self._exchange, None
            await exchange.close()

    def check_tools(self, tools: Sequence[ToolSchema]) -> None:
        """Check that the tools of a bundle can be told apart under the names that are sent.

        Raises:
            InputError: Two would be sent under one name.
        """
        if self._configuration.output == "tools":
            name_table(tools)

    async def propose(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema], call: Call
    ) -> Completion:
        """Ask until one answer is completed, within the configured number of tries.

        Raises:
            DeploymentFault: None was, or the endpoint refuses the request.
        """
        if self._exchange is None:
            raise DeploymentFault(f"deployment {self.name} was not opened")
        try:
            body = request_body(self._configuration, messages, tools, call.seed)
            reading = self._reading(tools)
        except InputError as error:
            raise DeploymentFault(str(error)) from error
        worst = 0
        if self._configuration.tokens_per_minute is not None:
            worst = prompt_tokens(messages, tools) + self._configuration.sampling.max_tokens
        return await self._ask(self._exchange, body, reading, worst)

    def _reading(self, tools: Sequence[ToolSchema]) -> Reading:
        asked_with_tools = self._configuration.output == "tools"
        return Reading(
            mode="tools" if asked_with_tools else "json",
            max_tokens=self._configuration.sampling.max_tokens,
            object_arguments=self._configuration.tool_arguments == "object",
            names=name_table(tools) if asked_with_tools else {},
        )

    async def _ask(
        self, exchange: Exchange, body: dict[str, object], reading: Reading, worst: int
    ) -> Completion:
        most = 1 if self._silent_calls >= _SILENT_CALLS else self._configuration.retries + 1
        tries = 0
        while True:
            tries += 1
            try:
                async with self._limit.admitted(worst) as admission:
                    began = self._clockwork.clock()
                    answer, served = await exchange.ask(body, reading)
                    milliseconds = round((self._clockwork.clock() - began) * 1000)
                    if served.prompt_tokens is not None and served.completion_tokens is not None:
                        admission.tokens = served.prompt_tokens + served.completion_tokens
            except Refused as refused:
                raise EndpointFault(f"{self.name}: {refused}", tries) from None
            except Unanswered as unanswered:
                await self._wait(unanswered, tries, most)
                continue
            self._silent_calls = 0
            if self._repeats_the_key(answer, served):
                raise EndpointFault(
                    f"{self.name}: the server sent the key back in its answer, which cannot be "
                    "stored",
                    tries,
                )
            timed = {"milliseconds": milliseconds, "tries": tries}
            return Completion(answer, served.model_copy(update=timed))

    async def _wait(self, fault: Unanswered, tries: int, most: int) -> None:
        wait = backoff(tries, self._clockwork.jitter()) if fault.wait is None else fault.wait
        if fault.pause and fault.wait is not None:
            self._limit.hold(min(wait, LONGEST_WAIT_SECONDS))
        if tries >= most:
            self._silent_calls += 1
            again = "try" if tries == 1 else "tries"
            raise EndpointFault(f"{self.name}: {fault} ({tries} {again})", tries) from None
        if wait > LONGEST_WAIT_SECONDS:
            raise EndpointFault(
                f"{self.name}: {fault}; the server asks to wait {wait:.0f} s, more than "
                f"{LONGEST_WAIT_SECONDS:.0f} s: run the same command again later",
                tries,
            ) from None
        await self._clockwork.sleep(wait)

    def _repeats_the_key(self, answer: RawAnswer, served: Served) -> bool:
        key = self._key.get_secret_value() if self._key is not None else ""
        calls = [part for it in answer.tool_calls for part in (it.id, it.name, it.arguments)]
        texts = [answer.text, answer.finish_reason, *calls]
        texts += [served.model, served.fingerprint, served.reasoning]
        return len(key) >= _SHORTEST_SECRET and any(key in (text or "") for text in texts)
