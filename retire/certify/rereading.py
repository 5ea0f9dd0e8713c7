"""How long before an act its governing records were read again, where the world is a device.

A stub world compares and acts in one step. A house in Home Assistant cannot: its actuator reads
the records, then sends, and says in the outcome how far apart the two were at most. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NOTED = re.compile(r"records read at most ([0-9]+\.[0-9]) ms before the call")


@dataclass(frozen=True, slots=True)
class Rereading:
    """The acts that stated a gap, and the largest gap in milliseconds (None: no act did)."""

    acts: int
    largest_milliseconds: str | None


def rereading_of(rows: Iterable[Mapping[str, Any]]) -> Rereading:
    """Return the gap of the mediated acts among some trace rows.

    Args:
        rows: Bodies of trace rows. An unmediated act compares nothing and is not counted.
    """
    gaps = [
        Decimal(found.group(1))
        for row in rows
        if row["d2"]["outcome"] == "allow"
        and (found := _NOTED.search(str((row["d2"]["act"] or {}).get("detail")))) is not None
    ]
    return Rereading(len(gaps), str(max(gaps)) if gaps else None)
