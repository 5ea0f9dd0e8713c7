"""The reference monitor: the only door through which a mediated proposal becomes an act.

Published for others: ``sink.strict_yaml``, ``sink.contract``, ``sink.proposal``,
``sink.decision``, ``sink.record``. Everything else belongs to the sink's own process.
"""
