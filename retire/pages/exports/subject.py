"""What a certificate of one bundle is about: its full skill, and the clauses that may not go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.support import Support
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from retire.certify.certificate import Certificate
    from retire.certify.support import ConditionSupport
    from retire.domain.clause import Clause
    from retire.skill import SkillDocument


@dataclass(frozen=True, slots=True)
class Blocked:
    """A clause that may not go, and what the audit says of it."""

    clause: Clause
    support: ConditionSupport

    @property
    def rule(self) -> str:
        """The predicate that the clause states, or what else its condition is about."""
        return self.support.predicate or str(self.support.kind)

    @property
    def leaks(self) -> bool:
        """Whether its removal was seen to leak; otherwise nothing tested it."""
        return self.support.status is Support.AUDITED_LEAKS


def bundle_of(certificate: Certificate, skill: SkillDocument) -> str:
    """Return the id of the one bundle that a certificate is about.

    Raises:
        InputError: It is about a panel, or about another full skill.
    """
    if len(certificate.removed) != 1:
        raise InputError(
            f"the certificate is about {len(certificate.removed)} bundles",
            mend="Name the certificate of one bundle, as `retire certify` makes it",
        )
    (bundle,) = certificate.removed
    if certificate.digests.get(f"{bundle}/full-skill") != skill.digest:
        raise InputError(
            "the certificate is about another full skill",
            mend="Name the bundle as it was when it was certified",
        )
    return bundle


def blocked_clauses(certificate: Certificate, skill: SkillDocument) -> tuple[Blocked, ...]:
    """Return the clauses of its full skill that may not go, in document order.

    Raises:
        InputError: It names a clause that the skill does not have.
    """
    found = [Blocked(skill.clause(it.clause), it) for it in certificate.conditions if it.blocks]
    return tuple(sorted(found, key=lambda blocked: blocked.clause.start))
