"""A candidate beside the full skill, clause by clause: what went, and what let it go. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.certify.certifying import removed_clauses
from retire.certify.support import Support
from retire.domain.cell import Condition
from retire.domain.clause import Role
from retire.domain.digests import sha256
from retire.pages.deleted import condition_words
from retire.pages.html import addresses
from retire.pages.html.gap_view import MEANINGS, leak_address
from retire.pages.phrases import CONDITIONS
from retire.pages.text import many
from retire.prompts.prompt import model_text
from retire.skill import parse, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.bundle import Bundle
    from retire.certify.support import ClauseSupport
    from retire.domain.clause import Clause
    from retire.pages.html.review import Review, SignedCertificate
    from retire.skill import LedgerEntry


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One clause, or (``clause`` empty) a heading, on both sides.

    ``gone`` says that the candidate lacks it. ``support`` is a status, empty where there is none.
    """

    clause: str
    line: int
    text: str
    gone: bool
    role: str = ""
    rule: str = ""
    licence: str = ""
    support: str = ""
    support_meaning: str = ""
    words: str = ""
    effects: int = 0
    leak_href: str = ""


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
    bundle: str
    bundle_title: str
    deployment: str
    condition: str
    meaning: str
    summary: str
    description: str
    lines: tuple[DiffLine, ...]
    full_text: str
    candidate_text: str
    full_digest: str
    candidate_digest: str
    replaced: bool
    """Whether the model reads a fixed contract in place of any skill."""
    model_facing: str
    bundles: tuple[Choice, ...]
    deployments: tuple[Choice, ...]
    conditions: tuple[Choice, ...]
    run_href: str
    certificate_href: str


