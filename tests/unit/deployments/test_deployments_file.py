"""The file of deployments: what it says is fixed, what it may not say is refused with its line."""

from __future__ import annotations

import json

import pytest

from retire.deployments.configuration import LocalConfiguration, load_deployments
from retire.deployments.simulated.profiles import PROFILES
from retire.domain.digests import digest_of
from retire.domain.errors import InputError

HEAD = "schema: retire.deployments/v1\ndeployments:\n"
ONE = """\
  - provider: openai
    name: first
    base_url: https://models.example/v1
    model: small-1
"""
LOCAL = """\
  - provider: local
    name: here
    weights: smollm2-135m
"""
SECRET = "s3cr3t-in-the-address"


def load(text, where="deployments.yaml"):
    return load_deployments(text.encode(), where)


def first(extra="", text=ONE):
    return load(HEAD + text + extra).deployments[0]


def refused(text):
    with pytest.raises(InputError) as caught:
        load(text)
    return caught.value


def test_a_short_entry_is_a_whole_configuration():
    item = first()
    assert (item.sampling.temperature, item.sampling.max_tokens, item.sampling.seed) == (
        "0",
        512,
        True,
    )
    assert (item.concurrency, item.retries, item.price, item.key_variable) == (8, 4, None, None)
    assert item.output == "json_schema"


def test_everything_can_be_said():
    item = first(
        """\
    sampling: {temperature: 0.70, top_p: 0.9, max_tokens: 64, seed: false}
    output: tools
    stream: true
    tool_arguments: object
    limit_field: max_completion_tokens
    extra_body: {top_k: 40, nested: {min_p: 0.05, words: [a, b], think: false}}
    timeouts: {connect: 2, answer: 7.5}
    concurrency: 32
    requests_per_minute: 600
    tokens_per_minute: 100000
    retries: 0
    price: {input: 0.15, output: 0.6, currency: EUR}
    key_variable: SOME_KEY
"""
    )
    assert item.sampling.temperature == "0.7"
    assert item.timeouts.answer == "7.5"
    assert item.price.output == "0.6"
    assert item.key_variable == "SOME_KEY"


def test_several_stand_in_one_file_by_name():
    file = load(HEAD + ONE + LOCAL)
    assert list(file.by_name) == ["first", "here"]
    assert isinstance(file.by_name["here"], LocalConfiguration)
    assert file.by_name["here"].context_tokens == 4096


IDENTITY = {
    "model: small-2": ONE.replace("small-1", "small-2"),
    "address": ONE.replace("models.example", "other.example"),
    "temperature": ONE + "    sampling: {temperature: 0.1}\n",
    "top_p": ONE + "    sampling: {top_p: 0.5}\n",
    "max_tokens": ONE + "    sampling: {max_tokens: 100}\n",
    "no temperature": ONE + "    sampling: {temperature: }\n",
    "seed": ONE + "    sampling: {seed: false}\n",
    "output": ONE + "    output: tools\n",
    "strictness": ONE + "    schema_strict: false\n",
    "stream": ONE + "    stream: true\n",
    "tool arguments": ONE + "    tool_arguments: object\n",
    "field of the limit": ONE + "    limit_field: max_completion_tokens\n",
    "extra body": ONE + "    extra_body: {top_k: 1}\n",
}
SAME = {
    "name": ONE.replace("first", "second"),
    "timeouts": ONE + "    timeouts: {answer: 1}\n",
    "concurrency": ONE + "    concurrency: 1\n",
    "rates": ONE + "    requests_per_minute: 1\n    tokens_per_minute: 1\n",
    "retries": ONE + "    retries: 1\n",
    "price": ONE + "    price: {input: 1, output: 1, currency: USD}\n",
    "key variable": ONE + "    key_variable: OTHER\n",
    "a slash at the end": ONE.replace("/v1", "/v1/"),
    "another way to write zero": ONE + "    sampling: {temperature: 0.0}\n",
}


@pytest.mark.parametrize("name", IDENTITY)
def test_what_fixes_an_answer_changes_the_identity(name):
    assert digest_of(first(text=IDENTITY[name]).identity) != digest_of(first().identity)


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_fix_an_answer_leaves_the_identity(name):
    assert digest_of(first(text=SAME[name]).identity) == digest_of(first().identity)


def test_an_identity_holds_no_float_and_tells_a_decimal_from_a_text():
    texts = [
        digest_of(first(f"    extra_body: {{min_p: {value}}}\n").identity)
        for value in ("0.5", '"0.5"', "5", "900719925474099312")
    ]
    assert len(set(texts)) == 4
    assert "0.5" in json.dumps(first("    extra_body: {min_p: 0.5}\n").identity)


