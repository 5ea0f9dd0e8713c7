"""The files of a bench: instance, tokens, consent; and the rule for acting without a boundary."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hardware.bench.instance import read_instance, read_token
from retire.cli.bench_setting import chosen_instance
from retire.domain.errors import InputError
from retire.runner.camera_consent import read_consent, why_not_unmediated
from sink.strict_yaml import DocumentError

INSTANCE = """\
schema: retire.camera_bench/v1
url: http://127.0.0.1:8123/
entity: camera.hall
sink_token: sink.token
observer_token: /keys/observer.token
approvals: approvals.yaml
"""


def test_an_instance_names_its_files_from_its_own_folder(tmp_path):
    path = tmp_path / "instance.yaml"
    path.write_text(INSTANCE)
    found = read_instance(path)
    assert found.url == "http://127.0.0.1:8123"
    assert found.sink_token == str(tmp_path / "sink.token")
    assert found.observer_token == "/keys/observer.token"
    assert found.bench is False


@pytest.mark.parametrize(
    "change",
    [
        ("camera.hall", "camera.Hall"),
        ("camera.hall", "camera.hall, camera.attic"),
        ("camera.hall", "lock.front"),
        ("http://127.0.0.1:8123/", "127.0.0.1:8123"),
        ("http://127.0.0.1:8123/", "http://me:secret@127.0.0.1:8123"),
        ("approvals: approvals.yaml", "approvals: approvals.yaml\nmode: b"),
        ("approvals: approvals.yaml", "approvals: approvals.yaml\nbench: 'yes'"),
        ("approvals: approvals.yaml", "approvals: approvals.yaml\nplaceholders: [abc]"),
        ("retire.camera_bench/v1", "retire.camera_bench/v2"),
    ],
)
def test_an_instance_that_cannot_be_meant_is_refused(tmp_path, change):
    path = tmp_path / "instance.yaml"
    path.write_text(INSTANCE.replace(*change))
    with pytest.raises(DocumentError):
        read_instance(path)


@pytest.mark.parametrize(
    ("content", "mode"), [("", 0o600), ("two words", 0o600), ("t", 0o640), ("t", 0o604)]
)
def test_a_token_file_that_cannot_be_relied_on_is_refused(tmp_path, content, mode):
    path = tmp_path / "token"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(DocumentError) as refused:
        read_token(str(path))
    assert refused.value.mend
    path.write_text("abc.def\n")
    path.chmod(0o600)
    assert read_token(str(path)) == "abc.def"


CONSENT = """\
schema: retire.bench_consent/v1
entity: camera.hall
persons:
  - {id: person.r1, answer: "yes", at: "2026-04-17T18:00:00Z"}
  - {id: person.r2, answer: "yes", at: "2026-04-17T18:01:00Z"}
until: "2026-04-17T20:00:00Z"
"""
NOW = datetime(2026, 4, 17, 19, tzinfo=UTC)


def why(text=CONSENT, *, allowed=True, marked=True, now=NOW, entity="camera.hall"):
    consent = None if text is None else read_consent(text.encode(), "consent.yaml")
    return why_not_unmediated(
        allowed=allowed, marked=marked, consent=consent, entity=entity, now=now
    )


def test_permission_mark_and_consent_are_all_needed():
    assert why() == ""
    assert "--allow-unmediated" in why(allowed=False)
    assert "bench: true" in why(marked=False)
    assert "--consent" in why(None)


@pytest.mark.parametrize(
    ("text", "now", "words"),
    [
        (CONSENT.replace('"yes", at: "2026-04-17T18:01', '"no", at: "2026-04-17T18:01'), NOW,
         "person.r2 did not say yes"),
        (CONSENT.replace('"yes"', '"Yes"'), NOW, "did not say yes"),
        (CONSENT, datetime(2026, 4, 17, 20, tzinfo=UTC), "ended"),
        (CONSENT, datetime(2026, 4, 17, 17, tzinfo=UTC), "future"),
        (CONSENT.replace("camera.hall", "camera.attic"), NOW, "camera.attic"),
    ],
)  # fmt: skip
def test_a_consent_that_does_not_cover_the_bench_is_none(text, now, words):
    assert words in why(text, now=now)


@pytest.mark.parametrize(
    "text",
    [
        CONSENT.replace('"yes"', "yes"),
        CONSENT.replace("20:00:00Z", "20:00:00"),
        CONSENT[: CONSENT.index("persons")] + "persons: []\nuntil: '2026-04-17T20:00:00Z'\n",
        CONSENT.replace("person.r1", "Some Body"),
        "",
    ],
)
def test_a_consent_file_that_cannot_be_read_is_an_error(text):
    with pytest.raises(InputError):
        read_consent(text.encode(), "consent.yaml")


def test_the_options_make_an_instance_file_or_say_what_is_missing(tmp_path):
    given = {
        "url": "http://127.0.0.1:8123", "entity": "camera.hall", "sink_token": "/k/sink.token",
        "observer_token": "/k/observer.token", "approvals": "/k/approvals.yaml", "device": None,
    }  # fmt: skip
    path = chosen_instance(None, given, tmp_path)
    assert read_instance(path).entity == "camera.hall"
    for name in ("url", "entity", "sink_token", "observer_token", "approvals"):
        with pytest.raises(InputError, match="missing"):
            chosen_instance(None, given | {name: None}, tmp_path)
    with pytest.raises(InputError):
        chosen_instance(path, given, tmp_path)
    assert chosen_instance(path, dict.fromkeys(given), tmp_path) == path
