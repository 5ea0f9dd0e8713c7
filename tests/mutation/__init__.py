"""Mutation testing of the code that the door's decisions rest on; run by hand."""
