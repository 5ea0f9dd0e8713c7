"""The stub world: ground truth with a sequenced journal, a reset face and an act face."""
