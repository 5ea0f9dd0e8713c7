"""Run folders made by hand."""

from __future__ import annotations

import pytest

from retire.service.reviewing.library import Shelf
from tests.made_folders import certified_folder, sealed_folder


@pytest.fixture
def sealed(tmp_path):
    """Return a maker of sealed folders."""

    def make(*args, **kwargs):
        return sealed_folder(tmp_path / "run", *args, **kwargs)

    return make


@pytest.fixture
def certified(tmp_path):
    """Return a maker of sealed folders with signed certificates beside their traces."""

    def make(*args, **kwargs):
        return certified_folder(tmp_path / "run", tmp_path / "home", *args, **kwargs)

    return make


@pytest.fixture
def opened():
    """Return a reader of run folders, as the report and the pages have it."""

    def read(root):
        return Shelf().opened("a run", "a run", root, None)

    return read
