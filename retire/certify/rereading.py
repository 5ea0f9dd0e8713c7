"""How long before an act its governing records were read again, where the world is a device.

A stub world compares and acts in one step. A house in Home Assistant cannot: its actuator reads
the records, then sends, and says in the outcome how far apart the two were at most. Pure.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from retire.domain.document import Document
from retire.domain.outcome import D2Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from retire.domain.trace import Trace

_NOTED = re.compile(r"records read at most ([0-9]+\.[0-9]) ms before the call")


class Rereading(Document):
    """The acts that stated a gap, and the largest gap in milliseconds (None: no act did)."""

    acts: int
    largest_gap_milliseconds: str | None


def rereading_of(traces: Iterable[Trace]) -> Rereading:
    """Return the gap of the mediated acts among some traces.

    Args:
        traces: Of a run. An unmediated act compares nothing and is not counted.
    """
    gaps = [
        Decimal(found.group(1))
        for trace in traces
        if trace.d2.outcome is D2Outcome.ALLOW
        and trace.d2.act is not None
        and (found := _NOTED.search(trace.d2.act.detail)) is not None
    ]
    return Rereading(acts=len(gaps), largest_gap_milliseconds=str(max(gaps)) if gaps else None)
