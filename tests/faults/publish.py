"""``python -m tests.faults.publish``: run every fault and write ``docs/sink-faults.md``."""

from __future__ import annotations

import asyncio
import re
from itertools import groupby
from pathlib import Path

from tests.faults.matrix import REPEATS, Row, all_rows

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sink-faults.md"
TIME = re.compile(r"[0-9.]+ ms \|$", re.MULTILINE)

HEAD = f"""# What the sink does under faults

Each row breaks one thing around the real monitor and says what came of it: the decision, its
reason, what reached the device, and what the decision record holds afterwards. Device, clock and
world are scripted; the record is a real file. The rows under "Processes" start the real programs.
Written by

```
python -m tests.faults.publish
```

and compared with the code by a test, apart from the times. In every row that shows an act, a second
and simpler reading of the contract allows that act, and its intent stood on the record before it
was sent. The test fails otherwise.

How to read it:

- **intent** is the entry that allows and spends the attempt; it is durable before anything is sent.
  An intent without an outcome is in doubt and is never sent again.
- **none** in the column of decisions: no sink answered, because it did not start or because the
  connection ended.
- **reply** is the median time from message to reply over {REPEATS} runs on the machine that wrote
  this page. Nearly all of it is the disk: a reply waits until its entry is durable. A row that
  waits for the deadline (50 ms here, 10 s in service) was run once.
- The household behind the rows asks for 26.5 C in the den; 16 C to 24 C lie in its free band.

What these rows cannot show: a predicate is judged by pure code that waits for nothing, so it has no
deadline of its own; the deadline covers the world's answers. A consent carries no age in a
contract, only an answer. The sink's own clock dates entries and judges nothing: windows and ages
are judged at the `as_of` of the frozen snapshot, so a sink whose clock is wrong decides as before
and dates its entries wrongly; without any clock nothing can be dated, so nothing is entered and
nothing sent. A message without usable identities is denied without an entry, because there is no
attempt to enter it under. The processes that are killed or started with a broken contract run on
this machine's own disk and sockets; a power cut was not tried.
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def line(row: Row) -> str:
    reply = f"{row.seconds * 1000:.2f} ms" if row.seconds is not None else "-"
    cells = (row.what, row.decision, row.reason, row.sent, row.record, reply)
    return "| " + " | ".join(cell(text) for text in cells) + " |"


def page(rows: list[Row]) -> str:
    """The whole page."""
    parts = [HEAD]
    for group, members in groupby(rows, key=lambda row: row.group):
        parts.append(
            f"## {group}\n\n"
            "| fault | decision | reason | sent to the device | on record | reply |\n"
            "| --- | --- | --- | --- | --- | --- |\n"
            + "\n".join(line(row) for row in members)
            + "\n"
        )
    acts = sum(len(row.acts) for row in rows)
    parts.append(
        f"{len(rows)} rows; {acts} acts in all, each allowed by the second reading and recorded "
        "before it was sent.\n"
    )
    return "\n".join(parts)


def without_times(text: str) -> str:
    return TIME.sub("- |", text)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(asyncio.run(all_rows(REPEATS))))


if __name__ == "__main__":
    main()
