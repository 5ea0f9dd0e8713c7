"""The calls of the service, one module for each kind of thing."""
