"""Schema migrations, run by ``retire.store.database.migrate``."""
