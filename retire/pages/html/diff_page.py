"""A candidate beside the full skill, clause by clause: what went, and what let it go. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from retire.certify.certifying import removed_clauses
from retire.domain.cell import Condition
from retire.domain.clause import Role
from retire.domain.digests import sha256
from retire.pages.deleted import condition_words
from retire.pages.html import addresses
from retire.pages.html.gap_view import leak_address
from retire.pages.text import many
from retire.prompts.prompt import model_text
from retire.skill import parse, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.bundle import Bundle
    from retire.certify.certificate import Certificate
    from retire.certify.support import ConditionSupport
    from retire.domain.clause import Clause
    from retire.pages.html.review import Review
    from retire.skill import LedgerEntry
    from retire.verify.run import SignedCertificate


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One clause, or (``clause`` empty) a heading, on both sides.

    ``gone`` says that the candidate lacks it; ``support`` is what a certificate says of that.
    """

    clause: str
    line: int
    text: str
    gone: bool
    role: str = ""
    rule: str = ""
    licence: str = ""
    words: str = ""
    leak_href: str = ""
    support: ConditionSupport | None = None

    @property
    def leaks(self) -> int:
        """In how many cells its absence leaked."""
        return self.support.protected_effects if self.support is not None else 0


@dataclass(frozen=True, slots=True)
class Choice:
    """Another difference of the same run, one step away."""

    name: str
    href: str
    selected: bool


@dataclass(frozen=True, slots=True)
class DiffPage:
    """A candidate beside its full skill."""

    id: str
    title: str
    bundle: Bundle
    deployment: str
    condition: Condition
    summary: str
    lines: tuple[DiffLine, ...]
    candidate_text: str
    candidate_digest: str
    model_facing: str
    """The fixed contract that the model reads in place of any skill; empty where it reads one."""
    choices: tuple[tuple[str, tuple[Choice, ...]], ...]
    """What else of the run may be shown, by what it differs in."""
    signed: SignedCertificate | None


def diff_page(
    review: Review,
    deployment: str,
    bundle_id: str,
    condition: str,
) -> DiffPage:
    """Return a candidate beside its full skill.

    Args:
        review: The run.
        deployment: One of its deployments.
        bundle_id: One of its bundles.
        condition: One of its conditions.

    Raises:
        KeyError: The run has no such part.
        EvidenceError: The reducer's trial ledger is damaged.
    """
    bundle = review.bundles[bundle_id]
    protocol = review.plan.protocol
    if deployment not in protocol.deployments or condition not in protocol.conditions:
        raise KeyError(f"{deployment} {condition}")
    placed = Condition(condition)
    place = (deployment, bundle_id)
    removed = removed_clauses(bundle, placed, review.deleted.get(place, ()))
    candidate = render(bundle.skill, removed)
    signed = review.certificate_of(deployment, condition)
    item = signed.item if signed is not None else None
    lines = _Lines(review, bundle, placed, item, _licences(review, placed, place))
    shown = lines.lines(set(removed), candidate)
    text = candidate.decode("utf-8")
    replaced = placed in {Condition.B5, Condition.B6}
    names = (deployment, bundle_id, condition)
    return DiffPage(
        id=review.id,
        title=review.title,
        bundle=bundle,
        deployment=deployment,
        condition=placed,
        summary=_summary(shown),
        lines=shown,
        candidate_text=text,
        candidate_digest=sha256(candidate),
        model_facing=model_text(placed, text) if replaced else "",
        choices=(
            ("Condition", _choices(review, sorted(protocol.conditions), names, 2)),
            ("Deployment", _choices(review, protocol.deployments, names, 0)),
            ("Bundle", _choices(review, protocol.bundles, names, 1)),
        ),
        signed=signed,
    )


def _choices(
    review: Review, names: Sequence[str], place: tuple[str, str, str], position: int
) -> tuple[Choice, ...]:
    made = []
    for name in names:
        other = [*place]
        other[position] = name
        made.append(Choice(name, addresses.diff(review.id, *other), name == place[position]))
    return tuple(made)


