"""``retire approve``: a person approves, by digest, what the sink of a real world may enforce."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import say
from retire.cli.inputs import read_input
from retire.domain.digests import sha256
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sink.approvals import Approval, Approvals
    from sink.contract import Contract

TYPED = 12
"""How many digits of the digest are typed to confirm."""

_BINDING = re.compile(r"([^=\s]+)=([^=\s]+)\Z")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(approve)


def approve(
    bundle: Annotated[
        Path | None, typer.Argument(metavar="BUNDLE", help="The bundle whose contract it is.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="The approvals file; the sink's user runs this command.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Opaque id of who approves; no name.")] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET=ENTITY",
            help="Entity of the real world for a target; the target itself unless given.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List what is approved.")] = False,
    revoke: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="Take the approval of a contract back.")
    ] = None,
) -> None:
    """Approve the contract of a bundle for real devices, list approvals, or take one back."""
    if file is None:
        raise InputError("an approvals file is needed", where="--file", mend="Give --file FILE")
    if sum((bundle is not None, show, revoke is not None)) != 1:
        raise InputError(
            "give one of BUNDLE, --list and --revoke DIGEST",
            mend="For example: retire approve bundles/panel/ACC_L01 --by operator-1 --file FILE",
        )
    if show:
        _list(file)
    elif revoke is not None:
        _revoke(file, revoke)
    elif bundle is not None:
        _approve(file, bundle, by, bind or [])


def _list(file: Path) -> None:
    approved = _read(file).approvals
    if not approved:
        say("nothing is approved")
    for item in approved:
        say(f"{item.contract}  approved {item.approved_at} by {item.approved_by}")
        for target, entity in item.bindings.items():
            say(f"    {target} is the entity {entity}")


def _revoke(file: Path, digest: str) -> None:
    wanted = digest if digest.startswith("sha256:") else f"sha256:{digest}"

    def change(approvals: Approvals) -> Approvals:
        if approvals.of(wanted) is None:
            raise InputError(
                f"{digest[:80]!r} is not approved",
                where=str(file),
                mend="`retire approve --list` shows the digests that are; give one whole",
            )
        return approvals.without(wanted)

    _change(file, change)
    say(f"{wanted} is no longer approved. Sinks that run learn of it when they are started again")


def _approve(file: Path, bundle: Path, by: str | None, bind: list[str]) -> None:
    from retire.cli.describing import contract_words
    from sink.contract import load_contract

    path = bundle / "contract.yaml" if bundle.is_dir() else bundle
    # What is shown, digested and approved are the same bytes.
    data = read_input(path)
    with _documents():
        contract = load_contract(data, str(path))
    bindings = _bindings(contract, bind)
    approval = _approval(sha256(data), bindings, by)
    before = _read(file).of(approval.contract) if os.path.lexists(file) else None
    say(contract_words(contract, approval.contract, bindings))
    if before is not None:
        say(f"It was approved {before.approved_at} by {before.approved_by}; this replaces that.")
    _confirm(approval.contract)
    _change(file, lambda approvals: approvals.with_approval(approval))
    say(f"{approval.contract} is approved. Sinks learn of it when they are started again")


def _bindings(contract: Contract, bind: list[str]) -> dict[str, str]:
    """Return the entity of the one target on which the sink acts."""
    target = contract.action.target
    bindings = {target: target}
    for text in bind:
        match = _BINDING.match(text)
        if match is None or match[1] != target:
            raise InputError(
                f"{text[:160]!r} binds nothing of this contract",
                where="--bind",
                mend=f"Its one protected target is {target}: --bind {target}=ENTITY",
            )
        bindings[target] = match[2]
    return bindings


def _approval(digest: str, bindings: Mapping[str, str], by: str | None) -> Approval:
    from pydantic import ValidationError

    from sink.approvals import Approval

    if by is None:
        raise InputError(
            "an approval names who gave it",
            where="--by",
            mend="Give an opaque id such as --by operator-1, no name and no address",
        )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251  # the shell's clock
    try:
        return Approval(contract=digest, bindings=dict(bindings), approved_by=by, approved_at=now)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = "--by" if first["loc"][0] == "approved_by" else "--bind"
        raise InputError(first["msg"].removeprefix("Value error, "), where=option) from error


def _confirm(digest: str) -> None:
    """Ask for digits that only a reader of the text above can know.

    Raises:
        InputError: Something else was typed, or nothing can be.
    """
    sys.stdout.write(f"Type the first {TYPED} digits of the digest to approve this: ")
    sys.stdout.flush()
    typed = sys.stdin.readline(200).strip()
    say()
    if typed != digest.removeprefix("sha256:")[:TYPED]:
        raise InputError(
            "those are not the digits, so nothing was approved",
            mend="Read the text above and run the command again",
        )


def _read(file: Path) -> Approvals:
    from sink.approvals_file import read_approvals

    with _documents():
        return read_approvals(file, os.geteuid())


def _change(file: Path, change: Callable[[Approvals], Approvals]) -> None:
    """Change the file, whole or not at all; of two commands at once neither is lost."""
    from sink.approvals import no_approvals, render_approvals
    from sink.approvals_file import approvals_folder, read_approvals

    with _documents(), approvals_folder(file, os.geteuid()) as folder:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            known = os.path.lexists(file)
            changed = change(read_approvals(file, os.geteuid()) if known else no_approvals())
            _write(folder, file.name, render_approvals(changed))
        except OSError as error:
            raise InputError(
                f"the approvals cannot be written: {error.strerror}",
                where=str(file),
                mend="The user of the sink runs this command, in a folder of its own",
            ) from error


def _write(folder: int, name: str, data: bytes) -> None:
    part = f".{name}.{secrets.token_hex(4)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600, dir_fd=folder), "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(part, dir_fd=folder)
            raise
    os.fsync(folder)


@contextmanager
def _documents() -> Iterator[None]:
    """Turn what the sink says of a file into an error of the command line."""
    from sink.strict_yaml import DocumentError

    try:
        yield
    except DocumentError as error:
        raise InputError(error.message, where=error.where, mend=error.mend) from error
