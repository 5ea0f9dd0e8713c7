"""Whether a candidate is a full skill with clauses removed, and which clauses those are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from retire.domain.errors import NotAReduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.skill.document import SkillDocument

_QUOTED = 120
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Alignment:
    """The ids of the full skill, in document order, that a candidate keeps and lacks."""

    kept: tuple[str, ...]
    deleted: tuple[str, ...]


def align(full: SkillDocument, candidate: SkillDocument) -> Alignment:
    """Match a candidate's clauses with those of the full skill by the digests of their texts.

    The match is a longest common subsequence; among equal texts it takes the leftmost.

    Raises:
        NotAReduction: The candidate has another frontmatter, a clause or heading that the full
            skill does not have, or has them in another order; the text and its line are given.
    """
    _check_frontmatter(full, candidate)
    wanted = [clause.digest for clause in candidate.clauses]
    places = _embed(wanted, [clause.digest for clause in full.clauses])
    if places is None:
        stray = candidate.clauses[_stray(wanted, [clause.digest for clause in full.clauses])]
        raise _not_a_reduction("clause", stray.text, stray.first_line)
    captions = [caption.text for caption in candidate.captions]
    if _embed(captions, [caption.text for caption in full.captions]) is None:
        number = _stray(captions, [caption.text for caption in full.captions])
        raise _not_a_reduction(
            "heading or frame", captions[number], candidate.captions[number].line
        )
    kept = set(places)
    ids = [clause.id for clause in full.clauses]
    return Alignment(
        kept=tuple(ids[place] for place in places),
        deleted=tuple(name for place, name in enumerate(ids) if place not in kept),
    )


def _check_frontmatter(full: SkillDocument, candidate: SkillDocument) -> None:
    before = full.data[: full.frontmatter_end].rstrip(b"\r\n").splitlines()
    after = candidate.data[: candidate.frontmatter_end].rstrip(b"\r\n").splitlines()
    if before == after:
        return
    same = sum(1 for _ in _common_start(before, after))
    text = after[same].decode("utf-8") if same < len(after) else "(a line is missing)"
    raise _not_a_reduction("frontmatter line", text, same + 1)


def _common_start(before: Sequence[bytes], after: Sequence[bytes]) -> Sequence[bytes]:
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        if old != new:
            return before[:number]
    return before[: min(len(before), len(after))]


def _not_a_reduction(thing: str, text: str, line: int) -> NotAReduction:
    quoted = " ".join(text.split())
    if len(quoted) > _QUOTED:
        quoted = quoted[: _QUOTED - 1] + "…"
    return NotAReduction(
        f"not a reduction: the full skill has no such {thing} here: {quoted!r}",
        where=f"candidate:{line}",
        mend="A candidate may only leave clauses out; do not add, edit or move text",
    )


def _embed(wanted: Sequence[_Item], present: Sequence[_Item]) -> list[int] | None:
    """Return the leftmost places at which all wanted items stand in order, or None."""
    places: list[int] = []
    at = 0
    for item in wanted:
        while at < len(present) and present[at] != item:
            at += 1
        if at == len(present):
            return None
        places.append(at)
        at += 1
    return places


def _stray(wanted: Sequence[_Item], present: Sequence[_Item]) -> int:
    """Return the first wanted item outside the longest common subsequence."""
    rows = [[0] * (len(present) + 1) for _ in range(len(wanted) + 1)]
    for i in range(len(wanted) - 1, -1, -1):
        for j in range(len(present) - 1, -1, -1):
            rows[i][j] = (
                rows[i + 1][j + 1] + 1
                if wanted[i] == present[j]
                else max(rows[i + 1][j], rows[i][j + 1])
            )
    at = 0
    for i, item in enumerate(wanted):
        place = next((j for j in range(at, len(present)) if present[j] == item), None)
        if place is None or rows[i + 1][place + 1] + 1 < rows[i][at]:
            return i
        at = place + 1
    return len(wanted) - 1
