"""DSSE envelopes around in-toto Statements, signed with Ed25519 (securesystemslib)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]  # re-exported without __all__

from retire.domain.digests import canonical
from retire.domain.errors import EvidenceError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"


def sign_statement(statement: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """Return the envelope of a statement, with the signer's public key beside the signature.

    The payload is the statement's RFC 8785 form, so that signing it twice gives the same bytes.
    """
    envelope = Envelope(canonical(statement), PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key))
    return {
        **envelope.to_dict(),
        "signer": {"ed25519": key.public_key().public_bytes_raw().hex()},
    }


def open_envelope(envelope: Mapping[str, Any], where: str) -> tuple[dict[str, Any], str]:
    """Return the statement and the key id that signed it, after checking the signature.

    The key is the one the envelope names; whether to trust it is another question.

    Raises:
        InputError: Not an envelope of a certificate.
        EvidenceError: The signature does not verify.
    """
    try:
        named = str(envelope["signer"]["ed25519"])
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(named))
        inner = {key: value for key, value in envelope.items() if key != "signer"}
        opened = Envelope.from_dict(json.loads(json.dumps(inner)))
        payload = json.loads(opened.payload)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"this is no certificate: {type(error).__name__} {error}",
            where=where,
            mend="Name a file that `retire matrix` or `retire certify` wrote",
        ) from error
    key = SSlibKey.from_crypto(public)
    try:
        opened.verify([key], 1)
    except (VerificationError, UnverifiedSignatureError) as error:
        raise EvidenceError("the signature does not verify", where=where) from error
    if opened.payload_type != PAYLOAD_TYPE or not isinstance(payload, dict):
        raise InputError("the payload is no in-toto Statement", where=where)
    return payload, named


def is_trusted(key: str, trusted: Sequence[str]) -> bool:
    """Whether a key (hex) is among the trusted ones."""
    return key.lower() in {item.lower() for item in trusted}
