"""Sign the certificates of a run and write them into its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.envelope import sign_statement
from retire.runner.folder import write_json
from retire.store.keys import certifier_key

if TYPE_CHECKING:
    from pathlib import Path

    from retire.wiring import Finished


def write_certificates(finished: Finished, home: Path) -> list[Path]:
    """Sign every certificate with the certifier's key; returns where they were written."""
    key = certifier_key(home)
    folder = finished.prepared.folder.certificates
    paths = []
    for certified in finished.certified:
        placement = certified.placement
        path = folder / f"{placement.deployment}-{placement.condition}.json"
        write_json(path, sign_statement(certified.statement, key))
        paths.append(path)
    return paths
