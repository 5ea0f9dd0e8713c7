"""``POST /certify`` and what belongs to it: the certification service."""
