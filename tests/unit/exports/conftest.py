"""Run folders made by hand."""

from __future__ import annotations

import pytest

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
