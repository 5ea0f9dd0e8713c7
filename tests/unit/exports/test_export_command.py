"""``retire export``: where it may write, and what it says when a library is not there."""

from __future__ import annotations

import sys

import pytest

from retire.cli.export import export
from retire.domain.errors import InputError


def test_nothing_to_write_is_refused(tmp_path):
    with pytest.raises(InputError) as caught:
        export(tmp_path)
    assert "--parquet" in caught.value.mend


@pytest.mark.parametrize(
    ("option", "name"), [("parquet", "traces.jsonl"), ("inspect", "seal.json")]
)
def test_a_file_of_the_run_is_never_replaced(sealed, option, name):
    root = sealed()
    before = (root / name).read_bytes()
    with pytest.raises(InputError) as caught:
        export(root, **{option: root / name})
    assert option in caught.value.where
    assert (root / name).read_bytes() == before


def test_a_folder_with_other_files_is_not_filled(sealed):
    root = sealed()
    with pytest.raises(InputError) as caught:
        export(root, inspect=root)
    assert "--inspect" in caught.value.where


@pytest.mark.parametrize(
    ("option", "library", "module", "extra"),
    [
        ("parquet", "pyarrow", "parquet", "data"),
        ("inspect", "inspect_ai.log", "inspect_log", "inspect"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    sealed, monkeypatch, option, library, module, extra
):
    root = sealed()
    monkeypatch.setitem(sys.modules, library, None)
    for name in (module, "inspect_sample"):
        monkeypatch.delitem(sys.modules, f"retire.pages.exports.{name}", raising=False)
    target = root.parent / ("x.parquet" if option == "parquet" else "x")
    with pytest.raises(InputError) as caught:
        export(root, **{option: target})
    assert f"retire[{extra}]" in caught.value.mend
    assert not target.exists()


def test_a_disk_that_cannot_be_written_is_named(sealed):
    pytest.importorskip("pyarrow")
    root = sealed()
    blocker = root.parent / "a-file"
    blocker.write_text("")
    with pytest.raises(InputError) as caught:
        export(root, parquet=blocker / "x.parquet")
    assert "--parquet" in caught.value.where
