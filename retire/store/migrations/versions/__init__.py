"""The migrations, in order of their names."""
