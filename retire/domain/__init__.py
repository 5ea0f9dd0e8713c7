"""The words of the project as frozen types: digests, clauses, cells, outcomes, errors."""
