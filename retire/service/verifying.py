"""Verifying certificates against the evidence that the service keeps."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from retire.certify.envelope import open_envelope
from retire.domain.errors import InputError
from retire.runner.folder import RunFolder
from retire.wiring import verify_envelope

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def verify(self, envelope: Mapping[str, Any]) -> dict[str, Any]:
        """Verify an envelope against the run that it came from, found by its plan's digest.

        Raises:
            InputError: No run of this service has that plan.
            EvidenceError: The signature does not verify, or the run's evidence is damaged.
        """
        kept = [
            run
            for run in self._registry.by_plan(plan_digest_of(envelope))
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
        folder = RunFolder(self._settings.place(run))
        result, kind = verify_envelope(
            envelope, "certificate", folder, None, [], catalog=self._settings.catalog
        )
        return {
            "run": run,
            "intact": result.intact,
            "verdict": result.verdict,
            "evidence": kind,
            "problems": list(result.problems),
            "stale": list(result.stale),
            "unknown_signers": list(result.unknown_signers),
            "checked": list(result.checked),
        }

    def _issued(self, run: str, envelope: Mapping[str, Any]) -> bool:
        with suppress(KeyError):
            return bool(self._registry.certificate(run)["payload"] == envelope.get("payload"))
        return False


def plan_digest_of(envelope: Mapping[str, Any]) -> str:
    """Return the plan digest that a certificate names; the signature is checked elsewhere.

    Raises:
        InputError: Not a certificate.
    """
    statement, _ = open_envelope(envelope, "certificate")
    try:
        return str(statement["predicate"]["plan"]["digest"])
    except (KeyError, TypeError) as error:
        raise InputError("this is no certificate", where="certificate") from error
