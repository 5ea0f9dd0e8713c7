"""HTTP to a certification server: the calls a pipeline needs, every fault as one paragraph."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from retire.domain.errors import InputError
from retire.pages.text import many, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CONNECT_SECONDS = 10.0
_SILENT_SECONDS = 60.0
"""The server sends a comment every 15 seconds; this long a silence is a dead connection."""

_SHOWN = 3
_LONG = 400


class UnreachableError(InputError):
    """The server did not answer, or answered that it cannot now; asking again may help."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of a run."""

    number: int
    data: Mapping[str, object]


def check_address(address: str) -> str:
    """Return a server's address without the slash at its end.

    Raises:
        InputError: Not the http or https address of a server.
    """
    try:
        parts = urlsplit(address)
        usable = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
            and not (parts.username or parts.password or parts.query or parts.fragment)
            and parts.path in {"", "/"}
            and address.isprintable()
        )
    except ValueError:
        usable = False
    if not usable:
        raise InputError(
            f"{shortened(address, 120)!r} is no server's address",
            where="--server",
            mend="Give scheme, host and port alone, such as https://retire.example",
        )
    return address.rstrip("/")


def check_secrecy(address: str, *, insecure_http: bool) -> None:
    """Check that a token does not travel in the clear to another machine.

    Raises:
        InputError: Plain http to an address that is not this machine's own.
    """
    parts = urlsplit(address)
    if parts.scheme == "https" or insecure_http or _is_this_machine(parts.hostname or ""):
        return
    raise InputError(
        f"{shortened(address, 120)} is plain http, and the token would travel in the clear",
        where="--server",
        mend="Use https, or give --insecure-http where nobody else can listen on the way",
    )


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        # RFC 6761, section 6.3: this name and those below it never leave the machine.
        return host == "localhost" or host.endswith(".localhost")


def check_token(token: str | None) -> str:
    """Return the token; it is never repeated in a message.

    Raises:
        InputError: There is none, or it holds characters that no token has.
    """
    if token is None:
        raise InputError(
            "a server needs a token and RETIRE_TOKEN is not set",
            where="--server",
            mend="Set RETIRE_TOKEN to what `retire token new --scope certify` printed",
        )
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise InputError(
            "it holds characters that no token has", where="RETIRE_TOKEN", mend="Copy it again"
        )
    return token


