"""How far the programs of a run were kept apart, from the users that ran them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SAME_USER = "same_user"
USERS = "users"

_ALONE = ("runner", "world", "direct", "observer")
_SINKS = ("sink-canonical", "sink-exact")
_ROOT = 0

_RUNNER = "The prompt really sent, and a live model's raw output, rest on trust in the runner."
_FORGED_BY = {
    # Also where less is known than that they were several: the more cautious of the two.
    SAME_USER: "All programs ran as one user: whoever is that user could have forged any of them.",
    USERS: "World, sinks, direct adapter, observer and runner each ran as a user of its own, as "
    "the kernel told the runner of its connections; root could have forged any of them, and that "
    "this is what the kernel told rests on trust in the runner.",
}


def separation_of(passes: Sequence[Mapping[str, int]]) -> str:
    """Return the separation of a run: ``users`` if every pass of it had it, else ``same_user``.

    Args:
        passes: For each pass of the run the user of each program and of the runner; an empty one
            stands for a pass of which nothing was kept.
    """
    return USERS if passes and all(_apart(users) for users in passes) else SAME_USER


def _apart(users: Mapping[str, int]) -> bool:
    """Whether nobody could have been somebody else; root can be everybody."""
    if not {*_ALONE, *_SINKS} <= users.keys():
        return False
    alone = {users[name] for name in _ALONE}
    sinks = {users[name] for name in _SINKS}
    return len(alone) == len(_ALONE) and not alone & sinks and _ROOT not in alone | sinks


def trust_of(separation: str) -> tuple[str, ...]:
    """Return what a certificate says rests on trust."""
    return (_RUNNER, _FORGED_BY[separation])
