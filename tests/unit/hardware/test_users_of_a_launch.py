"""Names of users and groups, and places that others could change."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

import pytest

from hardware.users import UsersError, group_of, read_users, refuse_writable, user_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_user_is_found_by_name_or_number() -> None:
    root = pwd.getpwuid(0)
    assert (user_of(root.pw_name).user, user_of(root.pw_name).group) == (0, root.pw_gid)
    assert user_of("0") == user_of(root.pw_name)
    assert (user_of("4200000001").user, user_of("4200000001").group) == (4200000001,) * 2
    assert group_of("4200000001") == 4200000001
    assert group_of("root") == 0


@pytest.mark.parametrize("name", ["", "nobody-of-this-name", "-1", "4294967295", "9" * 5000, "1.0"])
def test_what_names_nobody_is_refused(name: str) -> None:
    with pytest.raises(UsersError):
        user_of(name)
    with pytest.raises(UsersError):
        group_of(name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "world",
        "world=1,sink=2,direct=3",
        "world=1,sink=2,direct=3,observer=",
        "world=1,sink=2,direct=3,observer=4,extra=5",
        "world=1,sink=2,direct=3,observer=3",
        "world=1,sink=2,direct=3,observer=0",
        "world=1,sink=2,direct=3,observer=9",
    ],
)
def test_users_that_are_not_apart_are_refused(text: str) -> None:
    """Whoever is not root is refused already for that."""
    with pytest.raises(UsersError):
        read_users(text, "9")


def test_users_need_a_group() -> None:
    with pytest.raises(UsersError):
        read_users("world=1,sink=2,direct=3,observer=4", None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns folders that nobody else can change")
def test_a_place_is_roots_alone_up_to_the_top(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    place.mkdir(parents=True)
    refuse_writable(place)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for other in (tmp_path / "link" / "b", tmp_path / "missing"):
        with pytest.raises(UsersError):
            refuse_writable(other)
    for mode in (0o775, 0o757, 0o777, 0o1777):
        place.chmod(mode)
        with pytest.raises(UsersError):
            refuse_writable(place)
    place.chmod(0o755)
    os.chown(tmp_path / "a", 4200000001, -1)
    with pytest.raises(UsersError):
        refuse_writable(place)
