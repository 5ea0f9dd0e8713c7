"""The OpenAPI document as one page to read: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from retire.pages.html.rendering import escaping

if TYPE_CHECKING:
    from jinja2 import Template

    from retire.service.documenting import Json


def document_page(document: Json) -> str:
    """Return the page of an OpenAPI document.

    Args:
        document: The document, its calls with examples of requests and answers.
    """
    return _template().render(document=document)


@cache
def _template() -> Template:
    environment = escaping("retire.service", str)
    environment.filters.update(anchor=_anchor, shown=_shown)
    return environment.get_template("api.html")


def _anchor(path: str, method: str) -> str:
    words = "".join(char if char.isalnum() else "-" for char in path).strip("-")
    return f"{method}-{words}"


def _shown(example: object) -> str:
    return example if isinstance(example, str) else json.dumps(example, indent=2)
