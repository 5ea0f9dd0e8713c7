"""The certifier: gates, accounting, support gap, certificates. Pure."""
