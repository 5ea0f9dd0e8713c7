"""A scripted OpenAI-compatible endpoint on loopback, which can misbehave on the wire.

``ScriptedEndpoint(answers)`` listens on a free port in a thread of its own, so it serves tests
that await, tests that do not, and other processes. ``answers`` is asked once per request and
returns what to send: a :class:`Turn`, which is streamed or not as the request asks, or a
:class:`Reply`, which is bytes. ``python -m tests.integration.scripted_endpoint`` serves one fixed
answer from a process of its own and prints its address.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from retire.deployments.simulated.profiles import PROFILES
from retire.deployments.simulated.reader import propose

MODEL = "scripted-1"


@dataclass(frozen=True)
class Request:
    """One request as it came; ``number`` counts from 1 over the endpoint's life."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))


@dataclass(frozen=True)
class Reply:
    """Bytes to send. A number among the pieces is a pause in seconds.

    ``cut`` breaks the connection before the promised end of the body.
    """

    pieces: tuple[bytes | float, ...]
    status: int = 200
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Turn:
    """One completed turn; ``calls`` are (id, name, arguments)."""

    content: str | None = None
    calls: Sequence[tuple[str, str, Any]] = ()
    finish: str | None = "stop"
    tokens: int | None = 20
    model: str = MODEL
    fingerprint: str | None = "fp_scripted"
    message: Mapping[str, Any] = field(default_factory=dict)

    def reply(self, *, streamed: bool) -> Reply:
        if streamed:
            pieces = tuple(event(chunk) for chunk in self.chunks())
            return Reply((*pieces, b"data: [DONE]\n\n"), kind="text/event-stream")
        return Reply((json.dumps(self.whole()).encode(),))

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.content, **self.message}
        if self.calls:
            message["tool_calls"] = [
                {"id": given, "type": "function", "function": {"name": name, "arguments": args}}
                for given, name, args in self.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": self._usage()}

    def chunks(self) -> Iterator[dict[str, Any]]:
        yield self._chunk({"role": "assistant", "content": None})
        for key, value in self.message.items():
            yield self._chunk({key: value})
        if self.content is not None:
            for piece in pieces_of(self.content) or [""]:
                yield self._chunk({"content": piece})
        for index, (given, name, args) in enumerate(self.calls):
            head = {"name": name, "arguments": "" if isinstance(args, str) else args}
            yield self._call(index, id=given, type="function", function=head)
            for piece in pieces_of(args) if isinstance(args, str) else []:
                yield self._call(index, function={"arguments": piece})
        yield self._chunk({}, self.finish)
        yield {**self._frame("chat.completion.chunk"), "choices": [], "usage": self._usage()}

    def _call(self, index: int, **given: Any) -> dict[str, Any]:
        return self._chunk({"tool_calls": [{"index": index, **given}]})

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._frame("chat.completion.chunk"), "choices": [choice]}

    def _frame(self, kind: str) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": kind,
            "created": 1,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }

    def _usage(self) -> dict[str, int] | None:
        if self.tokens is None:
            return None
        return {
            "prompt_tokens": 100,
            "completion_tokens": self.tokens,
            "total_tokens": 100 + self.tokens,
        }


Answers = Callable[[Request], Turn | Reply]


def event(chunk: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def pieces_of(text: str, size: int = 7) -> list[str]:
    """A text in the pieces that a stream sends."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def in_order(*replies: Turn | Reply) -> Answers:
    """Send one after the other, and the last one ever after."""
    return lambda request: replies[min(request.number, len(replies)) - 1]


def always(reply: Turn | Reply) -> Answers:
    """Send the same every time."""
    return lambda _: reply


def failure(
    status: int, message: str = "it failed", *headers: tuple[str, str], code: str | None = None
) -> Reply:
    """An error as endpoints send it."""
    error = {"error": {"message": message, "type": "scripted", "code": code}}
    return Reply((json.dumps(error).encode(),), status=status, headers=headers)


def simulated(profile: str) -> Answers:
    """Answer as an embedded deployment would, reading nothing but the request."""

    def answer(request: Request) -> Turn:
        system = request.body["messages"][0]["content"]
        listed = system.rpartition("Tools:")[2].strip().splitlines()
        tools = [{"type": "function", "function": json.loads(line)} for line in listed if line]
        text = propose(request.body["messages"], tools, request.body["seed"], PROFILES[profile])
        return Turn(text)

    return answer


class _Watched(asyncio.StreamReaderProtocol):
    """Says when the caller is gone, also while nobody reads."""

    def __init__(self, reader: Any, connected: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(reader, connected, loop)
        self.gone: asyncio.Future[None] = loop.create_future()

    def eof_received(self) -> bool | None:
        self._end()
        return super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._end()
        super().connection_lost(error)

    def _end(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)


class ScriptedEndpoint:
    """The endpoint; a context manager.

    Attributes:
        base_url: Where it listens, as a configuration names it.
        requests: Every request that came, in order.
        connections: How many connections are open now.
        most_at_once: The largest number of requests that were under way together.
    """

    def __init__(self, answers: Answers, latency: float = 0.0) -> None:
        self._answers = answers
        self._latency = latency
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._under_way = 0
        self.base_url = ""
        self.requests: list[Request] = []
        self.connections = 0
        self.most_at_once = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        port = self._server.sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(self._watched, "127.0.0.1", 0)

    def _watched(self) -> _Watched:
        return _Watched(asyncio.StreamReader(loop=self._loop), self._connected, self._loop)

    async def _stop(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        try:
            while (request := await self._read(reader)) is not None:
                if not await self._answer(request, writer, writer.transport.get_protocol().gone):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.connections -= 1
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.split(": ", 1) for line in lines if line)
        headers = {name.lower(): value for name, value in pairs}
        data = await reader.readexactly(int(headers.get("content-length", "0")))
        body = json.loads(data) if data else {}
        request = Request(len(self.requests) + 1, method, path, headers, body)
        self.requests.append(request)
        return request

    async def _answer(
        self, request: Request, writer: asyncio.StreamWriter, gone: asyncio.Future[None]
    ) -> bool:
        """Send the answer; tell whether the connection may be used again."""
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        sending = asyncio.ensure_future(self._send(request, writer))
        try:
            # A caller that goes away ends its request, as it would in front of a real server.
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            return sending.done() and sending.result()
        finally:
            self._under_way -= 1
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _send(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        answer = self._answers(request)
        reply = answer.reply(streamed=request.streamed) if isinstance(answer, Turn) else answer
        await asyncio.sleep(self._latency)
        fixed = {"content-type": reply.kind, "transfer-encoding": "chunked"}
        headers = fixed | {name.lower(): value for name, value in reply.headers}
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        for piece in reply.pieces:
            if isinstance(piece, float):
                await writer.drain()
                await asyncio.sleep(piece)
            elif piece:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
        if reply.cut:
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def cut_stream(turn: Turn, events: int) -> Reply:
    """A stream that breaks after so many events."""
    pieces = [event(chunk) for chunk in turn.chunks()][:events]
    return Reply(tuple(pieces), kind="text/event-stream", cut=True)


def main() -> None:
    """Serve one fixed answer until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--simulated", choices=sorted(PROFILES))
    given = parser.parse_args()
    fixed = always(Turn('{"refusal": "this answer is fixed"}'))
    answers = simulated(given.simulated) if given.simulated else fixed
    with ScriptedEndpoint(answers, given.latency) as endpoint:
        print(endpoint.base_url, flush=True)
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            input()


if __name__ == "__main__":
    main()
