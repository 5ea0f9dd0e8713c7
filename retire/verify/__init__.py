"""Finished runs: read from their folder, recomputed, and held against what was signed."""
