"""Names of people at enrolment: two that look alike cannot both stand in one consent. Pure.

Votes are counted by opaque id, so a name never adds one. But a person who reads "Zoe, Zoe" cannot
tell who was asked, and a look-alike letter is how somebody would try it.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def folded(name: str) -> str:
    """Return a name's comparison form: compatibility normal form, case folded, spaces single."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def name_fault(names: Iterable[str]) -> str:
    """Return why these names cannot stand together, or an empty text."""
    seen: dict[str, str] = {}
    for name in names:
        if any(unicodedata.category(char).startswith("C") for char in name):
            return f"the name {name!r} holds an invisible or control character"
        scripts = {unicodedata.name(char, "?").split()[0] for char in name if char.isalpha()}
        if len(scripts) > 1:
            mixed = ", ".join(sorted(scripts)).lower()
            return f"the name {name!r} mixes scripts ({mixed}), so it may pass for another"
        form = folded(name)
        if form in seen:
            return f"the names {seen[form]!r} and {name!r} cannot be told apart"
        seen[form] = name
    return ""
