"""Approvals: which contracts may be enforced on real devices, and on which entities. Pure.

Whoever writes a bundle writes its contract, so a contract says nothing about who wanted it. In a
real world the sink therefore enforces a contract only if its digest stands in a file that belongs
to the sink's own user and that no other user can write.
"""

from __future__ import annotations

import json
import re
import stat
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from sink.contract.values import Identifier, Instant
from sink.strict_yaml import StrictModel, read_model

if TYPE_CHECKING:
    import os

SCHEMA: Final = "retire.approvals/v1"

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_APPROVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def _check_digest(value: str) -> str:
    if not _DIGEST.match(value):
        raise ValueError(f"{value[:80]!r} is not sha256: and 64 digits of 0-9 and a-f")
    return value


def _check_approver(value: str) -> str:
    if not _APPROVER.match(value):
        raise ValueError(
            f"{value[:80]!r} is not an opaque id of 1 to 64 letters, digits, dots, dashes and _"
        )
    return value


class Approval(StrictModel):
    """One contract that may be enforced on real devices."""

    contract: Annotated[str, AfterValidator(_check_digest)]
    bindings: dict[Identifier, Identifier] = Field(min_length=1)
    """Entity of the real world, by target of the contract."""
    approved_by: Annotated[str, AfterValidator(_check_approver)]
    """An opaque id of who approved it; no name and no address."""
    approved_at: Instant

    @model_validator(mode="after")
    def _one_to_one(self) -> Approval:
        if len(set(self.bindings.values())) < len(self.bindings):
            raise ValueError("two targets are bound to one entity")
        return self


class Approvals(StrictModel):
    """The whole file."""

    schema_: Literal["retire.approvals/v1"] = Field(alias="schema")
    approvals: tuple[Approval, ...] = ()

    @model_validator(mode="after")
    def _once_each(self) -> Approvals:
        digests = [item.contract for item in self.approvals]
        if len(set(digests)) < len(digests):
            raise ValueError("a contract is approved twice")
        return self

    def of(self, contract: str) -> Approval | None:
        """Return the approval of a contract by its digest, or None."""
        return next((item for item in self.approvals if item.contract == contract), None)

    def with_approval(self, approval: Approval) -> Approvals:
        """Return these approvals with one more; it replaces an earlier one of its contract."""
        return Approvals(schema=SCHEMA, approvals=(*self._others(approval.contract), approval))

    def without(self, contract: str) -> Approvals:
        """Return these approvals without that of a contract."""
        return Approvals(schema=SCHEMA, approvals=self._others(contract))

    def _others(self, contract: str) -> tuple[Approval, ...]:
        return tuple(item for item in self.approvals if item.contract != contract)


def no_approvals() -> Approvals:
    """Return a file's content in which nothing is approved."""
    return Approvals(schema=SCHEMA)


def parse_approvals(data: bytes, where: str) -> Approvals:
    """Read the bytes of an approvals file.

    Raises:
        sink.strict_yaml.DocumentError: With file, line and a hint.
    """
    return read_model(Approvals, data, where)


def render_approvals(approvals: Approvals) -> bytes:
    """Return the bytes of an approvals file; every text in quotes, so that YAML guesses nothing."""
    lines = [f"schema: {SCHEMA}", "approvals:" if approvals.approvals else "approvals: []"]
    for item in approvals.approvals:
        lines.append(f"  - contract: {json.dumps(item.contract)}")
        lines.append("    bindings:")
        lines += [f"      {target}: {json.dumps(bound)}" for target, bound in item.bindings.items()]
        lines.append(f"    approved_by: {json.dumps(item.approved_by)}")
        lines.append(f"    approved_at: {json.dumps(item.approved_at)}")
    return "\n".join((*lines, "")).encode()


def file_fault(file: os.stat_result, user: int) -> str | None:
    """Return why nobody can rely on a file's content, or None.

    Args:
        file: What the system says of the opened file, not of its name.
        user: The number of the user that reads it.
    """
    if not stat.S_ISREG(file.st_mode):
        return "it is no regular file"
    if file.st_uid != user:
        return f"it belongs to user {file.st_uid}, and its reader is user {user}"
    return _shared(file)


def folder_fault(folder: os.stat_result, user: int) -> str | None:
    """Return why somebody else could put another file into a folder, or None."""
    if folder.st_uid not in {user, 0}:
        return f"its folder belongs to user {folder.st_uid}, and its reader is user {user}"
    shared = _shared(folder)
    return f"its folder can be changed: {shared}" if shared else None


def _shared(found: os.stat_result) -> str | None:
    # With access control lists the group's bits are their mask, so a listed writer shows here.
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write (mode {stat.S_IMODE(found.st_mode):04o})"
    return None
