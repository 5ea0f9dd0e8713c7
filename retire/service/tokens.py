"""Bearer tokens: made once, kept as a digest, compared in constant time."""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from retire.domain.digests import sha256

PREFIX = "retire_"
SECRET_BYTES = 32
SECRET_LENGTH = len(PREFIX) + 43


class Scope(StrEnum):
    """What a token may do. Each scope includes the ones before it."""

    READ = "read"
    """See bundles, deployments and its own runs; verify certificates."""
    CERTIFY = "certify"
    """Start and cancel its own runs."""
    ADMIN = "admin"
    """See, cancel and purge every run; register bundles."""


_RANK = {Scope.READ: 0, Scope.CERTIFY: 1, Scope.ADMIN: 2}


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is stored: never the secret.

    Attributes:
        id: Opaque name; the owner of the runs that this token starts.
        digest: ``sha256:...`` of the secret's ASCII bytes.
        scopes: What was granted.
        revoked: Whether it was taken back.
    """

    id: str
    digest: str
    scopes: frozenset[Scope]
    revoked: bool = False

    def allows(self, scope: Scope) -> bool:
        """Whether a granted scope is, or includes, this one."""
        return any(_RANK[granted] >= _RANK[scope] for granted in self.scopes)


class Tokens(Protocol):
    """Where tokens are kept."""

    async def by_digest(self, digest: str) -> Token | None:
        """Return the token whose secret has this digest, revoked or not; None if there is none.

        Raises:
            IncompleteError: It cannot be looked up now.
        """


def new_secret() -> tuple[str, str]:
    """Return a new secret, to be shown once, and the digest to store."""
    body = base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)).rstrip(b"=")
    secret = PREFIX + body.decode("ascii")
    return secret, secret_digest(secret)


def secret_digest(secret: str) -> str:
    """Return the digest under which a secret is stored.

    Raises:
        UnicodeEncodeError: The text is not ASCII, so no secret of ours.
    """
    return sha256(secret.encode("ascii"))


async def token_of(tokens: Tokens, authorization: str) -> Token | None:
    """Return the living token of an ``Authorization`` header's value, or None.

    Args:
        tokens: Where tokens are kept.
        authorization: The header's value, ``Bearer <secret>`` (RFC 6750, section 2.1).

    Raises:
        IncompleteError: The token cannot be looked up now.
    """
    scheme, _, secret = authorization.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or len(secret) != SECRET_LENGTH or not secret.isascii():
        return None
    digest = secret_digest(secret)
    token = await tokens.by_digest(digest)
    # A store that looks tokens up by prefix or index must not decide about equality.
    if token is None or not hmac.compare_digest(token.digest, digest) or token.revoked:
        return None
    return token
