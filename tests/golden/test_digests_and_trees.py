"""Published vectors: RFC 8785 canonical JSON, RFC 6962 trees, SHA-256."""

from __future__ import annotations

import hashlib
from decimal import Decimal

import pytest
import rfc8785

from retire.domain.digests import canonical, digest_of, merkle_root, sha256
from sink.contract import canonical_scalar

pytestmark = pytest.mark.golden

LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


@pytest.mark.parametrize("size", range(9))
def test_trees_of_the_transparency_log_vectors(size):
    assert merkle_root(LEAVES[:size]) == "sha256:" + ROOTS[size]


def by_the_rfc(leaves):
    """Section 2.1, read aloud: split at the largest power of two below the size."""
    if len(leaves) <= 1:
        return hashlib.sha256(b"\x00" + leaves[0] if leaves else b"").digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = by_the_rfc(leaves[:split]), by_the_rfc(leaves[split:])
    return hashlib.sha256(b"\x01" + left + right).digest()


@pytest.mark.parametrize("size", [*range(40), 255, 256, 257, 2592])
def test_trees_of_every_shape(size):
    leaves = [f"leaf {number}".encode() for number in range(size)]
    assert merkle_root(leaves) == "sha256:" + by_the_rfc(leaves).hex()


def test_a_leaf_is_no_node():
    inner = hashlib.sha256(b"\x00a").digest() + hashlib.sha256(b"\x00b").digest()
    assert merkle_root([inner]) != merkle_root([b"a", b"b"])
    assert merkle_root([b"a", b"b"]) != merkle_root([b"b", b"a"])
    assert merkle_root([b"a", b"b", b"b"]) != merkle_root([b"a", b"b"])


def test_keys_are_sorted_by_utf16():
    value = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    order = ["\\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    text = canonical(value).decode()
    places = [text.index(f'"{key}":') for key in order]
    assert places == sorted(places)


def test_canonical_json_has_one_form():
    assert canonical({"b": [1, True, None], "a": 'é"\\\n'}) == (
        b'{"a":"\xc3\xa9\\"\\\\\\n","b":[1,true,null]}'
    )
    assert digest_of({}) == "sha256:" + hashlib.sha256(b"{}").hexdigest()


def test_sha256_of_the_published_message():
    assert sha256(b"abc") == (
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_a_decimal_travels_as_marked_text():
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical(Decimal("26.5"))  # type: ignore[arg-type]
    forms = {canonical_scalar(value) for value in (21, Decimal(21), Decimal("2.1e1"))}
    assert forms == {"#21"}
    assert canonical_scalar("21") == "'21"
    assert canonical_scalar(Decimal("-0.50")) == "#-0.5"
    assert canonical_scalar(Decimal("-0.0")) == "#0"
    assert canonical_scalar(Decimal("1E+15")) == "#1000000000000000"
    assert canonical_scalar(True) is True
