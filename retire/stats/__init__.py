"""Exact tests and bounds that stand beside a certificate and never decide it."""
