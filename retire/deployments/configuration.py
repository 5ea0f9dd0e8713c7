"""``deployments.yaml``: the models an operator offers, each one fixed configuration.

Numbers that fix an answer are kept as canonical decimal text, since the identity of a deployment
is digested and RFC 8785 leaves the text of a float to its reader. A file names the environment
variable of a key, never the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from retire.deployments.simulated.profiles import PROFILES
from retire.domain.errors import InputError
from sink.contract import canonical_decimal
from sink.strict_yaml import DocumentError, Loaded, StrictModel, load

if TYPE_CHECKING:
    from retire.deployments.port import Identity
    from retire.domain.digests import Json

_WRITTEN_BY_THE_REQUEST = frozenset(
    {
        "frequency_penalty",
        "functions",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "presence_penalty",
        "response_format",
        "seed",
        "stream",
        "stream_options",
        "temperature",
        "tools",
        "top_p",
    }
)
"""Fields of a request that the other keys of a configuration write."""
_SECRET_KEY = re.compile(r"api.?key|auth|credential|passw|secret|(^|_)token$", re.IGNORECASE)


def _number(value: object) -> object:
    """Turn a YAML number into canonical decimal text; text and booleans stay and are refused."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return canonical_decimal(Decimal(value))
    raise ValueError("write a number without quotes")


def _between(least: str, most: str) -> AfterValidator:
    """Return a check that a number lies between two bounds, both included."""

    def check(value: str) -> str:
        if not Decimal(least) <= Decimal(value) <= Decimal(most):
            raise ValueError(f"{value} is not between {least} and {most}")
        return value

    return AfterValidator(check)


_NUMBER = BeforeValidator(_number)
"""A YAML number, kept as canonical decimal text."""
Seconds = Annotated[str, _NUMBER, _between("0.05", "3600")]
Amount = Annotated[str, _NUMBER, _between("0", "1000000")]


def _sound_base_url(value: str) -> str:
    """Return an address in one form: no slash at its end, no credentials, query or fragment."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        # Its reason may quote credentials.
        raise ValueError("the address cannot be read") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("the address must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the address holds credentials: name the variable of the key in key_variable"
        )
    if parts.query or parts.fragment:
        raise ValueError("the address may have no query and no fragment: use extra_body")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    place = host if port in {None, usual} else f"{host}:{port}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


def _sound_extra_body(value: Mapping[str, object]) -> Mapping[str, object]:
    """Return the extra fields of a request, none of which another key writes or hides a secret."""
    written = sorted(_WRITTEN_BY_THE_REQUEST & set(value))
    if written:
        raise ValueError(f"{', '.join(written)} cannot stand here: another key or the plan sets it")
    secret = sorted(key for key in _all_keys(value) if _SECRET_KEY.search(key))
    if secret:
        raise ValueError(
            f"{', '.join(secret)} looks like a secret, and this mapping is part of the identity"
        )
    return value


def _all_keys(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [*value, *(key for item in value.values() for key in _all_keys(item))]
    if isinstance(value, tuple | list):
        return [key for item in value for key in _all_keys(item)]
    return []


def _as_json(value: object) -> Json:
    """Return a YAML value as JSON that can be digested.

    A decimal, and a whole number that RFC 8785 does not take, becomes ``{"decimal": text}``.
    """
    if isinstance(value, Decimal) or (isinstance(value, int) and abs(value) >= 2**53):
        return {"decimal": canonical_decimal(Decimal(value))}
    if isinstance(value, Mapping):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_as_json(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"{type(value).__name__} is no value of a deployments file")


# What changes no answer is left out of a dump, which is the identity.
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$", exclude=True)]
Output = Literal["json_schema", "tools", "json"]


class _Strict(StrictModel):
    # A refused value may hold a credential; it must not stand in an error's text.
    model_config = ConfigDict(hide_input_in_errors=True)


class Sampling(_Strict):
    """How tokens are drawn. A number that is empty is not sent; the server then decides.

    ``seed`` says whether the plan's seed is sent. ``max_tokens`` is always sent: without a limit
    a cut answer cannot be told from a finished one.
    """

    temperature: Annotated[str, _NUMBER, _between("0", "10")] | None = "0"
    top_p: Annotated[str, _NUMBER, _between("0", "1")] | None = None
    presence_penalty: Annotated[str, _NUMBER, _between("-2", "2")] | None = None
    frequency_penalty: Annotated[str, _NUMBER, _between("-2", "2")] | None = None
    max_tokens: int = Field(default=512, ge=1, le=1_000_000)
    seed: bool = True


class Timeouts(_Strict):
    """Seconds until a connection stands, and until a whole answer has come."""

    connect: Seconds = "10"
    answer: Seconds = "120"


class LocalTimeouts(Timeouts):
    """The same on this machine, where a small model on one core takes its time."""

    answer: Seconds = "600"


class Price(_Strict):
    """What a million tokens cost, read and written, in one currency (three letters)."""

    input: Amount
    output: Amount
    currency: str = Field(pattern=r"^[A-Z]{3}$")


class OpenAIConfiguration(_Strict):
    """A model behind an OpenAI-compatible endpoint.

    ``output`` is how an answer is asked for: ``json_schema`` sends a schema built from the offered
    tools, ``tools`` the tools themselves, ``json`` neither. ``schema_strict`` is sent with the
    schema. ``limit_field`` names the field of ``max_tokens``. ``tool_arguments: object`` accepts
    arguments that come as an object in place of JSON text; elsewhere such a turn is refused.
    """

    provider: Literal["openai"]
    name: Name
    base_url: Annotated[str, AfterValidator(_sound_base_url)]
    model: str = Field(min_length=1, max_length=200)
    sampling: Sampling = Sampling()
    output: Output = "json_schema"
    schema_strict: bool = True
    stream: bool = False
    tool_arguments: Literal["text", "object"] = "text"
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra_body: Annotated[Mapping[str, object], AfterValidator(_sound_extra_body)] = Field(
        default_factory=dict, exclude=True
    )
    timeouts: Timeouts = Field(default=Timeouts(), exclude=True)
    concurrency: int = Field(default=8, ge=1, le=512, exclude=True)
    requests_per_minute: int | None = Field(default=None, ge=1, exclude=True)
    tokens_per_minute: int | None = Field(default=None, ge=1, exclude=True)
    retries: int = Field(default=4, ge=0, le=20, exclude=True)
    price: Price | None = Field(default=None, exclude=True)
    key_variable: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]{0,63}$", exclude=True)

    @property
    def identity(self) -> Identity:
        """Everything that fixes the answers; no time-out, rate, price, name or key."""
        fixed = self.model_dump(mode="json")
        return {**fixed, "extra_body": _as_json(self.extra_body)}


class LocalConfiguration(_Strict):
    """A model that is served on this machine, from the weights of one GGUF file.

    ``weights`` is the name of a fetched model or a path. Threads change the order of sums, and
    with it now and then a token: they are part of the identity.
    """

    provider: Literal["local"]
    name: Name
    weights: str = Field(min_length=1, exclude=True)
    context_tokens: int = Field(default=4096, ge=256, le=1_048_576)
    sampling: Sampling = Sampling()
    output: Output = "json_schema"
    threads: int = Field(default=1, ge=1, le=256)
    timeouts: LocalTimeouts = Field(default=LocalTimeouts(), exclude=True)

    def identity_with(self, weights_digest: str) -> Identity:
        """Return everything that fixes the answers, given the digest of the weights' file."""
        fixed = self.model_dump(mode="json")
        return {**fixed, "weights": weights_digest}


