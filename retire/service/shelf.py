"""Bundles by their id: the operator's folder, and what was uploaded."""

from __future__ import annotations

import logging
import secrets
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from retire.bundle import load_bundle
from retire.domain.errors import IncompleteError, InputError, RetireError
from retire.service.debris import under_way
from retire.service.port import BundleRow, ConflictError

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("retire.service")


class Shelf:
    """Registered bundles.

    Args:
        given: Folder of the operator's bundles.
        data: The service's own folder.
    """

    def __init__(self, given: Path, data: Path) -> None:
        self._given = given
        self._uploaded = data / "bundles"
        self._arriving = data / "arriving"

    def folder(self, bundle: str) -> Path:
        """Return a registered bundle's folder; raises InputError where there is none."""
        for folder in (self._given, self._uploaded):
            if bundle in {child.name for child in folder.glob("*") if child.is_dir()}:
                return folder / bundle
        raise InputError(
            f"there is no registered bundle {bundle!r}",
            where="bundle",
            mend="GET /bundles lists those there are",
        )

    def rows(self) -> list[BundleRow]:
        """Return what is listed; a bundle that cannot be loaded is left out."""
        rows = []
        for folder in (self._given, self._uploaded):
            for child in sorted(folder.glob("*/bundle.yaml")):
                with suppress(RetireError):
                    rows.append(bundle_row(child.parent))
        return rows

    def register(self, folder: Path) -> BundleRow:
        """Keep an unpacked bundle, whole or not at all.

        Raises:
            InputError: The bundle has a fault.
            ConflictError: Another bundle has its id.
            IncompleteError: It cannot be stored.
        """
        row = bundle_row(folder)
        partial = self._arriving / secrets.token_hex(8)
        try:
            with under_way(self._uploaded.parent):
                self._uploaded.mkdir(parents=True, exist_ok=True)
                shutil.copytree(folder, partial)
                known = self._known(row)
                if known is None:
                    # Whole or not at all; and where two register at once, one finds the other's.
                    _place(partial, self._uploaded / row.id)
                    known = self._known(row)
        except OSError as error:
            log.exception("a bundle cannot be kept")
            raise IncompleteError(
                "the service cannot keep the bundle", mend="Try again later; its log says why"
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return known or row

    def _known(self, row: BundleRow) -> BundleRow | None:
        for place in (self._given / row.id, self._uploaded / row.id):
            if place.exists():
                known = bundle_row(place)
                if known.digests == row.digests:
                    return known
                raise ConflictError(f"another bundle is registered as {row.id}")
        return None


def bundle_row(folder: Path) -> BundleRow:
    """Return what is listed of a bundle; raises InputError for a faulty one."""
    bundle = load_bundle(folder)
    return BundleRow(
        id=bundle.id,
        title=bundle.card.title,
        family=bundle.card.family,
        clauses=len(bundle.skill.clauses),
        digests=dict(bundle.digests),
    )


def _place(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not target.exists():
            raise
