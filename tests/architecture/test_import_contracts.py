"""The direction of imports: the declared contracts hold, and nothing escapes their lists."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tests.architecture.sources import circles, imports_among, sources_of

pytestmark = pytest.mark.architecture

ROOT = Path(__file__).parents[2]
PUBLISHED = {
    "sink": {
        "sink",
        "sink.strict_yaml",
        "sink.contract",
        "sink.proposal",
        "sink.decision",
        "sink.record",
        # The file of approvals is written by `retire approve` and read by the sink.
        "sink.approvals",
        "sink.approvals_file",
    },
    "observer": {"observer", "observer.sighting"},
}
FOR_HARDWARE = {
    "sink": {"sink.ports", "sink.record_file", "sink.keys"},
    "observer": {"observer.port"},
}


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph(
        "retire",
        "counterfactuals",
        "sink",
        "observer",
        "hardware",
        exclude_type_checking_imports=True,
        cache_dir=None,
    )


def inside(module, package):
    return module == package or module.startswith(package + ".")


def test_the_declared_contracts_are_kept():
    result = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_no_modules_import_each_other_in_a_circle():
    """Not for types either: what a type-only circle ties together cannot be read apart."""
    product = sources_of(ROOT, "retire", "counterfactuals", "sink", "observer", "hardware")
    assert circles(imports_among(product)) == []


@pytest.mark.parametrize("package", ["sink", "observer"])
def test_only_published_modules_are_imported_from_outside(graph, package):
    """The lists in the contracts name what is private today; this holds for any new module."""
    for module in graph.modules:
        if not inside(module, package):
            continue
        for importer in graph.find_modules_that_directly_import(module):
            if inside(importer, package):
                continue
            allowed = PUBLISHED[package]
            if inside(importer, "hardware"):
                allowed = allowed | FOR_HARDWARE[package]
            assert module in allowed, f"{importer} imports {module}"


def test_acting_and_sensing_each_have_their_importers(graph):
    doors = {"hardware.actuate": {"sink.__main__", "hardware.direct"}}
    doors["hardware.sense"] = {
        "observer.__main__",
        "hardware.bench.preflight",
        "hardware.bench.recipient",
    }
    for package, allowed in doors.items():
        importers = {
            importer
            for module in graph.modules
            if inside(module, package)
            for importer in graph.find_modules_that_directly_import(module)
            if not inside(importer, package)
        }
        assert importers == allowed


def test_no_module_of_one_twin_is_reached_from_the_other(graph):
    for module in graph.find_upstream_modules("observer", as_package=True):
        assert not inside(module, "sink")
        assert not inside(module, "counterfactuals")
        assert not inside(module, "retire")
    for module in graph.find_upstream_modules("sink", as_package=True):
        assert not inside(module, "observer")
        assert not inside(module, "retire")


def test_every_package_of_the_product_stands_in_a_layer(graph):
    text = (ROOT / ".importlinter").read_text("utf-8")
    layers = text[text.index("containers =") :]
    for module in sorted(graph.find_children("retire")):
        name = module.removeprefix("retire.")
        # Settings are read by the shells; they import nothing of the product.
        if name == "settings":
            assert not any(inside(m, "retire") for m in graph.find_upstream_modules(module))
            continue
        assert name in layers.replace("(", " ").replace(")", " ").split(), module
