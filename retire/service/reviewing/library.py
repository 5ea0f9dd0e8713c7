"""Which runs there are to review, and opening one: the service's own, or those of a folder."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from retire.certify.joining import OBSERVER
from retire.deployments import EMBEDDED
from retire.domain.digests import sha256
from retire.domain.document import DocumentFault, read_document
from retire.domain.errors import InputError, RetireError
from retire.domain.evidence import Evidence
from retire.matrix import PlanStatement
from retire.pages.html.runs_page import ListedRun
from retire.pages.text import many
from retire.runner.folder import RunFolder, read_bytes
from retire.runner.purging import SUFFIX, note_of, refuse_purged
from retire.service.reviewing.opening import LiveRun, sealed_review
from retire.service.reviewing.rows import StoredTraces, read_only, stored_count
from retire.store.store import ALONE
from retire.verify.run import SealedRun, read_certificates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from sqlalchemy import Engine

    from retire.deployments import Catalog
    from retire.pages.html.review import Review
    from retire.service.port import Keeper, RunRow

_OPEN = 8
"""Runs that are kept open; a run of 25,000 cells takes about 60 MB."""


class ReviewSource(Protocol):
    """Where runs come from. A run that ``owner`` may not see raises KeyError, like one unknown."""

    async def runs(self, owner: str | None, before: str, limit: int) -> Sequence[ListedRun]:
        """Return runs, newest first, older than the run ``before``; empty begins at the newest."""

    async def open(self, run: str, owner: str | None) -> Review:
        """Return a run; raises KeyError where there is none."""


class Shelf:
    """Opened runs, by folder and what was sealed there; the least used are let go.

    Args:
        catalog: The deployments as they are configured now.
    """

    def __init__(self, catalog: Catalog = EMBEDDED) -> None:
        self._catalog = catalog
        self._open: OrderedDict[Path, tuple[str, Callable[[], Review]]] = OrderedDict()
        self._turn = threading.Lock()
        self._turns: dict[Path, threading.Lock] = {}

    def opened(self, run: str, title: str, root: Path, engine: Engine | None = None) -> Review:
        """Return a run as it stands now; a sealed one is read again only when its seal is another.

        Args:
            run: What addresses call it, and its name in the service's database.
            title: What people call it.
            root: Its folder.
            engine: The service's database; None where the run has one of its own.

        Raises:
            InputError: Not the folder of a run, or it was purged.
            EvidenceError: A file of it is damaged or was replaced.
            IncompleteError: Its database does not answer.
        """
        refuse_purged(root)
        with self._turn:
            turn = self._turns.setdefault(root, threading.Lock())
        with turn:
            folder = RunFolder(root)
            state = _state_of(folder)
            known = self._open.get(root)
            if known is None or known[0] != state:
                known = (state, self._reader(run, title, folder, engine))
            with self._turn:
                self._open[root] = known
                self._open.move_to_end(root)
                while len(self._open) > _OPEN:
                    self._open.popitem(last=False)
            return known[1]()

    def _reader(
        self, run: str, title: str, folder: RunFolder, engine: Engine | None
    ) -> Callable[[], Review]:
        if folder.seal.exists():
            review = sealed_review(run, title, SealedRun(folder.root), self._catalog)
            return lambda: review
        own = (read_only(folder.database), ALONE)
        record = folder.processes / OBSERVER / "record.jsonl"
        traces = StoredTraces(*((engine, run) if engine is not None else own), record)
        return LiveRun(run, title, folder, traces, self._catalog).review


def _state_of(folder: RunFolder) -> str:
    """Return what an opened run may be kept for: its seal, and the size and age of its traces."""
    if not folder.seal.exists():
        return "unsealed"
    stat = folder.traces.stat() if folder.traces.exists() else None
    size = f"{stat.st_size}.{stat.st_mtime_ns}" if stat else ""
    certificates = sorted(folder.certificates.glob("*.json"))
    ages = [f"{path.name}.{path.stat().st_mtime_ns}" for path in certificates]
    return f"{sha256(folder.seal.read_bytes())} {size} {' '.join(ages)}"


class FolderRuns:
    """The runs below a folder, or the one that the folder is. Implements ReviewSource.

    Args:
        root: The folder.
        catalog: The deployments as they are configured now.
    """

    def __init__(self, root: Path, catalog: Catalog = EMBEDDED) -> None:
        self._root = root
        self._shelf = Shelf(catalog)
        self._listed: dict[Path, tuple[str, ListedRun]] = {}

    def folders(self) -> dict[str, Path]:
        """Return the folders of runs by name, newest first; of a purged one, where it was."""
        if (self._root / "plan.json").exists():
            return {self._root.resolve().name: self._root}
        ages = {path.parent: path.stat().st_mtime for path in self._root.glob("*/plan.json")}
        for note in self._root.glob(f"*{SUFFIX}"):
            ages[note.with_suffix("")] = note.stat().st_mtime
        return {path.name: path for path in sorted(ages, key=ages.__getitem__, reverse=True)}

    async def runs(self, owner: str | None, before: str, limit: int) -> Sequence[ListedRun]:
        """Return runs, newest first; raises KeyError if ``before`` is none of them."""
        del owner
        return await asyncio.to_thread(self._page, before, limit)

    def _page(self, before: str, limit: int) -> list[ListedRun]:
        folders = self.folders()
        names = list(folders)
        if before:
            if before not in folders:
                raise KeyError(before)
            names = names[names.index(before) + 1 :]
        return [self._row(name, folders[name]) for name in names[:limit]]

    def _row(self, name: str, path: Path) -> ListedRun:
        state = _state_of(RunFolder(path))
        known = self._listed.get(path)
        if known is None or known[0] != state or state == "unsealed":
            known = (state, listed_folder(name, path))
            self._listed[path] = known
        return known[1]

    async def open(self, run: str, owner: str | None) -> Review:
        """Return a run; raises KeyError where there is none."""
        del owner
        return await asyncio.to_thread(self.opened, run)

    def warm(self) -> None:
        """Read the newest runs through before anybody waits for one of them."""
        for name in list(self.folders())[:_OPEN]:
            with suppress(RetireError):  # its page says what is wrong with it
                _ = self.opened(name).maps

    def opened(self, run: str) -> Review:
        """Return a run; raises KeyError where there is none."""
        return self._shelf.opened(run, run, self.folders()[run])


def listed_folder(name: str, path: Path) -> ListedRun:
    """Return a run's folder as a list shows it; one that is damaged says so."""
    folder = RunFolder(path)
    if note_of(path).is_file():
        note = "its answers, bundle copies and records are gone"
        return ListedRun(name, name, "", "purged", going_on=False, note=note)
    try:
        plan = read_document(PlanStatement, read_bytes(folder.plan))
    except (InputError, DocumentFault) as error:
        return ListedRun(name, name, "", "damaged", going_on=False, note=str(error))
    sealed = folder.seal.exists()
    certificates = read_certificates(folder.certificates) if sealed else ()
    items = [it.item for it in certificates if it.item is not None]
    faults = sum(1 for it in certificates if it.fault)
    protocol = plan.protocol
    return ListedRun(
        id=name,
        title=name,
        about=f"{many(len(protocol.bundles), 'bundle')}, {', '.join(protocol.deployments)}",
        state="ended" if sealed else "not finished",
        going_on=not sealed,
        evidence=Evidence.of_all(it.evidence for it in items) if items else None,
        verdicts=Counter(str(it.verdict) for it in items),
        done=_lines(folder.traces) if sealed else stored_count(read_only(folder.database), ALONE),
        planned=plan.cells,
        when=_instant((folder.seal if sealed else folder.plan).stat().st_mtime),
        note=f"{many(faults, 'certificate')} cannot be believed" if faults else "",
    )


