"""Verifying certificates against the evidence that the service keeps."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from retire.certify.envelope import SignedEnvelope, open_certificate
from retire.domain.document import DocumentFault, read_document
from retire.domain.errors import InputError
from retire.runner.folder import RunFolder
from retire.service.port import Verified
from retire.wiring import RunVerifier

if TYPE_CHECKING:
    from retire.service.settings import KeeperSettings
    from retire.store.registry import Registry


class Verifier:
    """Finds the run that a certificate came from. Blocks on files and database.

    Args:
        registry: Knows which runs have which plan.
        settings: What the operator configured.
    """

    def __init__(self, registry: Registry, settings: KeeperSettings) -> None:
        self._registry = registry
        self._settings = settings

    def verify(self, envelope: SignedEnvelope) -> Verified:
        """Verify an envelope against the run that it came from, found by its plan's digest.

        Raises:
            InputError: Not a certificate, or no run of this service has that plan.
            EvidenceError: The signature does not verify, or the run's evidence is damaged.
        """
        certificate, _ = open_certificate(envelope, "certificate")
        kept = [
            run
            for run in self._registry.by_plan(certificate.predicate.plan.digest)
            if RunFolder(self._settings.place(run)).seal.exists()
        ]
        if not kept:
            raise InputError(
                "no run of this service has the certificate's plan, or its evidence was purged",
                where="certificate",
                mend="Verify it with `retire verify` where its evidence is kept",
            )
        # The same submission may have been run twice.
        run = next((run for run in kept if self._issued(run, envelope)), kept[0])
        verifier = RunVerifier(self._settings.place(run), self._settings.catalog)
        found = verifier.verify(envelope, "certificate")
        return Verified(run=run, intact=found.intact, **asdict(found))

    def _issued(self, run: str, envelope: SignedEnvelope) -> bool:
        with suppress(KeyError, DocumentFault):
            issued = read_document(SignedEnvelope, self._registry.certificate(run))
            return issued.payload == envelope.payload
        return False
