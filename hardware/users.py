"""The users that the programs run as, and the folders through which they meet.

Every program has a user of its own. What one may reach of another is a matter of owners, groups
and modes, so that the kernel refuses the rest: a program's folders are open to one group at most,
and no program is a member of the group that reaches the sockets.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = ("world", "sink", "direct", "observer")
"""What ``--users`` names; both sinks are one user."""

_LARGEST = 2**32 - 2
"""The largest number of a user or group (Linux, chown(2): the next one means "as it is")."""

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UsersError(Exception):
    """The users cannot be had, or a folder is not what it must be for them."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user by number, with the group that is this user's own."""

    user: int
    group: int


@dataclass(frozen=True, slots=True)
class Users:
    """Who the programs are.

    Attributes:
        accounts: By name, as in :data:`PROGRAMS`.
        readers: The group that reaches the sockets and reads the records: the runner's.
    """

    accounts: dict[str, Account]
    readers: int

    def of(self, program: str) -> Account:
        """Return the account of a program; ``sink-canonical`` and ``sink-exact`` share one."""
        return self.accounts[program.partition("-")[0]]


def user_of(name: str) -> Account:
    """Return an account by name or number; a number without an account is its own group.

    Raises:
        UsersError: There is no such user.
    """
    number = _number(name)
    try:
        entry = pwd.getpwnam(name) if number is None else pwd.getpwuid(number)
    except KeyError as error:
        if number is not None:
            return Account(number, number)
        raise UsersError(f"there is no user {name!r} on this machine") from error
    return Account(entry.pw_uid, entry.pw_gid)


def group_of(name: str) -> int:
    """Return a group by name or number.

    Raises:
        UsersError: There is no such group.
    """
    if (number := _number(name)) is not None:
        return number
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError as error:
        raise UsersError(f"there is no group {name!r} on this machine") from error


def _number(name: str) -> int | None:
    if not (name.isascii() and name.isdecimal()):
        return None
    if len(name) > 10 or int(name) > _LARGEST:
        raise UsersError(f"{name} is no number of a user or group")
    return int(name)


def read_users(text: str, group: str | None) -> Users:
    """Read ``--users world=NAME,sink=NAME,direct=NAME,observer=NAME`` and ``--group NAME``.

    Raises:
        UsersError: A program has no user, two share one or a group, or one is root; or whoever
            reads this is not root and could start nothing as somebody else.
    """
    if os.geteuid() != 0:
        raise UsersError("--users needs root: nobody else can start programs as other users")
    if group is None:
        raise UsersError("--users needs --group, whose members may reach the sockets")
    named = dict(part.partition("=")[::2] for part in text.split(","))
    if sorted(named) != sorted(PROGRAMS) or not all(named.values()):
        wanted = ",".join(f"{program}=NAME" for program in PROGRAMS)
        raise UsersError(f"--users is {text!r}; give {wanted}")
    users = Users({program: user_of(named[program]) for program in PROGRAMS}, group_of(group))
    _refuse_shared(users)
    return users


def _refuse_shared(users: Users) -> None:
    accounts = list(users.accounts.values())
    if any(0 in (account.user, account.group) for account in accounts):
        raise UsersError("no program may be root or of root's group: root is not separated")
    if len({account.user for account in accounts}) < len(PROGRAMS):
        raise UsersError("two programs have the same user; each needs one of its own")
    groups = {account.group for account in accounts} | {users.readers}
    if len(groups) < len(PROGRAMS) + 1:
        raise UsersError(
            "each program's user needs a group of its own, and --group must be none of them"
        )


def refuse_writable(path: Path) -> None:
    """Check that nobody but root can replace a folder or what leads to it.

    Raises:
        UsersError: Somebody can, or a folder is missing.
    """
    for folder in (path, *path.parents):
        try:
            found = folder.lstat()
        except OSError as error:
            raise UsersError(f"{folder} cannot be looked at: {error.strerror}") from error
        sticky = found.st_mode & stat.S_ISVTX and folder != path
        if not stat.S_ISDIR(found.st_mode):
            raise UsersError(f"{folder} is not a folder; a link could be turned elsewhere")
        if found.st_uid != 0 or (found.st_mode & _OTHERS_WRITE and not sticky):
            raise UsersError(
                f"{folder} can be changed by others than root; take a folder that belongs to root"
            )


def shared_folder(path: Path, readers: int) -> None:
    """Make a folder of root in which programs have folders; the group may list it.

    Raises:
        UsersError: Something else is there.
    """
    path.mkdir(mode=0o700, exist_ok=True)
    refuse_writable(path)
    os.chown(path, -1, readers)
    path.chmod(0o751)


def own_folder(path: Path, account: Account, group: int, *, inherited: bool) -> None:
    """Make a folder of a program that one group may read.

    Only root may change what ``path`` lies in. The last step gives the folder away, so that one
    which was cut off half made still belongs to root, and is finished the next time.

    Args:
        path: The folder.
        account: The program.
        group: Who else may enter and list it.
        inherited: Whether what is made in it is that group's, too.

    Raises:
        UsersError: The folder is there and belongs to somebody else.
    """
    path.mkdir(mode=0o700, exist_ok=True)
    if _is_given(path, account, group):
        return
    os.chown(path, -1, group)
    path.chmod(0o2750 if inherited else 0o750)
    os.chown(path, account.user, -1)


def take_back(folder: Path) -> None:
    """Remove a folder of root with what programs have in it, if it is there.

    Without the right to pass over modes, root removes only what is root's: each program's folder is
    taken back first, never through a link.
    """
    with suppress(FileNotFoundError):
        for place in folder.iterdir():
            os.chown(place, os.geteuid(), -1, follow_symlinks=False)
        shutil.rmtree(folder)


def readable_file(path: Path, account: Account, group: int) -> None:
    """Make an empty file of a program that one group may read, before its folder is given away.

    Raises:
        UsersError: The file is there and belongs to somebody else.
    """
    if path.parent.lstat().st_uid != os.geteuid() or (
        os.path.lexists(path) and _is_given(path, account, group)
    ):
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchown(descriptor, -1, group)
        os.fchmod(descriptor, 0o640)
        os.fchown(descriptor, account.user, -1)
    finally:
        os.close(descriptor)


def _is_given(path: Path, account: Account, group: int) -> bool:
    """Whether the program has it already; raises UsersError where somebody else has."""
    found = path.lstat()
    if found.st_uid == os.geteuid():
        return False
    if (found.st_uid, found.st_gid) == (account.user, group):
        return True
    raise UsersError(
        f"{path} belongs to user {found.st_uid} and group {found.st_gid}, not to {account.user} "
        f"and {group}; it was begun with other users"
    )
