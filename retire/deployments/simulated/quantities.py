"""Numbers with units, word numbers and spans of time, as exact fractions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_WORD_NUMBERS: Final = {word: Fraction(value) for value, word in enumerate(_SMALL.split())} | {
    "thirty": Fraction(30),
    "forty": Fraction(40),
    "forty-five": Fraction(45),
    "fifty": Fraction(50),
    "sixty": Fraction(60),
    "seventy": Fraction(70),
    "eighty": Fraction(80),
    "ninety": Fraction(90),
    "hundred": Fraction(100),
    "half": Fraction(1, 2),
    "a quarter": Fraction(1, 4),
    "a hundred": Fraction(100),
    "one hundred": Fraction(100),
    "two hundred": Fraction(200),
    "three hundred": Fraction(300),
    "a thousand": Fraction(1000),
    "one thousand": Fraction(1000),
}
_TENS: Final = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_ONES: Final = "one|two|three|four|five|six|seven|eight|nine"
_PLAIN_WORDS: Final = "|".join(sorted(_WORD_NUMBERS, key=len, reverse=True))

NUMBER: Final = (
    rf"(?:[-\u2212]?\d+(?:\.\d+)?(?![\d:])|(?:{_TENS})[- ](?:{_ONES})\b|(?:{_PLAIN_WORDS})\b)"
)
"""Regular expression of a number in digits or words (lower-case text)."""

_UNIT_TABLE: Final[dict[str, tuple[str, Fraction, Fraction]]] = {}


def _units(names: str, dimension: str, factor: Fraction | int, offset: Fraction | int = 0) -> None:
    for name in names.split():
        _UNIT_TABLE[name] = (dimension, Fraction(factor), Fraction(offset))


_units("c celsius centigrade degc", "temperature", 1)
_units("degrees degree deg", "temperature", 1)
_units("f fahrenheit degf", "temperature", Fraction(5, 9), Fraction(-160, 9))
_units("k kelvin kelvins", "temperature", 1, Fraction(-27315, 100))
_units("s sec secs second seconds", "time", 1)
_units("min mins minute minutes", "time", 60)
_units("h hr hrs hour hours", "time", 3600)
_units("day days d", "time", 86400)
_units("week weeks", "time", 604800)
_units("% percent pct", "share", 1)
_units("w watt watts", "power", 1)
_units("kw kilowatt kilowatts", "power", 1000)
_units("wh", "energy", 1)
_units("kwh", "energy", 1000)
_units("a amp amps ampere amperes", "current", 1)
_units("ma milliamp milliamps", "current", Fraction(1, 1000))
_units("v volt volts", "voltage", 1)
_units("mv millivolt millivolts", "voltage", Fraction(1, 1000))
_units("bar bars", "pressure", 1)
_units("mbar hpa", "pressure", Fraction(1, 1000))
_units("kpa", "pressure", Fraction(1, 100))
_units("pa", "pressure", Fraction(1, 100000))
_units("psi", "pressure", Fraction(689476, 10000000))
_units("mm millimetre millimetres millimeter millimeters", "length", Fraction(1, 1000))
_units("cm centimetre centimetres centimeter centimeters", "length", Fraction(1, 100))
_units("m metre metres meter meters", "length", 1)
_units("l litre litres liter liters", "volume", 1)
_units("kg kilo kilos kilogram kilograms", "mass", 1)
_units("g gram grams", "mass", Fraction(1, 1000))
_units("lx lux", "light", 1)
_units("ppm", "parts", 1)
_units("db decibel decibels", "sound", 1)
_units("km/h kph", "speed", 1)
_units("m/s", "speed", Fraction(36, 10))
_units("rpm", "rotation", 1)

# A lone "a" after a number is nearly always an ampere, but "in", "per" and the like are not units.
_UNIT_NAMES: Final = "|".join(re.escape(n) for n in sorted(_UNIT_TABLE, key=len, reverse=True))
UNIT: Final = rf"(?:{_UNIT_NAMES})(?![\w/])"
"""Regular expression of a known unit (lower-case text)."""
QUANTITY: Final = rf"(?:{NUMBER})(?:[ -]?(?:degrees? )?(?:{UNIT}))?"
"""Regular expression of a number with an optional unit."""

_QUANTITY_PARTS: Final = re.compile(
    rf"(?P<number>{NUMBER})(?:[ -]?(?:degrees? )?(?P<unit>{UNIT}))?"
)
_TIME_UNIT: Final = r"(?:seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h|days?|weeks?)\b"
SPAN: Final = (
    rf"(?:half an hour|half a minute|a quarter of an hour|(?:{NUMBER}|an?"
    rf"|one)[ -]?(?:{_TIME_UNIT})|(?:minute|hour|day|week)\b)"
)
"""Regular expression of a span of time; a bare unit ("the last hour") means one of it."""
_SPAN_PARTS: Final = re.compile(rf"(?:(?P<number>{NUMBER}|an?)[ -]?)?(?P<unit>{_TIME_UNIT})")
_FIXED_SPANS: Final = {
    "half an hour": Fraction(1800),
    "half a minute": Fraction(30),
    "a quarter of an hour": Fraction(900),
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with the name of its unit as written, empty where none stands."""

    number: Fraction
    unit: str = ""

    def into(self, unit: str) -> Fraction | None:
        """Return the number in another unit, or None when the two measure different things.

        A missing or unknown unit on either side is taken to mean the same unit.
        """
        mine, other = _UNIT_TABLE.get(self.unit), _UNIT_TABLE.get(unit.lower().strip("\u00b0 "))
        if mine is None or other is None:
            return self.number
        if mine[0] != other[0]:
            return None
        return (self.number * mine[1] + mine[2] - other[2]) / other[1]


def dimension_of(unit: str) -> str:
    """Return what a unit measures ("temperature", "time" ...), or empty for an unknown unit."""
    known = _UNIT_TABLE.get(unit.lower().strip("\u00b0 "))
    return known[0] if known else ""


def number_of(text: str) -> Fraction | None:
    """Return the value of a number in digits or words, or None."""
    word = text.strip().replace("\u2212", "-")
    if word in _WORD_NUMBERS:
        return _WORD_NUMBERS[word]
    tens, separator, ones = word.replace(" ", "-").partition("-")
    if separator and tens in _WORD_NUMBERS and ones in _WORD_NUMBERS:
        return _WORD_NUMBERS[tens] + _WORD_NUMBERS[ones]
    return decimal_of(word)


def decimal_of(text: str) -> Fraction | None:
    """Return the exact value of a decimal in ASCII digits, or None."""
    if not re.fullmatch(r"[-+]?[0-9]{1,40}(?:\.[0-9]{1,40})?", text.strip()):
        return None
    return Fraction(text.strip())


def quantity_of(text: str) -> Quantity | None:
    """Return the first number of a lower-case text with its unit, or None."""
    match = _QUANTITY_PARTS.search(text)
    number = number_of(match["number"]) if match else None
    if match is None or number is None:
        return None
    return Quantity(number, match["unit"] or "")


def seconds_of(text: str) -> Fraction | None:
    """Return a span of time in seconds ("90 seconds", "an hour", "minute"), or None."""
    if text in _FIXED_SPANS:
        return _FIXED_SPANS[text]
    match = _SPAN_PARTS.search(text)
    if match is None:
        return None
    said = match["number"]
    number = Fraction(1) if said in {None, "a", "an"} else number_of(said)
    return None if number is None else number * _UNIT_TABLE[match["unit"]][1]