def diff_page(
    review: Review,
    deployment: str,
    bundle_id: str,
    condition: str,
    trials: Sequence[Mapping[str, Any]],
) -> DiffPage:
    """Return a candidate beside its full skill.

    Args:
        review: The run.
        deployment: One of its deployments.
        bundle_id: One of its bundles.
        condition: One of its conditions.
        trials: The reducer's trial ledger for the deployment and bundle; empty where a person
            made the candidate.

    Raises:
        KeyError: The run has no such part.
    """
    bundle = review.bundles[bundle_id]
    protocol = review.plan.protocol
    if deployment not in protocol.deployments or condition not in protocol.conditions:
        raise KeyError(f"{deployment} {condition}")
    placed = Condition(condition)
    deleted = review.deleted.get((deployment, bundle_id), ())
    removed = removed_clauses(bundle, placed, deleted)
    candidate = render(bundle.skill, removed)
    signed = review.certificate_of(deployment, condition)
    maker = _Lines(review, bundle, placed, signed, _licences(review, placed, deleted, trials))
    lines = maker.lines(set(removed), candidate)
    text = candidate.decode("utf-8")
    return DiffPage(
        id=review.id,
        title=review.title,
        bundle=bundle_id,
        bundle_title=bundle.card.title,
        deployment=deployment,
        condition=condition,
        meaning=CONDITIONS[placed],
        summary=_summary(lines),
        description=bundle.skill.description,
        lines=lines,
        full_text=bundle.skill.data.decode("utf-8"),
        candidate_text=text,
        full_digest=bundle.skill.digest,
        candidate_digest=sha256(candidate),
        replaced=placed in {Condition.B5, Condition.B6},
        model_facing=model_text(placed, text),
        bundles=_choices(review, protocol.bundles, (deployment, bundle_id, condition), 1),
        deployments=_choices(review, protocol.deployments, (deployment, bundle_id, condition), 0),
        conditions=_choices(
            review, sorted(protocol.conditions), (deployment, bundle_id, condition), 2
        ),
        run_href=addresses.run(review.id, *((deployment, condition) if signed else ())),
        certificate_href=addresses.certificate(review.id, signed.name) if signed else "",
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
    leaking = sum(bool(line.effects) for line in gone)
    words = (
        f"{len(gone)} of {many(len(clauses), 'clause')} are gone: "
        f"{many(conditions, 'execution condition')} and "
        f"{counts[str(Role.TASK_GUIDANCE)]} of task guidance."
    )
    return words + (f" {many(leaking, 'condition')} leaked without it." if leaking else "")


def _licences(
    review: Review,
    condition: Condition,
    deleted: Sequence[str],
    trials: Sequence[Mapping[str, Any]],
) -> Mapping[str, str]:
    """Return what licensed each deletion, by clause; clauses of the placement have no trial."""
    if condition in {Condition.B5, Condition.B6}:
        return {}
    if review.given:
        return dict.fromkeys(deleted, "A person left it out; no trial was run.")
    found: dict[str, str] = {}
    for trial in trials:
        if trial["accepted"]:
            words = (
                f"Trial {trial['number']} ({trial['phase']}): without "
                f"{many(len(trial['deleted']), 'clause')}, {trial['completed']} of "
                f"{many(trial['tasks'], 'authorized task')} still completed."
            )
            for clause in trial["deleted"]:
                found.setdefault(clause, words)
    return {clause: found.get(clause, "The trial ledger does not name it.") for clause in deleted}


class _Lines:
    """Makes the lines of one candidate."""

    def __init__(
        self,
        review: Review,
        bundle: Bundle,
        condition: Condition,
        signed: SignedCertificate | None,
        licences: Mapping[str, str],
    ) -> None:
        self._review = review
        self._bundle = bundle
        self._condition = condition
        self._item = signed.item if signed is not None else None
        self._licences = licences
        self._roles = {entry.id: entry for entry in bundle.ledger.clauses}
        support = self._item.support if self._item is not None else ()
        self._support: Mapping[str, ClauseSupport] = {
            it.clause.clause: it for it in support if it.clause.bundle == bundle.id
        }

    def lines(self, removed: set[str], candidate: bytes) -> tuple[DiffLine, ...]:
        """Return clauses and headings in the order of the file."""
        standing = Counter(it.text for it in parse(candidate, "candidate").captions)
        lines = [self._clause(clause, gone=clause.id in removed) for clause in self._skill_clauses]
        for caption in self._bundle.skill.captions:
            standing[caption.text] -= 1
            gone = standing[caption.text] < 0
            lines.append(DiffLine("", caption.line, caption.text, gone))
        return tuple(sorted(lines, key=lambda line: (line.line, line.clause)))

    @property
    def _skill_clauses(self) -> Sequence[Clause]:
        return self._bundle.skill.clauses

    def _clause(self, clause: Clause, *, gone: bool) -> DiffLine:
        entry = self._roles[clause.id]
        role, rule = str(entry.role), entry.predicate or str(entry.kind or "")
        if not gone:
            return DiffLine(clause.id, clause.first_line, clause.text, gone, role, rule)
        support = self._support.get(clause.id)
        status = support.status if support is not None else None
        effects = support.effects if support is not None else 0
        leak = ""
        if effects and self._item is not None:
            leak = leak_address(self._review, self._item, self._bundle.id, entry.predicate)
        return DiffLine(
            clause=clause.id,
            line=clause.first_line,
            text=clause.text,
            gone=True,
            role=role,
            rule=rule,
            licence=self._licences.get(clause.id) or self._placement_words(entry),
            support=str(status or ""),
            support_meaning=MEANINGS[Support(status)] if status is not None else "",
            words=condition_words(entry, support) if self._is_condition(entry) else "",
            effects=effects,
            leak_href=leak,
        )

    def _is_condition(self, entry: LedgerEntry) -> bool:
        return entry.role is Role.EXECUTION_CONDITION and self._item is not None

    def _placement_words(self, entry: LedgerEntry) -> str:
        if self._condition in {Condition.B5, Condition.B6}:
            return "The placement replaces the whole skill by a fixed responsibility contract."
        if entry.role is Role.EXECUTION_CONDITION:
            return "The placement moves it from the prompt to the sink; no trial was needed."
        return "Nothing on record licensed it."
