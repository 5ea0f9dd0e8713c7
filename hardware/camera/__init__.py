"""A stand-in for a network camera: a device of its own that streams, and misbehaves on request."""
