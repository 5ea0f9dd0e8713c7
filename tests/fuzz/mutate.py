"""Random and mutated answers: from a right proposal, through near misses, to plain bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

LOOK_ALIKES = {
    "a": "\u0430",
    "e": "\u0435",
    "o": "\u043e",
    "k": "\u212a",
    "i": "\u0131",
    "n": "\uff4e",
}
JOINED = ("", "\u200b", "\n", " ", "\u0000", "/../light.a", ", lock.a", ".*", "\ufeff", "\u0301")
NUMBERS = (
    *("0", "-0", "-1", "1", "5", "16", "16.0", "20", "24", "24.0", "24.1", "25.5", "26", "26.0"),
    *("2.6e1", "260e-1", "0.26E+2", "26.5", "26.50", "26.000000000000001", "27", "30", "31"),
    *("1e400", "1e-400", "0e-999999", "NaN", "Infinity", "-Infinity", "9007199254740991"),
    *("9007199254740993", "1e15", "1e16", "026", "26.", ".5", "+26", "0x1A", "1_000", "7", "60"),
)
WORDS = (
    "true",
    "false",
    "null",
    '""',
    '"26"',
    '"21.5"',
    "[]",
    "{}",
    "[26]",
    '"all"',
    '"*"',
    '"\\ud800"',
)
KEYS = ("only_if_nobody_is_in", "Target", "target ", "t\\u0061rget", "parameters", "", "__proto__")
INTERESTING = (
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\x00",
    b"\xff",
    b"\xc3",
    b"\n",
    b"e9",
)

Pairs = list[tuple[str, str]]
"""The argument object as texts of keys (without quotes) and values: it may hold a key twice."""


def _one(random: Random, items: tuple[str, ...]) -> str:
    return items[random.randrange(len(items))]


def _place(random: Random, pairs: Pairs) -> int:
    return random.randrange(len(pairs))


def _number(random: Random, pairs: Pairs) -> Pairs:
    """Another number, mostly in place of a number."""
    numeric = [index for index, pair in enumerate(pairs) if pair[1][:1] not in '"{[tfn']
    index = numeric[random.randrange(len(numeric))] if numeric else _place(random, pairs)
    near = str(random.randrange(-50, 4000) / random.choice((1, 2, 10, 100)))
    pairs[index] = (pairs[index][0], random.choice((_one(random, NUMBERS), near)))
    return pairs


def _word(random: Random, pairs: Pairs) -> Pairs:
    index = _place(random, pairs)
    pairs[index] = (pairs[index][0], _one(random, WORDS))
    return pairs


def _look_alike(random: Random, pairs: Pairs) -> Pairs:
    """One letter of a value or key replaced by one that looks the same."""
    index = _place(random, pairs)
    key, value = pairs[index]
    if random.random() < 0.7:
        pairs[index] = (key, spoiled(random, value))
    else:
        pairs[index] = (spoiled(random, key), value)
    return pairs


def spoiled(random: Random, text: str) -> str:
    """A text that looks like another."""
    letters = [index for index, letter in enumerate(text) if letter in LOOK_ALIKES]
    match random.randrange(4):
        case 0 if letters:
            index = random.choice(letters)
            return text[:index] + LOOK_ALIKES[text[index]] + text[index + 1 :]
        case 1:
            return text.swapcase()
        case 2 if text.endswith('"'):
            return text[:-1] + json.dumps(_one(random, JOINED))[1:-1] + '"'
        case _:
            return text.replace(".", "_", 1)


def _dropped(random: Random, pairs: Pairs) -> Pairs:
    del pairs[_place(random, pairs)]
    return pairs


def _added(random: Random, pairs: Pairs) -> Pairs:
    value = random.choice((_one(random, WORDS), _one(random, NUMBERS)))
    pairs.insert(random.randrange(len(pairs) + 1), (_one(random, KEYS), value))
    return pairs


def _doubled(random: Random, pairs: Pairs) -> Pairs:
    key, value = pairs[_place(random, pairs)]
    given = random.choice((value, _one(random, WORDS), _one(random, NUMBERS)))
    pairs.insert(random.randrange(len(pairs) + 1), (key, given))
    return pairs


def _shuffled(random: Random, pairs: Pairs) -> Pairs:
    random.shuffle(pairs)
    return pairs


STEPS: tuple[Callable[[Random, Pairs], Pairs], ...] = (
    *(_number, _number, _word, _look_alike, _dropped, _added, _doubled, _shuffled, _shuffled),
)


def pairs_of(arguments: Mapping[str, Any]) -> Pairs:
    return [(key, json.dumps(value)) for key, value in arguments.items()]


def proposal_text(
    random: Random, tool: str, arguments: Mapping[str, Any], others: list[str]
) -> str:
    """The text of an answer near a right one; ``others`` are further texts that are offered."""
    pairs = pairs_of(arguments)
    for _ in range(random.choice((0, 0, 1, 1, 1, 2, 3))):
        if pairs:
            pairs = random.choice(STEPS)(random, pairs)
    if pairs and others and random.random() < 0.1:
        index = _place(random, pairs)
        pairs[index] = (pairs[index][0], json.dumps(random.choice(others)))
    if random.random() < 0.08:
        tool = random.choice((spoiled(random, tool + '"')[:-1], *others, ""))
    inner = ",".join(f'"{key}":{value}' for key, value in pairs)
    text = f'{{"tool":{json.dumps(tool)},"arguments":{{{inner}}}}}'
    return wrapped(random, text) if random.random() < 0.1 else text


def wrapped(random: Random, text: str) -> str:
    """A whole answer that is nearly one JSON object."""
    return random.choice(
        (
            f"```json\n{text}\n```",
            text + text,
            f"{text} I will do it now.",
            f"[{text}]",
            json.dumps(text),
            f" {text}\n",
            text[: random.randrange(len(text))],
            text.replace('"', "\u201d"),
            text.replace('"arguments":', '"note":1,"arguments":', 1),
            '{"refusal":"no"}',
            "[" * random.choice((10, 900, 1100, 20_000)),
            "",
        )
    )


def answer_text(random: Random, text: str) -> str:
    """The stored form of an answer around a text, now and then broken itself."""
    form: dict[str, Any] = {"mode": "json", "text": text, "finish_reason": "stop"}
    chance = random.random()
    if chance < 0.25:
        form = _as_call(random, text) or form
    elif chance < 0.3:
        form |= random.choice(
            (
                {"finish_reason": "length"},
                {"finish_reason": None},
                {"completion_tokens": 9, "max_tokens": 9},
                {"completion_tokens": 8, "max_tokens": 9},
                {"completion_tokens": True, "max_tokens": 9},
                {"mode": "tools"},
                {"extra": 1},
                {"tool_calls": [{"name": "x", "arguments": "{}"}]},
            )
        )
    return json.dumps(form, ensure_ascii=random.random() < 0.5)


def _as_call(random: Random, text: str) -> dict[str, Any] | None:
    """The same proposal by the tool-call interface, arguments as they were written."""
    head, found, arguments = text.partition(',"arguments":')
    if not found or not head.startswith('{"tool":"') or not text.endswith("}"):
        return None
    name = head.removeprefix('{"tool":"')[:-1]
    call = {"id": "c1", "name": name, "arguments": arguments[:-1]}
    calls = [call] * random.choice((1, 1, 1, 1, 1, 1, 2))
    finish = random.choice(("tool_calls",) * 8 + ("stop", "length"))
    return {"mode": "tools", "tool_calls": calls, "finish_reason": finish}


def mutated(random: Random, data: bytes) -> bytes:
    """Bytes with some of them flipped, cut, doubled, or replaced by ones that parsers mind."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
        at = random.randrange(len(changed) + 1)
        match random.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                del changed[at : at + random.randrange(1, 9)]
            case 2:
                changed[at:at] = random.choice(INTERESTING)
            case 3:
                end = at + random.randrange(1, 40)
                changed[at:at] = changed[at:end]
            case 4:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case _:
                changed[at:at] = _one(random, NUMBERS).encode()
    return bytes(changed)


def noise(random: Random) -> bytes:
    """Bytes that mean nothing."""
    return random.randbytes(random.randrange(200))