class Server:
    """One certification server.

    Every method raises UnreachableError where asking again may help, and InputError where the
    server refuses.
    """

    def __init__(self, address: str, token: str, *, insecure_http: bool = False) -> None:
        self.address = check_address(address)
        check_secrecy(self.address, insecure_http=insecure_http)
        self._http = httpx.Client(
            base_url=self.address,
            headers={"Authorization": f"Bearer {check_token(token)}"},
            timeout=httpx.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS),
            follow_redirects=False,
        )

    def __enter__(self) -> Server:  # noqa: PYI034  # one class, never derived from
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def start(
        self, fields: Mapping[str, str], files: Mapping[str, tuple[str, bytes]], key: str
    ) -> bytes:
        """Submit a certification and return its run as JSON; the same key never starts two."""
        with self._faults():
            answer = self._http.post(
                "/certify",
                data=dict(fields),
                files=dict(files),
                headers={"Idempotency-Key": key},
            )
            return self._json(answer)

    def read(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Return the JSON object that stands under a path."""
        with self._faults():
            return self._json(self._http.get(path, params=dict(query or {})))

    def events(self, run: str, after: int) -> Iterator[ServerEvent]:
        """Yield a run's events behind a number, as long as the server sends any."""
        headers = {"Last-Event-ID": str(after), "Accept": "text/event-stream"}
        with (
            self._faults(),
            self._http.stream("GET", f"/runs/{run}/events", headers=headers) as answer,
        ):
            if answer.status_code == httpx.codes.NO_CONTENT:
                return
            if answer.status_code != httpx.codes.OK:
                answer.read()
                self._refuse(answer)
            yield from read_events(answer.iter_lines())

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise UnreachableError(
                f"the server cannot be reached ({type(error).__name__}: "
                f"{shortened(str(error), 200)})",
                where=self.address,
                mend="Check --server, and that the service runs there",
            ) from error
        except httpx.HTTPError as error:
            raise self._no_service() from error

    def _json(self, answer: httpx.Response) -> bytes:
        if answer.status_code not in {httpx.codes.OK, httpx.codes.ACCEPTED}:
            self._refuse(answer)
        try:
            value = answer.json()
        except ValueError as error:
            raise self._no_service() from error
        if not isinstance(value, dict):
            raise self._no_service()
        return answer.content

    def _no_service(self) -> InputError:
        return InputError(
            "what answers there is no certification service",
            where=self.address,
            mend="Check --server",
        )

    def _refuse(self, answer: httpx.Response) -> None:
        raise refusal(answer, self.address)


def read_events(lines: Iterator[str]) -> Iterator[ServerEvent]:
    """Yield the events of a stream (WHATWG HTML, section 9.2.6).

    Raises:
        UnreachableError: An event cannot be read: something on the way damaged it.
    """
    number, data = "", ""
    for line in lines:
        name, _, value = line.partition(":")
        if name == "id":
            number = value.strip()
        elif name == "data":
            data += value.strip()
        elif not line and data:
            try:
                yield ServerEvent(int(number), dict(json.loads(data)))
            except (TypeError, ValueError) as error:
                raise UnreachableError("an event of the run cannot be read") from error
            data = ""


def refusal(answer: httpx.Response, address: str) -> InputError:
    """Return the error of an answer that is not what was asked for."""
    status = answer.status_code
    if answer.is_redirect:
        elsewhere = shortened(answer.headers.get("Location", "somewhere else"), 200)
        return InputError(f"the server sends to {elsewhere}", where=address, mend="Use that")
    problem = _problem(answer)
    title = shortened(str(problem.get("title") or answer.reason_phrase), _LONG)
    detail = shortened(str(problem.get("detail", "")), _LONG)
    said = f"{title} ({status})" + (f": {detail}" if detail else "")
    if status == httpx.codes.UNAUTHORIZED:
        advice = "Set RETIRE_TOKEN to a token of this server that was not revoked"
        return InputError(said, where=address, mend=advice)
    if status == httpx.codes.FORBIDDEN:
        return InputError(said, where=address, mend="Use a token with that scope")
    if status == httpx.codes.TOO_MANY_REQUESTS:
        wait = shortened(answer.headers.get("Retry-After", "a few"), 20)
        return UnreachableError(said, where=address, mend=f"Try again in {wait} seconds")
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        instance = shortened(str(problem.get("instance", "")), 80)
        asked = f"Its operator finds the fault under {instance}" if instance else "Try again later"
        return UnreachableError(said, where=address, mend=asked)
    return InputError(_with_faults(title, status, problem) or said, where=address)


def _problem(answer: httpx.Response) -> dict[str, object]:
    try:
        value = answer.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _with_faults(title: str, status: int, problem: Mapping[str, object]) -> str:
    faults = problem.get("errors")
    if not isinstance(faults, list) or not faults:
        return ""
    told = "; ".join(_fault(fault) for fault in faults[:_SHOWN] if isinstance(fault, dict))
    more = f"; and {many(len(faults) - _SHOWN, 'more fault')}" if len(faults) > _SHOWN else ""
    return f"{title} ({status}): {told}{more}"


def _fault(fault: Mapping[str, object]) -> str:
    line = f":{fault['line']}" if "line" in fault else ""
    names = [f"{fault[name]}" for name in ("field", "file") if name in fault]
    names[-1:] = [f"{name}{line}" for name in names[-1:]]
    names += [str(fault["clause"])] if "clause" in fault else []
    place = f"{' '.join(names)}: " if names else ""
    mend = f". {fault['mend']}" if "mend" in fault else ""
    return shortened(f"{place}{fault.get('message', '')}{mend}", _LONG)
