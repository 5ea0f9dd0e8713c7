"""Reading what a text expects of a version: a comparison with a dotted number, or a name."""

from __future__ import annotations

import re
from typing import Final

from retire.deployments.simulated.bounds import NEGATED, OPPOSITE
from retire.deployments.simulated.expectations import Expectation, Release

_QUOTED: Final = re.compile(r"\"([^\"]{1,60})\"")
_RELEASE: Final = r"v?(?P<release>\d{1,9}(?:\.(?:\d{1,9}|x))*)(?P<plus>\+)?"
_RELEASE_FORMS: Final = tuple(
    (re.compile(pattern), sign)
    for pattern, sign in (
        (
            (
                rf"{_RELEASE} ?(?:or|and) (?:newer|later|higher|above|up|upwards?|more recent"
                rf"|greater|after)\b"
            ),
            ">=",
        ),
        (rf"{_RELEASE} (?:onwards?|upwards?)\b", ">="),
        (rf"{_RELEASE} ?(?:or|and) (?:older|earlier|lower|below|before)\b", "<="),
        (
            (
                rf"\b(?:at least|no older than|not older than|no earlier than|no lower than"
                rf"|not below|not before|not under|since|minimum|>=|starting (?:with|at"
                rf"|from)) (?:the )?(?:version |release |firmware )?{_RELEASE}"
            ),
            ">=",
        ),
        (
            (
                rf"\b(?:at most|no newer than|not newer than|no later than|not above|up to"
                rf"|<=) (?:version |release |firmware )?{_RELEASE}"
            ),
            "<=",
        ),
        (
            (
                rf"\b(?:newer|later|higher|more recent) than (?:version |release "
                rf"|firmware )?{_RELEASE}"
            ),
            ">",
        ),
        (rf"\b(?:above|beyond|after|over) (?:version |release |firmware )?{_RELEASE}", ">"),
        (
            (
                rf"\b(?:older|earlier|lower|less recent) than (?:version |release "
                rf"|firmware )?{_RELEASE}"
            ),
            "<",
        ),
        (
            (
                rf"\b(?:below|before|under|predates?|prior to|behind) (?:version |release "
                rf"|firmware )?{_RELEASE}"
            ),
            "<",
        ),
        (
            (
                rf"\b(?:other than|anything but|but|different from|differs from|not|except"
                rf"|not exactly) (?:be |is |at |on )?(?:exactly )?(?:version |release |firmware "
                rf"|schema )?{_RELEASE}"
            ),
            "!=",
        ),
        (rf"{_RELEASE} (?:series|line|branch|family)\b", "prefix"),
        (rf"(?<![\w.]){_RELEASE}(?![\w.]*\d)", "=="),
    )
)


def read_version(text: str) -> Expectation | None:
    """Return the comparison with a dotted version, or the quoted release name, or None."""
    for pattern, sign in _RELEASE_FORMS:
        match = pattern.search(text)
        if match is None:
            continue
        bound = match["release"].removesuffix(".x")
        if match["plus"]:
            sign = ">="  # noqa: PLW2901  # "3.2+" means that or newer, whatever stands before it
        elif match["release"].endswith(".x"):
            sign = "prefix"  # noqa: PLW2901  # "3.2.x"
        elif NEGATED.search(text[: match.start()]):
            sign = OPPOSITE.get(sign, sign)  # noqa: PLW2901  # "is not 3.2 or newer"
        return Release(sign, bound)
    quoted = _QUOTED.findall(text)
    if quoted:
        negated = re.search(r"\b(?:not|other than|anything but)\b", text[: text.index('"')])
        return Release("!=" if negated else "==", quoted[0])
    return None
