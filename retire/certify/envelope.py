"""DSSE envelopes around in-toto Statements, signed with Ed25519 (securesystemslib)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import Field
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]  # re-exported without __all__

from retire.certify.certificate import Certificate
from retire.domain.digests import canonical
from retire.domain.document import Document, DocumentFault, Many, as_document, read_document
from retire.domain.errors import EvidenceError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"


class Signature(Document):
    """One signature of an envelope; ``sig`` is base64."""

    keyid: str
    sig: str


class Signer(Document):
    """The public key that the envelope names, in hex."""

    ed25519: str


class SignedEnvelope(Document):
    """A signed certificate: a DSSE envelope with its signer's public key beside it."""

    payload: str
    payload_type: str = Field(alias="payloadType")
    signatures: Many[Signature]
    signer: Signer


def sign_certificate(certificate: Certificate, key: Ed25519PrivateKey) -> SignedEnvelope:
    """Return the envelope of a certificate.

    The payload is the statement's RFC 8785 form, so that signing it twice gives the same bytes.
    """
    envelope = Envelope(canonical(certificate.as_json()), PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key))
    signer = {"ed25519": key.public_key().public_bytes_raw().hex()}
    return as_document(SignedEnvelope, {**envelope.to_dict(), "signer": signer})


def open_certificate(envelope: SignedEnvelope, where: str) -> tuple[Certificate, str]:
    """Return the certificate and the public key (hex) that signed it, its signature checked.

    The key is the one the envelope names; whether to trust it is another question.

    Raises:
        InputError: Not an envelope of a certificate.
        EvidenceError: The signature does not verify.
    """
    named = envelope.signer.ed25519
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(named))
        inner = {key: value for key, value in envelope.as_json().items() if key != "signer"}
        opened = Envelope.from_dict(inner)
    except (KeyError, TypeError, ValueError) as error:
        raise _no_certificate(f"{type(error).__name__} {error}", where) from error
    try:
        opened.verify([SSlibKey.from_crypto(public)], 1)
    except (VerificationError, UnverifiedSignatureError) as error:
        raise EvidenceError("the signature does not verify", where=where) from error
    if opened.payload_type != PAYLOAD_TYPE:
        raise InputError("the payload is no in-toto Statement", where=where)
    try:
        return read_document(Certificate, opened.payload), named
    except DocumentFault as fault:
        raise _no_certificate(str(fault), where) from fault


def read_envelope(data: bytes, where: str) -> SignedEnvelope:
    """Read a signed certificate's file.

    Raises:
        InputError: It is none.
    """
    try:
        return read_document(SignedEnvelope, data)
    except DocumentFault as fault:
        raise _no_certificate(str(fault), where) from fault


def _no_certificate(why: str, where: str) -> InputError:
    return InputError(
        f"this is no certificate as this version writes it ({why[:200]})",
        where=where,
        mend="Name a file that `retire matrix` or `retire certify` wrote",
    )


def is_trusted(key: str, trusted: Sequence[str]) -> bool:
    """Whether a key (hex) is among the trusted ones."""
    return key.lower() in {item.lower() for item in trusted}
