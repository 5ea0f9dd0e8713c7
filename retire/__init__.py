"""Certify whether text may be removed from the skills of agents that act on physical devices."""
