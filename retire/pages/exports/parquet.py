"""A run as a Parquet file: one row a cell, the run's digests in the file's own metadata.

The library pyarrow is optional: only the command that needs it imports this module.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]  # it has no stubs
from pyarrow import parquet

from retire.pages.exports.columns import COLUMNS, SCHEMA, Kind, Known, flat, truths_of
from retire.pages.phrases import evidence_words
from retire.runner.folder import write_filled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from retire.pages.exports.columns import Value
    from retire.verify.run import SealedRun

ROWS_AT_ONCE = 2048
"""Rows of a row group; only one group is held in memory."""


def write_parquet(run: SealedRun, path: Path) -> int:
    """Write every declared cell of a run; returns the number of rows.

    Args:
        run: The sealed run.
        path: The file to write; it appears whole or not at all.

    Raises:
        InputError: The file cannot be written.
    """
    types = {
        Kind.TEXT: pa.string(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.BOOLEANS: pa.map_(pa.string(), pa.bool_()),
    }
    fields = [
        pa.field(
            column.name,
            types[column.kind],
            nullable=not column.always,
            metadata={"meaning": column.meaning},
        )
        for column in COLUMNS
    ]
    schema = pa.schema(fields, metadata=file_metadata(run))
    rows = _rows(run)

    def fill(file: IO[bytes]) -> None:
        with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            while group := list(islice(rows, ROWS_AT_ONCE)):
                writer.write_table(pa.Table.from_pylist(group, schema=schema))

    write_filled(path, fill)
    return len(run.plan.cells)


def file_metadata(run: SealedRun) -> dict[str, str]:
    """Return what the file says of the run it came from."""
    return {
        "retire.schema": SCHEMA,
        "retire.plan_digest": run.plan.digest,
        "retire.outcome_root": run.traces.outcome_root,
        "retire.record_root": run.traces.record_root,
        "retire.evidence": str(run.evidence),
        "retire.evidence_words": evidence_words(run.evidence),
        "retire.cells": str(len(run.plan.cells)),
        "retire.cells_without_evidence": str(run.missing),
    }


def _rows(run: SealedRun) -> Iterator[dict[str, Value]]:
    truths = truths_of(run.bundles)
    known = {
        (key, member.name): Known(bundle.card.family, member.predicate, truths[key, member.name])
        for key, bundle in run.bundles.items()
        for member in bundle.members
    }
    for stored in run.cells():
        yield flat(stored, known[stored.cell.bundle, stored.cell.member])
