"""Sign the certificates of a run and write them into its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.envelope import sign_certificate
from retire.runner.folder import write_document
from retire.store.keys import certifier_key

if TYPE_CHECKING:
    from pathlib import Path

    from retire.wiring import Finished


def write_certificates(finished: Finished, home: Path) -> list[Path]:
    """Sign every certificate with the certifier's key; returns where they were written."""
    key = certifier_key(home)
    paths = []
    for certificate in finished.certificates:
        path = finished.run.folder.certificates / f"{certificate.name}.json"
        write_document(path, sign_certificate(certificate, key))
        paths.append(path)
    return paths