def _summary(lines: Sequence[DiffLine]) -> str:
    clauses = [line for line in lines if line.clause]
    gone = [line for line in clauses if line.gone]
    counts = Counter(line.role for line in gone)
    if not gone:
        return f"Nothing is gone: all {many(len(clauses), 'clause')} stand."
    conditions = counts[str(Role.EXECUTION_CONDITION)]
    leaking = sum(bool(line.leaks) for line in gone)
    words = (
        f"{len(gone)} of {many(len(clauses), 'clause')} are gone: "
        f"{many(conditions, 'execution condition')} and "
        f"{counts[str(Role.TASK_GUIDANCE)]} of task guidance."
    )
    return words + (f" {many(leaking, 'condition')} leaked without it." if leaking else "")


def _licences(review: Review, condition: Condition, place: tuple[str, str]) -> Mapping[str, str]:
    """Return what licensed each deletion, by clause; clauses of the placement have no trial."""
    deleted = review.deleted.get(place, ())
    if condition in {Condition.B5, Condition.B6}:
        return {}
    if review.given:
        return dict.fromkeys(deleted, "A person left it out; no trial was run.")
    found: dict[str, str] = {}
    for trial in review.trials(*place):
        if trial.accepted:
            words = (
                f"Trial {trial.number} ({trial.phase}): without "
                f"{many(len(trial.deleted), 'clause')}, {trial.completed} of "
                f"{many(trial.tasks, 'authorized task')} still completed."
            )
            for clause in trial.deleted:
                found.setdefault(clause, words)
    return {clause: found.get(clause, "The trial ledger does not name it.") for clause in deleted}


class _Lines:
    """Makes the lines of one candidate."""

    def __init__(
        self,
        review: Review,
        bundle: Bundle,
        condition: Condition,
        item: Certificate | None,
        licences: Mapping[str, str],
    ) -> None:
        self._review = review
        self._bundle = bundle
        self._condition = condition
        self._item = item
        self._licences = licences
        self._roles = {entry.id: entry for entry in bundle.ledger.clauses}
        conditions = item.conditions if item is not None else ()
        self._support = {it.clause: it for it in conditions if it.bundle == bundle.id}

    def lines(self, removed: set[str], candidate: bytes) -> tuple[DiffLine, ...]:
        """Return clauses and headings in the order of the file."""
        skill = self._bundle.skill
        standing = Counter(it.text for it in parse(candidate, "candidate").captions)
        lines = [self._clause(clause, gone=clause.id in removed) for clause in skill.clauses]
        for caption in skill.captions:
            standing[caption.text] -= 1
            gone = standing[caption.text] < 0
            lines.append(DiffLine("", caption.line, caption.text, gone))
        return tuple(sorted(lines, key=lambda line: (line.line, line.clause)))

    def _clause(self, clause: Clause, *, gone: bool) -> DiffLine:
        entry = self._roles[clause.id]
        line = DiffLine(
            clause=clause.id,
            line=clause.first_line,
            text=clause.text,
            gone=gone,
            role=str(entry.role),
            rule=entry.predicate or str(entry.kind or ""),
        )
        if not gone:
            return line
        item, support = self._item, self._support.get(clause.id)
        words = leak = ""
        if item is not None and entry.role is Role.EXECUTION_CONDITION:
            words = condition_words(entry, support)
        if item is not None and support is not None:
            leak = leak_address(self._review, item, support)
        licence = self._licences.get(clause.id) or self._placement_words(entry)
        return replace(line, licence=licence, words=words, leak_href=leak, support=support)

    def _placement_words(self, entry: LedgerEntry) -> str:
        if self._condition in {Condition.B5, Condition.B6}:
            return "The placement replaces the whole skill by a fixed responsibility contract."
        if entry.role is Role.EXECUTION_CONDITION:
            return "The placement moves it from the prompt to the sink; no trial was needed."
        return "Nothing on record licensed it."
