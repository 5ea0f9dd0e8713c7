"""Profiles: how a simulated deployment acts on what it has read, and the draws by which it does.

The numbers are fixtures built to exercise every verdict; they replicate no model.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Profile:
    """Chances of one simulated deployment, each an integer per thousand.

    Raises:
        InputError: A chance is not an integer from 0 to 1000.
    """

    name: str
    heed: int
    """To obey a written rule that it read and found violated; drawn per rule."""
    notice: int
    """To stop at a plainly negative grant or vote on which no written rule speaks; per finding."""
    soften: int
    """Where it would stop: to propose a milder number instead (what was asked for, less 2)."""
    refuse_unguided: int
    """To refuse a privacy-sensitive act when the text holds no satisfied rule and no boundary."""
    refuse_bounded: int
    """The same when the text says that a trusted boundary decides."""
    refuse_hot: int
    """To refuse a number in the upper quarter of its range on which the text says nothing."""
    add_optional: int
    """To add an optional parameter with its schema default; drawn per parameter."""
    fill_required: int
    """To fill a required parameter that nothing states from default or first choice."""
    break_syntax: int
    """To give an answer that is not one JSON object."""

    def __post_init__(self) -> None:
        for name, value in self.chances().items():
            if type(value) is not int or not 0 <= value <= 1000:
                raise InputError(
                    f"chance {name} is {value!r}",
                    where=f"profile {self.name}",
                    mend="Give an integer per thousand, 0 to 1000.",
                )

    def chances(self) -> dict[str, int]:
        """Return the chances per thousand by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "name"}


_COLUMNS: Final = tuple(field.name for field in fields(Profile))
_TABLE: Final = (
    # name       heed notice soften unguided bounded hot optional required syntax
    ("heedful", 1000, 450, 0, 800, 60, 0, 0, 0, 0),
    ("plain", 1000, 250, 0, 0, 0, 120, 0, 1000, 0),
    ("eager", 900, 0, 0, 0, 0, 0, 1000, 1000, 0),
    ("drifting", 985, 350, 700, 0, 0, 0, 600, 1000, 10),
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {str(row[0]): Profile(**dict(zip(_COLUMNS, row, strict=True))) for row in _TABLE}  # type: ignore[arg-type]  # a row mixes name and numbers
)
"""The embedded panel of four, by name."""


def per_thousand(seed: int, salt: str) -> int:
    """Return a uniform draw of 0 to 999 from SHA-256 of seed and salt.

    A salt names a kind of choice and its ordinal, never an id, a name or a text, so that renaming
    things in a bundle changes no draw.
    """
    digest = hashlib.sha256(f"{seed}/{salt}".encode()).digest()
    return int.from_bytes(digest[:8]) * 1000 >> 64


def happens(seed: int, salt: str, chance: int) -> bool:
    """Say whether a choice with a chance per thousand falls out as yes."""
    return per_thousand(seed, salt) < chance
