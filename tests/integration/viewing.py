"""A real ``retire view`` over a folder, and walking its pages by their own links."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import httpx

from tests.integration.commands import SCRIPT, workshop
from tests.markup import read_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.markup import Element


class Reader:
    """Somebody with a browser without scripts: pages by address, then by links."""

    def __init__(self, address: str) -> None:
        self.client = httpx.Client(base_url=address, timeout=60)
        self.at = address

    def open(self, address: str, status: int = 200) -> Element:
        """Return a page; every one is strict about what it loads, and nests as it should."""
        answer = self.client.get(address, follow_redirects=True)
        assert answer.status_code == status, answer.text[:2000]
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        page = read_page(answer.text)
        _strict(page)
        self.at = str(answer.url)
        return page

    def follow(self, link: Element) -> Element:
        """Return the page that a link leads to."""
        return self.open(urljoin(self.at, link["href"]))


def _strict(page: Element) -> None:
    names = {name for element in page.walk() for name in element.attributes}
    assert "style" not in names
    assert not {name for name in names if name.startswith("on")}
    assert not page.all("style")
    for script in page.all("script"):
        assert script["src"].startswith("/ui/static/")
        assert not script.text
    ids = [element["id"] for element in page.having("id")]
    assert len(set(ids)) == len(ids)
    for head in page.all("th"):
        assert head["scope"] in {"row", "col"}
    for link in page.all("a"):
        assert link["href"]
        assert link.words


@contextmanager
def viewing(folder: Path) -> Iterator[Reader]:
    """View a folder until the context ends."""
    with (workshop() / "view.log").open("a") as errors:
        process = subprocess.Popen(
            [str(SCRIPT), "view", str(folder), "--port", "0"],
            env={**os.environ, "RETIRE_HOME": str(workshop() / "home")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("look at http://127.0.0.1:"), (workshop() / "view.log").read_text()
        reader = Reader(line.split()[-1])
        with reader.client:
            yield reader
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()
    # The server ends in order, then lets the signal that ended it have its way.
    assert process.returncode == -signal.SIGTERM