def _lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


class KeptRuns:
    """The runs of the service. Implements ReviewSource.

    Args:
        keeper: Says who may see which run.
        runs: The folder of the runs' folders.
        engine: The service's database.
        catalog: The deployments that the operator configured.
    """

    def __init__(self, keeper: Keeper, runs: Path, engine: Engine, catalog: Catalog) -> None:
        self._keeper = keeper
        self._runs = runs
        self._engine = engine
        self._evidence = {name: catalog.named(name).evidence for name in catalog.names}
        self._shelf = Shelf(catalog)

    async def runs(self, owner: str | None, before: str, limit: int) -> Sequence[ListedRun]:
        """Return runs, newest first; raises KeyError if ``before`` is none of them."""
        rows = await self._keeper.runs(owner, before or None, limit)
        return [self._row(row) for row in rows]

    def _row(self, row: RunRow) -> ListedRun:
        return ListedRun(
            id=row.id,
            title=_title(row),
            about=row.id,
            state=str(row.state),
            going_on=row.state.going_on,
            evidence=self._evidence.get(row.deployment),
            verdicts={row.verdict: 1} if row.verdict else {},
            done=row.cells_done,
            planned=row.cells_planned,
            when=(row.ended_at or row.created_at).replace("T", " ").replace("Z", " UTC"),
            note=row.error or "",
        )

    async def open(self, run: str, owner: str | None) -> Review:
        """Return a run; raises KeyError where there is none.

        Raises:
            InputError: Nothing is kept of it to be shown: not begun, or purged.
        """
        row = await self._keeper.run(run, owner)
        folder = self._runs / run
        refuse_purged(folder)
        if not (folder / "plan.json").exists():
            waiting = row.state.going_on
            raise InputError(
                "the run has not begun" if waiting else "nothing of the run is kept to be shown",
                where=run,
                mend="Load the page again in a moment"
                if waiting
                else row.error or "It ended before its plan was written, or it was purged",
            )
        return await asyncio.to_thread(self._shelf.opened, run, _title(row), folder, self._engine)


def _title(row: RunRow) -> str:
    return f"{row.bundle}, {row.placement} for {row.deployment}"
