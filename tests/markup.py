"""Reading pages as their readers' browsers do: elements with attributes and text, no matching."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VOID = {"br", "hr", "img", "input", "link", "meta", "path", "rect"}


@dataclass
class Element:
    """One element; ``parts`` are texts and elements in their order."""

    tag: str
    attributes: dict[str, str]
    parts: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text within, as it stands."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def words(self) -> str:
        """All text within, on one line."""
        return " ".join(self.text.split())

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def walk(self) -> Iterator[Element]:
        """Yield this element and all within."""
        yield self
        for part in self.parts:
            if isinstance(part, Element):
                yield from part.walk()

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """Return every element of a tag with these attributes; ``data_x`` stands for ``data-x``."""
        named = {name.rstrip("_").replace("_", "-"): value for name, value in wanted.items()}
        return [
            element
            for element in self.walk()
            if tag in {"", element.tag}
            and all(element.attributes.get(name) == value for name, value in named.items())
        ]

    def one(self, tag: str = "", **wanted: str) -> Element:
        """Return the first of them."""
        found = self.all(tag, **wanted)
        assert found, f"no {tag} with {wanted}"
        return found[0]

    def having(self, name: str) -> list[Element]:
        """Return every element that has an attribute."""
        return [element for element in self.walk() if name in element.attributes]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} repeats an attribute: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].parts.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].parts.append(data)


def read_page(text: str) -> Element:
    """Return a page's elements; fails on markup that does not nest."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader._open) == 1, f"{reader._open[-1].tag} is not closed"
    return reader.root
