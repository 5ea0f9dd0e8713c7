"""Exact one-sided bounds on a proportion."""

from __future__ import annotations

from retire.domain.errors import InputError


def upper_bound(successes: int, trials: int, confidence: float = 0.95) -> float:
    """Return the exact (Clopper-Pearson) one-sided upper bound on a proportion.

    It is the largest rate under which seeing ``successes`` or fewer of ``trials`` still has
    probability ``1 - confidence``: 0 of 12 at 0.95 gives 0.221. It speaks of other bundles only
    "if bundles were a random sample", which the paper does not claim (paper, section 8).

    Raises:
        InputError: The counts do not fit together, or the confidence is not between 0 and 1.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise InputError(
            f"{successes} of {trials} is not a proportion",
            where="exact upper bound",
            mend="Give 0 <= successes <= trials and at least one trial",
        )
    if not 0 < confidence < 1:
        raise InputError(
            f"confidence {confidence} lies outside the open interval 0 to 1",
            where="exact upper bound",
            mend="Use 0.95 for a one-sided 95% bound",
        )
    if successes == trials:
        return 1.0
    # Imported late: scipy costs more time than everything else here together.
    from scipy.special import betaincinv  # noqa: PLC0415

    return float(betaincinv(successes + 1, trials - successes, confidence))
