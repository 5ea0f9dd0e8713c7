"""Words: plain lower-case text, tokens, light stems, and which words say little."""

from __future__ import annotations

import re
from functools import lru_cache

_CONTRACTIONS = (
    (re.compile(r"\bcan['\u2019]?t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon['\u2019]t\b"), "will not"),
    (re.compile(r"n['\u2019]t\b"), " not"),
    (re.compile(r"\b(it|that|there|what|who|nobody)['\u2019]s\b"), r"\1 is"),
    (re.compile(r"['\u2019]re\b"), " are"),
    (re.compile(r"['\u2019]ve\b"), " have"),
    (re.compile(r"['\u2019]ll\b"), " will"),
)
_QUOTES = re.compile(r"[\u201c\u201d\u00ab\u00bb`]+")
_DASHES = re.compile(r"\s[\u2013\u2014-]+\s|\s?\u2014\s?")
_SPACES = re.compile(r"\s+")
_DEGREES = re.compile(r"\u00b0\s*")
_TOKEN = re.compile(r"[^\W_]+(?:\.\d+)*", re.UNICODE)
_POSSESSIVE = re.compile(r"['\u2019]s?(?=\s|$|[.,;:!?\")])")
_IZE = re.compile(r"is(e|ed|es|ing|ation|ations)$")


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


STOP_WORDS = word_set(
    "a an the this that these those and or nor but if when while unless until till without with "
    "within of off on in into at to from for by as is are be been being was were am has have had "
    "having do does did not no never only must may might can could shall should will would it its "
    "they them their he she his her him you your we our us i my me any all both each every either "
    "neither one two three than then so such there here up down out over under above below before "
    "after during per via about again also too very just still yet already now ever even more most "
    "less least last same other another which who whom whose what how why where some someone "
    "anyone nobody nothing everything anything please"
)
"""Words that never identify an entry, a tool or a target."""


@lru_cache(maxsize=8192)
def normalise(text: str) -> str:
    """Return the text in lower case on one line, contractions spelled out, quotes straight."""
    plain = _DEGREES.sub(" ", text.lower())
    for pattern, replacement in _CONTRACTIONS:
        plain = pattern.sub(replacement, plain)
    plain = _QUOTES.sub('"', plain)
    plain = _DASHES.sub(", ", plain)
    return _SPACES.sub(" ", plain).strip()


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return a light stem: plural, -ing, -ed and a final e are dropped, -ise is spelled -ize."""
    if len(word) > 6:
        word = _IZE.sub(r"iz\1", word)
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "sses", "xes")):
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, shortest in (("ing", 6), ("ed", 5)):
        if word.endswith(ending) and len(word) >= shortest:
            word = _undouble(word[: -len(ending)])
            break
    if len(word) > 7 and word.endswith(("ancy", "ency")):
        return word[:-4]
    return word[:-1] if word.endswith(("e", "y")) and len(word) > 4 else word


def _undouble(word: str) -> str:
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


@lru_cache(maxsize=16384)
def tokens(text: str) -> tuple[str, ...]:
    """Return the words and numbers of a text in lower case; hyphens and underscores separate."""
    return tuple(_TOKEN.findall(_POSSESSIVE.sub(" ", text.lower())))


@lru_cache(maxsize=16384)
def content_stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words that carry content, in order, repeats kept."""
    return tuple(stem(word) for word in tokens(text) if word not in STOP_WORDS)


GENERIC_WORDS = frozenset(
    stem(word)
    for word in word_set(
        "grant consent permission approval agreement authorization permit pass booking sensor "
        "reading "
        "version firmware release schema software temperature status state value measurement level "
        "current"
    )
)
"""Stems that many entries share by nature: they may decide a section, hardly an entry."""
