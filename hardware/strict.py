"""Messages and documents of our own: closed models, and what is wrong with one in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pydantic import ValidationError


class Strict(BaseModel):
    """Frozen, strict, and closed: a key that is not declared is refused, never dropped."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def fault_of(error: ValidationError, whole: str = "the message") -> str:
    """Return the first fault as place and words, cut where it quotes something long."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or whole}: {first['msg']}"[:300]
