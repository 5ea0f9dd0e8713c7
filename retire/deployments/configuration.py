"""``deployments.yaml``: the models an operator offers, each one fixed configuration.

Numbers that fix an answer are kept as canonical decimal text, since the identity of a deployment
is digested and RFC 8785 leaves the text of a float to its reader. A file names the environment
variable of a key, never the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from retire.deployments.fields import (
    NUMBER,
    Amount,
    Seconds,
    between,
    identity_of,
    sound_base_url,
    sound_extra_body,
)
from retire.deployments.simulated.profiles import PROFILES
from retire.domain.errors import InputError
from sink.strict_yaml import DocumentError, Loaded, StrictModel, load

SCHEMA = "retire.deployments/v1"

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
Output = Literal["json_schema", "tools", "json"]


class _Strict(StrictModel):
    # A refused value may hold a credential; it must not stand in an error's text.
    model_config = ConfigDict(hide_input_in_errors=True)


class Sampling(_Strict):
    """How tokens are drawn. A number that is empty is not sent; the server then decides.

    ``seed`` says whether the plan's seed is sent. ``max_tokens`` is always sent: without a limit
    a cut answer cannot be told from a finished one.
    """

    temperature: Annotated[str, NUMBER, between("0", "10")] | None = "0"
    top_p: Annotated[str, NUMBER, between("0", "1")] | None = None
    presence_penalty: Annotated[str, NUMBER, between("-2", "2")] | None = None
    frequency_penalty: Annotated[str, NUMBER, between("-2", "2")] | None = None
    max_tokens: int = Field(default=512, ge=1, le=1_000_000)
    seed: bool = True

    @property
    def identity(self) -> dict[str, Any]:
        """What of it fixes the answers: all of it."""
        return self.model_dump(mode="json")


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
    base_url: Annotated[str, AfterValidator(sound_base_url)]
    model: str = Field(min_length=1, max_length=200)
    sampling: Sampling = Sampling()
    output: Output = "json_schema"
    schema_strict: bool = True
    stream: bool = False
    tool_arguments: Literal["text", "object"] = "text"
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra_body: Annotated[Mapping[str, Any], AfterValidator(sound_extra_body)] = Field(
        default_factory=dict
    )
    timeouts: Timeouts = Timeouts()
    concurrency: int = Field(default=8, ge=1, le=512)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    retries: int = Field(default=4, ge=0, le=20)
    price: Price | None = None
    key_variable: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]{0,63}$")

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that fixes the answers; no time-out, rate, price, name or key."""
        return {
            "provider": self.provider,
            "base_url": self.base_url,
            "model": self.model,
            "sampling": self.sampling.identity,
            "output": self.output,
            "schema_strict": self.schema_strict,
            "stream": self.stream,
            "tool_arguments": self.tool_arguments,
            "limit_field": self.limit_field,
            "extra_body": identity_of(self.extra_body),
        }


class LocalConfiguration(_Strict):
    """A model that is served on this machine, from the weights of one GGUF file.

    ``weights`` is the name of a fetched model or a path. Threads change the order of sums, and
    with it now and then a token: they are part of the identity.
    """

    provider: Literal["local"]
    name: Name
    weights: str = Field(min_length=1)
    context_tokens: int = Field(default=4096, ge=256, le=1_048_576)
    sampling: Sampling = Sampling()
    output: Output = "json_schema"
    threads: int = Field(default=1, ge=1, le=256)
    timeouts: LocalTimeouts = LocalTimeouts()

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything but the weights: those are known by the digest of their bytes."""
        return {
            "provider": self.provider,
            "context_tokens": self.context_tokens,
            "sampling": self.sampling.identity,
            "output": self.output,
            "threads": self.threads,
        }

    def identity_with(self, weights_digest: str) -> Mapping[str, Any]:
        """Return the whole identity, given the digest of the weights' file."""
        return {**self.identity, "weights": weights_digest}


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
        part for place, part in enumerate(first["loc"]) if not (place == 2 and _is_provider(part))
    )
    name = ".".join(str(part) for part in path) or "file"
    reason = first["msg"].removeprefix("Value error, ")
    return InputError(
        f"{name}: {reason[:1].lower()}{reason[1:]}",
        where=f"{loaded.where}:{loaded.line_of(path)}",
        mend=_HINTS.get(first["type"], ""),
    )


def _is_provider(part: object) -> bool:
    return part in {"openai", "local"}
