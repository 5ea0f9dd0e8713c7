"""Home Assistant as a world: its instance, its house, a client, and a local start."""
