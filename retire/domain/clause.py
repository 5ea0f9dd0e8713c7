"""A clause: the smallest deletable unit of a skill's body."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ClauseKind(StrEnum):
    """What the clause is in Markdown."""

    SENTENCE = "sentence"
    LIST_ITEM = "list_item"
    TABLE_ROW = "table_row"
    CODE_BLOCK = "code_block"
    HTML_BLOCK = "html_block"


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of one file.

    ``start`` and ``end`` are byte offsets into the original file, ``first_line`` and
    ``last_line`` count from 1, ``digest`` is over the bytes of ``text``.
    """

    id: str
    kind: ClauseKind
    start: int
    end: int
    first_line: int
    last_line: int
    text: str
    digest: str


class Role(StrEnum):
    """What a human audit says of a clause."""

    TASK_GUIDANCE = "task_guidance"
    EXECUTION_CONDITION = "execution_condition"
    UNAUDITED = "unaudited"


class ConditionKind(StrEnum):
    """What an execution condition is about."""

    PREDICATE = "predicate"
    BINDING = "binding"
    VERIFICATION = "verification"
