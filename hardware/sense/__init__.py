"""Sensors: read-only access to ground truth. Imported by ``observer.__main__``."""