Configuration = Annotated[OpenAIConfiguration | LocalConfiguration, Field(discriminator="provider")]


class DeploymentsFile(_Strict):
    """The deployments of one file, in its order."""

    schema_: Literal["retire.deployments/v1"] = Field(alias="schema")
    deployments: tuple[Configuration, ...] = Field(min_length=1)

    @property
    def by_name(self) -> Mapping[str, OpenAIConfiguration | LocalConfiguration]:
        """The deployments by their names."""
        return {item.name: item for item in self.deployments}


def load_deployments(data: bytes, where: str) -> DeploymentsFile:
    """Read a ``deployments.yaml``.

    Raises:
        InputError: With file, line and hint.
    """
    try:
        loaded = load(data, where)
    except DocumentError as error:
        raise InputError(error.message, where=error.where, mend=error.mend) from error
    if not isinstance(loaded.value, dict):
        raise InputError("a mapping is expected at the top of the file", where=f"{where}:1")
    try:
        file = DeploymentsFile.model_validate(loaded.value)
    except ValidationError as error:
        raise _refused(error, loaded) from None
    _check_names(file, loaded)
    return file


def _check_names(file: DeploymentsFile, loaded: Loaded) -> None:
    seen: set[str] = set()
    for index, item in enumerate(file.deployments):
        line = loaded.line_of(("deployments", index, "name"))
        if item.name in PROFILES:
            raise InputError(
                f"the name {item.name!r} belongs to an embedded deployment",
                where=f"{loaded.where}:{line}",
                mend=f"Take another name than {', '.join(PROFILES)}",
            )
        if item.name in seen:
            raise InputError(
                f"two deployments have the name {item.name!r}",
                where=f"{loaded.where}:{line}",
                mend="Give every deployment a name of its own",
            )
        seen.add(item.name)


_HINTS = {
    "bool_type": "Write true or false without quotes",
    "extra_forbidden": "Remove the key, or check its spelling",
    "int_type": "Write a whole number without quotes",
    "missing": "Add the key",
    "string_type": "Put the value in quotes",
    "union_tag_invalid": "Write provider: openai or provider: local",
    "union_tag_not_found": "Add provider: openai or provider: local",
}


def _refused(error: ValidationError, loaded: Loaded) -> InputError:
    first = error.errors(include_url=False, include_input=False)[0]
    # Within the list pydantic puts the provider after the index; the file has no such level.
    path = tuple(
        part
        for place, part in enumerate(first["loc"])
        if place != 2 or part not in {"openai", "local"}
    )
    name = ".".join(str(part) for part in path) or "file"
    reason = first["msg"].removeprefix("Value error, ")
    return InputError(
        f"{name}: {reason[:1].lower()}{reason[1:]}",
        where=f"{loaded.where}:{loaded.line_of(path)}",
        mend=_HINTS.get(first["type"], ""),
    )
