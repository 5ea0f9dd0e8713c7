"""The kinds of value that ``deployments.yaml`` is made of, and what each may not hold. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from sink.contract import canonical_decimal

WRITTEN_BY_THE_REQUEST = frozenset(
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


def between(least: str, most: str) -> AfterValidator:
    """Return a check that a number lies between two bounds, both included."""

    def check(value: str) -> str:
        if not Decimal(least) <= Decimal(value) <= Decimal(most):
            raise ValueError(f"{value} is not between {least} and {most}")
        return value

    return AfterValidator(check)


NUMBER = BeforeValidator(_number)
"""A YAML number, kept as canonical decimal text."""
Seconds = Annotated[str, NUMBER, between("0.05", "3600")]
Amount = Annotated[str, NUMBER, between("0", "1000000")]


def sound_base_url(value: str) -> str:
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


def sound_extra_body(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the extra fields of a request, none of which another key writes or hides a secret."""
    written = sorted(WRITTEN_BY_THE_REQUEST & set(value))
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


def identity_of(value: object) -> Any:  # noqa: ANN401  # JSON
    """Return a YAML value as JSON that can be digested.

    A decimal, and a whole number that RFC 8785 does not take, becomes ``{"decimal": text}``.
    """
    if isinstance(value, int) and abs(value) >= 2**53:
        value = Decimal(value)
    if isinstance(value, Decimal):
        return {"decimal": canonical_decimal(value)}
    if isinstance(value, Mapping):
        return {key: identity_of(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [identity_of(item) for item in value]
    return value
