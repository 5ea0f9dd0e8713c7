"""Measurements, run by hand: ``python -m tests.bench.panel``. Nothing here passes or fails."""
