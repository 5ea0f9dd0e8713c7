"""The reducer: delete what authorized development tasks do not need. Pure and route-blind."""

from retire.reduce.strategies import (
    STRATEGIES,
    Reduction,
    Search,
    Strategy,
    Trial,
    TrialResult,
    allowed_losses,
    search,
)

__all__ = [
    "STRATEGIES",
    "Reduction",
    "Search",
    "Strategy",
    "Trial",
    "TrialResult",
    "allowed_losses",
    "search",
]
