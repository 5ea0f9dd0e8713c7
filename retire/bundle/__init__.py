"""Load and validate a bundle folder."""

from retire.bundle.bundle import FILES, Bundle, DevelopmentView
from retire.bundle.loading import build_bundle, find_bundles, load_bundle, read_files

__all__ = [
    "FILES",
    "Bundle",
    "DevelopmentView",
    "build_bundle",
    "find_bundles",
    "load_bundle",
    "read_files",
]
