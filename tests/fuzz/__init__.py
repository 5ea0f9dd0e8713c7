"""Hostile and random bytes against the sink, judged by a second, simpler reading."""
