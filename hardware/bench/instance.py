"""The instance file of a bench: which Home Assistant, which camera, and whose tokens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from hardware.homeassistant.access import secret_of
from sink.strict_yaml import DocumentError, StrictModel, read_model

_ENTITY = re.compile(r"camera\.[a-z0-9_]{1,200}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def _check_url(value: str) -> str:
    parts = urlsplit(value)
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not plain:
        raise ValueError(f"{value[:80]!r} is no http or https address without user and query")
    return value.rstrip("/")


def _check_entity(value: str) -> str:
    if not _ENTITY.match(value):
        raise ValueError(f"{value[:80]!r} is no camera entity: camera. and a-z, 0-9, _ after it")
    return value


def _check_sha256(value: str) -> str:
    if not _SHA256.match(value):
        raise ValueError(f"{value[:80]!r} is no SHA-256 in 64 digits of 0-9 and a-f")
    return value


Url = Annotated[str, AfterValidator(_check_url)]
Entity = Annotated[str, AfterValidator(_check_entity)]
Hash = Annotated[str, AfterValidator(_check_sha256)]


class Instance(StrictModel):
    """One bench.

    Attributes:
        url: Home Assistant's address.
        entity: The camera in Home Assistant.
        target: What the contract calls that camera.
        sink_token: File with the bearer token of the acting programs.
        observer_token: File with a read-only bearer token for the preflight.
        approvals: The sink's file of approved contracts.
        bench: Marks an instance on which acting without a boundary can be allowed.
        device: Address of the camera itself, where it offers ``/sessions``: a second source.
        placeholders: SHA-256 of pictures that stand in for a missing view.
    """

    schema_: Literal["retire.camera_bench/v1"] = Field(alias="schema")
    url: Url
    entity: Entity
    target: str = "camera.living_room"
    sink_token: str
    observer_token: str
    approvals: str
    bench: bool = False
    device: Url | None = None
    placeholders: tuple[Hash, ...] = ()


def read_instance(path: Path) -> Instance:
    """Read an instance file; relative paths in it are taken from its folder.

    Raises:
        DocumentError: It cannot be read or used; with file, line and a hint.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot be read: {error.strerror}", where=str(path)) from error
    instance = read_model(Instance, data, str(path))
    places = {
        name: str(path.resolve().parent / getattr(instance, name))
        for name in ("sink_token", "observer_token", "approvals")
    }
    return instance.model_copy(update=places)


def read_token(path: str) -> str:
    """Return the secret in a token file.

    Raises:
        DocumentError: There is none, or others can read the file. The secret is never quoted.
    """
    try:
        return secret_of(Path(path))
    except ValueError as error:
        mend = f"Write one long-lived token into it as one line, then chmod 600 {path}"
        raise DocumentError(str(error), where=path, mend=mend) from error
