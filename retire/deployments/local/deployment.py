"""A small real model on this machine: a llama.cpp server of its own, asked like any endpoint."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from retire.deployments.configuration import OpenAIConfiguration
from retire.deployments.local.server import NOT_INSTALLED, PROMPT_CACHE_MIB
from retire.deployments.local.weights import digest_of_file
from retire.deployments.openai_endpoint import OpenAIDeployment
from retire.deployments.port import DeploymentFault
from retire.domain.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.deployments.configuration import LocalConfiguration
    from retire.deployments.port import Call, Completion, Identity
    from retire.prompts import ToolSchema

_READY_SECONDS = 120.0
_STOP_SECONDS = 5.0
_MOST_STARTS = 4
_BYTES_PER_CONTEXT_TOKEN = 64 * 1024
"""Room for one token of context in a model of this size, with the buffers that go with it."""


class LocalDeployment:
    """Starts the server when it is opened, starts it again when it dies, ends it when closed.

    Args:
        configuration: What fixes the answers.
        weights: The GGUF file.
    """

    evidence = Evidence.LIVE_MODEL
    concurrency: int | None = 1

    def __init__(self, configuration: LocalConfiguration, weights: Path) -> None:
        self.name = configuration.name
        self._configuration = configuration
        self._weights = weights
        self._digest: str | None = None
        self._server: asyncio.subprocess.Process | None = None
        self._words: IO[bytes] | None = None
        self._endpoint: OpenAIDeployment | None = None
        self._starts = 0
        # One slot: whoever waits here does not wait within the server's time-out.
        self._turn = asyncio.Lock()

    @property
    def identity(self) -> Identity:
        """The weights by digest, and how they are used."""
        return self._configuration.identity_with(self._weights_digest())

    def _weights_digest(self) -> str:
        if self._digest is None:
            self._digest = digest_of_file(self._weights)
        return self._digest

    async def open(self) -> None:
        """Start the server.

        Raises:
            DeploymentFault: The memory, the processor or the package does not suffice, or the
                weights cannot be used; says which.
        """
        self._check_memory()
        await self._start()

    async def close(self) -> None:
        """End the server."""
        await self._stop()

    async def propose(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema], call: Call
    ) -> Completion:
        """Ask the server, alone; a server that died is started again and asked once more.

        Raises:
            DeploymentFault: No completed answer could be had.
        """
        async with self._turn:
            try:
                return await self._asked(messages, tools, call)
            except DeploymentFault:
                if self._server is not None and self._server.returncode is None:
                    raise
                await self._stop()
                await self._start()
                return await self._asked(messages, tools, call)

    async def _asked(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema], call: Call
    ) -> Completion:
        if self._endpoint is None:
            raise DeploymentFault(f"deployment {self.name} was not opened")
        return await self._endpoint.propose(messages, tools, call)

    def _check_memory(self) -> None:
        wanted = round(self._weights.stat().st_size * 1.5) + PROMPT_CACHE_MIB * 2**20
        wanted += self._configuration.context_tokens * _BYTES_PER_CONTEXT_TOKEN
        free = _available_memory()
        if free is not None and free < wanted:
            raise DeploymentFault(
                f"{self.name}: the model needs about {wanted // 2**20} MiB of memory and "
                f"{free // 2**20} MiB are free: end other programs, or lower context_tokens"
            )

    async def _start(self) -> None:
        if self._starts >= _MOST_STARTS:
            raise DeploymentFault(f"{self.name}: the model's server died {self._starts} times")
        self._starts += 1
        key = secrets.token_urlsafe(24)
        try:
            self._words = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the server
            self._server = await self._spawned(self._words)
            url = await self._ready(self._server, key)
            self._endpoint = OpenAIDeployment(self._asked_as(url), key)
            await self._endpoint.open()
        except BaseException:
            await self._stop()
            raise

    async def _spawned(self, words: IO[bytes]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "retire.deployments.local.server",
            *("--weights", str(self._weights.resolve())),
            *("--alias", f"{self._weights.stem}@{self._weights_digest()[7:19]}"),
            *("--context-tokens", str(self._configuration.context_tokens)),
            *("--threads", str(self._configuration.threads)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=words,
            start_new_session=True,
        )

    async def _ready(self, server: asyncio.subprocess.Process, key: str) -> str:
        if server.stdin is None or server.stdout is None:
            raise DeploymentFault(f"{self.name}: the model's server has no input or output")
        line = b""
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_READY_SECONDS):
                server.stdin.write(f"{key}\n".encode())
                await server.stdin.drain()
                line = await server.stdout.readline()
        try:
            return str(json.loads(line)["url"])
        except (ValueError, KeyError, TypeError):
            raise DeploymentFault(await self._why_not(server)) from None

    async def _why_not(self, server: asyncio.subprocess.Process) -> str:
        """Say why the server did not start, as far as its end tells."""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                code = await server.wait()
        except TimeoutError:
            return f"{self.name}: the model was not loaded within {_READY_SECONDS:.0f} s"
        if code == NOT_INSTALLED:
            return f"{self.name}: llama.cpp is not installed: pip install 'retire[local]'"
        if code == -signal.SIGILL:
            return f"{self.name}: this processor lacks instructions that llama.cpp was built with"
        if code == -signal.SIGKILL:
            return f"{self.name}: the model's server was killed; most often memory ran out"
        return f"{self.name}: the model's server ended with {code}: {self._last_words()}"

    def _last_words(self) -> str:
        if self._words is None:
            return ""
        self._words.seek(0)
        lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
        return " / ".join(line.strip() for line in lines[-3:])[:600]

    def _asked_as(self, url: str) -> OpenAIConfiguration:
        """Return the server as an endpoint; nothing of it but the address is new."""
        given = self._configuration
        return OpenAIConfiguration(
            provider="openai",
            name=given.name,
            base_url=f"{url}/v1",
            model=self._weights.stem,
            sampling=given.sampling,
            output=given.output,
            timeouts=given.timeouts,
            concurrency=1,
            # A server that fails a request of its only client will fail it again.
            retries=1,
            extra_body={"cache_prompt": True},
        )

    async def _stop(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        server, self._server = self._server, None
        if endpoint is not None:
            await endpoint.close()
        if server is not None:
            await _ended(server)
        if self._words is not None:
            self._words.close()
            self._words = None


async def _ended(server: asyncio.subprocess.Process) -> None:
    if server.stdin is not None:
        server.stdin.close()
    with suppress(ProcessLookupError):
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await server.wait()
        except TimeoutError:
            server.kill()
            await server.wait()


def _available_memory() -> int | None:
    """Return bytes that can be had without swapping (Linux, proc(5)); None where unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    text = fields.get("MemAvailable", "").removesuffix("kB").strip()
    return int(text) * 1024 if text.isdigit() else None
