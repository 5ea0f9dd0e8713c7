"""Execution: processes, cells, reductions, resume."""