def test_a_local_identity_is_completed_by_the_digest_of_its_weights():
    item = first(text=LOCAL)
    other = first(text=LOCAL.replace("smollm2-135m", "/srv/models/smollm2.gguf"))
    assert digest_of(item.identity_with("sha256:a")) == digest_of(other.identity_with("sha256:a"))
    assert digest_of(item.identity_with("sha256:a")) != digest_of(item.identity_with("sha256:b"))


REFUSED = {
    "two of one name": (HEAD + ONE + ONE, 8, "'first'"),
    "an embedded name": (HEAD + ONE.replace("first", min(PROFILES)), 4, "embedded"),
    "a boolean as a name": (HEAD + ONE.replace("first", "off"), 4, "quotes"),
    "a number as a name": (HEAD + ONE.replace("first", "12"), 4, "quotes"),
    "a number as a model": (HEAD + ONE.replace("small-1", "4.1"), 6, "quotes"),
    "a number in quotes": (HEAD + ONE + '    sampling: {temperature: "0.7"}\n', 7, "quotes"),
    "an unknown key": (HEAD + ONE + "    api_key: abc\n", 7, "spelling"),
    "an unknown provider": (HEAD + ONE.replace("openai", "openapi"), 3, "provider: openai"),
    "no provider": (HEAD + "  - name: first\n", 3, "provider: openai"),
    "no model": (HEAD + ONE.replace("    model: small-1\n", ""), 3, "Add the key"),
    "credentials in the address": (
        HEAD + ONE.replace("https://", f"https://me:{SECRET}@"),
        5,
        "key_variable",
    ),
    "no scheme": (HEAD + ONE.replace("https://", ""), 5, "http://"),
    "another scheme": (HEAD + ONE.replace("https", "ftp"), 5, "http://"),
    "a query": (HEAD + ONE.replace("/v1", "/v1?key=1"), 5, "extra_body"),
    "a port that is none": (HEAD + ONE.replace(".example", ".example:http"), 5, "address cannot"),
    "a key in place of its variable": (
        HEAD + ONE + f"    key_variable: {SECRET}\n",
        7,
        "key_variable",
    ),
    "a secret among the extras": (HEAD + ONE + "    extra_body: {x: {api_key: a}}\n", 7, "api_key"),
    "an extra that the plan sets": (HEAD + ONE + "    extra_body: {seed: 1}\n", 7, "seed"),
    "two answers at once": (HEAD + ONE + "    extra_body: {n: 2}\n", 7, "n cannot"),
    "a temperature out of range": (HEAD + ONE + "    sampling: {temperature: 11}\n", 7, "11"),
    "no tokens": (HEAD + ONE + "    sampling: {max_tokens: 0}\n", 7, "max_tokens"),
    "no place at all": (HEAD + ONE + "    concurrency: 0\n", 7, "concurrency"),
    "a currency that is none": (
        HEAD + ONE + "    price: {input: 1, output: 1, currency: euro}\n",
        7,
        "currency",
    ),
    "no deployments": ("schema: retire.deployments/v1\ndeployments: []\n", 2, "deployments"),
    "another schema": (HEAD.replace("v1", "v2") + ONE, 1, "schema"),
    "no schema": ("deployments:\n" + ONE, 1, "schema"),
    "a list": ("- a\n", 1, "mapping"),
    "an anchor": (HEAD + ONE + "    extra_body: {a: &x 1, b: *x}\n", 7, "anchors"),
    "no YAML": (HEAD + "  - {", None, "not YAML"),
    "an address in brackets": (HEAD + ONE.replace("models.example", "[::1"), 5, "address"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(name):
    text, line, hint = REFUSED[name]
    error = refused(text)
    if line is not None:
        assert error.where == f"deployments.yaml:{line}"
    assert hint in str(error)
    assert SECRET not in str(error)
    assert error.__cause__ is None or SECRET not in str(error.__cause__)


def test_a_file_that_is_no_text_is_refused():
    with pytest.raises(InputError, match="UTF-8"):
        load_deployments(b"\xff\xfe", "deployments.yaml")


def test_addresses_of_every_kind_are_taken():
    for given, kept in (
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("http://[::1]:8080/v1/", "http://[::1]:8080/v1"),
        ("http://models.example:80/v1", "http://models.example/v1"),
        ("https://models.example:443/v1", "https://models.example/v1"),
        ("https://models.example:80/v1", "https://models.example:80/v1"),
        ("HTTPS://Models.Example/v1", "https://models.example/v1"),
    ):
        assert first(text=ONE.replace("https://models.example/v1", given)).base_url == kept
