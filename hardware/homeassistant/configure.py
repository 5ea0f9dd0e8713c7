"""Write what a local Home Assistant needs: configuration, users, and a token for each.

Home Assistant keeps users and tokens in ``.storage/auth``; it is written before the first start,
so that no set-up by hand and no administrator's password is needed. The files have the form of
Home Assistant 2024.3.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

_TEN_YEARS = 315_360_000
_GROUPS = {
    "world": "system-admin",
    "sink": "system-users",
    "observer": "system-read-only",
}
"""The group of each program's user: only the world program may set the house up."""

_CONFIGURATION = """\
homeassistant:
  name: Bench
  latitude: 52.0
  longitude: 5.0
  elevation: 0
  unit_system: metric
  time_zone: UTC
  currency: EUR
  country: NL
http:
  server_host: 127.0.0.1
  server_port: {port}
api:
config:
websocket_api:
logger:
  default: warning
"""

_HOUSE = """\
retire_bench:
  layout: {layout}
"""


@dataclass(frozen=True, slots=True)
class Written:
    """Where the configuration lies."""

    folder: Path
    tokens: Mapping[str, Path]


def write_configuration(
    state: Path, integration: Path, layout: Mapping[str, object], port: int, now: datetime
) -> Written:
    """Write the configuration of a house of bundles from nothing; an old one is replaced.

    Args:
        state: The folder of the bench; others cannot read it.
        integration: The folder of the custom integration to copy.
        layout: What that integration builds.
        port: Port on the loopback address.
        now: When the tokens are issued.

    Raises:
        OSError: It cannot be written.
    """
    written = write_basis(state, port, now, tuple(_GROUPS))
    folder = written.folder
    target = folder / "custom_components" / integration.name
    shutil.copytree(integration, target, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "layout.json").write_text(json.dumps(layout), encoding="utf-8")
    with (folder / "configuration.yaml").open("a", encoding="utf-8") as file:
        file.write(_HOUSE.format(layout=json.dumps(str(folder / "layout.json"))))
    return written


def write_basis(state: Path, port: int, now: datetime, programs: Sequence[str]) -> Written:
    """Write what every instance has, from nothing: an address, and a user for each program.

    Args:
        state: The folder of the bench; others cannot read it.
        port: Port on the loopback address.
        now: When the tokens are issued.
        programs: Who gets a user and a token: of ``world``, ``sink`` and ``observer``.

    Raises:
        OSError: It cannot be written.
    """
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = state / "configuration"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".storage").mkdir(mode=0o700, parents=True)
    text = _CONFIGURATION.format(port=port)
    (folder / "configuration.yaml").write_text(text, encoding="utf-8")
    for name, lines in (("automations", "[]"), ("scenes", "[]"), ("scripts", "{}")):
        (folder / f"{name}.yaml").write_text(lines + "\n", encoding="utf-8")
    tokens = _write_users(folder, state, now, programs)
    done = ["user", "core_config", "integration", "analytics"]
    store(folder, "onboarding", {"done": done}, 4)
    return Written(folder, tokens)


def _write_users(
    folder: Path, state: Path, now: datetime, programs: Sequence[str]
) -> dict[str, Path]:
    users, refresh, tokens = [], [], {}
    for name in programs:
        user, identity, key = uuid.uuid4().hex, uuid.uuid4().hex, secrets.token_hex(64)
        users.append(_user(user, name, _GROUPS[name]))
        refresh.append(_refresh_token(identity, user, name, key, now))
        issued = int(now.timestamp())
        claims = {"iss": identity, "iat": issued, "exp": issued + _TEN_YEARS}
        tokens[name] = write_private(state / f"{name}.token", _signed(claims, key))
    groups = [
        {"id": "system-admin", "name": "Administrators"},
        {"id": "system-users", "name": "Users"},
        {"id": "system-read-only", "name": "Read Only"},
    ]
    data = {"users": users, "groups": groups, "credentials": [], "refresh_tokens": refresh}
    store(folder, "auth", data, 1)
    return tokens


def _user(identity: str, name: str, group: str) -> dict[str, object]:
    return {
        "id": identity,
        "group_ids": [group],
        "is_owner": group == "system-admin",
        "is_active": True,
        "name": name,
        "system_generated": False,
        "local_only": True,
    }


def _refresh_token(
    identity: str, user: str, name: str, key: str, now: datetime
) -> dict[str, object]:
    return {
        "id": identity,
        "user_id": user,
        "client_id": None,
        "client_name": name,
        "client_icon": None,
        "token_type": "long_lived_access_token",
        "created_at": now.isoformat(),
        "access_token_expiration": float(_TEN_YEARS),
        "token": secrets.token_hex(64),
        "jwt_key": key,
        "last_used_at": None,
        "last_used_ip": None,
        "expire_at": None,
        "credential_id": None,
        "version": "2024.3.3",
    }


def _signed(claims: Mapping[str, object], key: str) -> str:
    """Return a JSON Web Token with HMAC-SHA-256 (RFC 7519, RFC 7515)."""
    header = _base64(b'{"alg":"HS256","typ":"JWT"}')
    body = _base64(json.dumps(claims, separators=(",", ":")).encode())
    signature = hmac.new(key.encode(), f"{header}.{body}".encode(), hashlib.sha256).digest()
    return f"{header}.{body}.{_base64(signature)}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def store(folder: Path, key: str, data: Mapping[str, object], version: int) -> None:
    """Write a file of Home Assistant's own storage into a configuration folder."""
    value = {"version": version, "minor_version": 1, "key": key, "data": data}
    write_private(folder / ".storage" / key, json.dumps(value))


def write_private(path: Path, text: str) -> Path:
    """Write a file that nobody else can read, not even for a moment."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path
