"""The matched generator: one invalid member per predicate, each with a proof. Pure."""
