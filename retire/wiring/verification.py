"""Verifying certificates in the folder of their run, against what is configured here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.bundle import load_bundle
from retire.bundle.loading import bundles_by_id
from retire.certify.envelope import open_certificate, read_envelope
from retire.deployments import EMBEDDED
from retire.runner.folder import read_bytes
from retire.runner.purging import refuse_purged
from retire.verify.check import Now, verify
from retire.verify.recompute import run_problems
from retire.verify.run import SealedRun

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from retire.certify.envelope import SignedEnvelope
    from retire.deployments import Catalog
    from retire.verify.check import Verification


class RunVerifier:
    """Verifies the certificates of one run; what they share is recomputed once.

    Args:
        root: The run's folder.
        catalog: The deployments as they are configured now.
        trusted: Public keys (hex) that the reader trusts; None if none were given.
        against: Bundles as they stand now.

    Raises:
        InputError: Not the folder of a finished run.
        EvidenceError: A file of it is damaged or was replaced.
    """

    def __init__(
        self,
        root: Path,
        catalog: Catalog = EMBEDDED,
        trusted: Sequence[str] | None = None,
        against: Sequence[Path] = (),
    ) -> None:
        self.run = SealedRun(root)
        self._problems = run_problems(self.run)
        self._now = Now(
            bundles={
                key: load_bundle(place)
                for key, place in bundles_by_id(list(against)).items()
                if key in self.run.bundles
            },
            identities={name: catalog.named(name).identity for name in catalog.names},
            trusted=trusted,
        )

    def verify(self, envelope: SignedEnvelope, where: str) -> Verification:
        """Verify a certificate of the run; ``where`` names it in messages.

        Raises:
            InputError: Not a certificate.
            EvidenceError: The certificate's signature does not verify.
        """
        certificate, signer = open_certificate(envelope, where)
        return verify(certificate, signer, self.run, self._problems, self._now)

    def verify_file(self, path: Path) -> Verification:
        """Verify a certificate's file; otherwise as :meth:`verify`."""
        return self.verify(read_envelope(read_bytes(path), str(path)), str(path))


def run_of(certificate: Path) -> Path:
    """Return the folder of the run that a certificate's file lies in.

    Raises:
        InputError: The run was purged.
    """
    root = certificate.resolve().parent.parent
    refuse_purged(root)
    return root
