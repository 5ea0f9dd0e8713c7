"""What the client makes of addresses, tokens, answers and streams, without a server."""

from __future__ import annotations

import tarfile
from io import BytesIO

import httpx
import pytest

from retire.bundle import read_files
from retire.cli.client import (
    Server,
    ServerEvent,
    UnreachableError,
    check_address,
    check_token,
    read_events,
    refusal,
)
from retire.cli.remote import packed
from retire.domain.errors import InputError
from retire.service.archives import read_archive

ADDRESS = "https://retire.example"


@pytest.mark.parametrize(
    "address", [ADDRESS, f"{ADDRESS}/", "http://127.0.0.1:8400", "https://[::1]:8400"]
)
def test_addresses_of_servers(address):
    assert check_address(address) == address.rstrip("/")


@pytest.mark.parametrize(
    "address",
    [
        "", "retire.example", "ftp://retire.example", "https://", "https://user:pw@retire.example",
        "https://retire.example/api", "https://retire.example?x=1", "https://retire.example#x",
        "https://retire.example:0", "https://retire.example:99999", "https://[::1", "https://a\nb",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_server(address):
    with pytest.raises(InputError):
        check_address(address)


@pytest.mark.parametrize("token", [None, "a b", "a\nb", "töken"])
def test_a_token_that_cannot_be_one_is_refused_and_not_repeated(token):
    with pytest.raises(InputError) as caught:
        check_token(token)
    assert not token or token not in str(caught.value)


def answer(status, body=None, headers=None):
    return httpx.Response(status, json=body, headers=headers)


def test_a_problem_names_every_place_it_knows():
    faults = [
        {"message": "no such clause", "file": "ledger.yaml", "line": 7, "clause": "c004"},
        {"message": "too large", "field": "margin", "mend": "At most 100"},
        *({"message": f"fault {number}"} for number in range(5)),
    ]
    body = {"title": "The bundle has faults", "detail": "7 faults", "errors": faults}
    error = refusal(answer(422, body), ADDRESS)
    text = str(error)
    assert "ledger.yaml:7 c004: no such clause" in text
    assert "margin: too large. At most 100" in text
    assert "4 more faults" in text
    assert error.exit_code == 2
    assert not isinstance(error, UnreachableError)


@pytest.mark.parametrize(
    ("status", "headers", "again", "said"),
    [
        (401, {}, False, "RETIRE_TOKEN"),
        (403, {}, False, "scope"),
        (404, {}, False, "404"),
        (413, {}, False, "413"),
        (429, {"Retry-After": "7"}, True, "in 7 seconds"),
        (500, {}, True, "500"),
        (503, {}, True, "503"),
        (308, {"Location": "https://other.example/"}, False, "other.example"),
    ],
)
def test_each_status_says_whether_asking_again_may_help(status, headers, again, said):
    for body in ({"title": "T", "detail": "D"}, None, ["x"], {"errors": [1, {}]}):
        error = refusal(answer(status, body, headers), ADDRESS)
        assert isinstance(error, UnreachableError) is again
        assert said in str(error)


def test_an_answer_cannot_move_the_terminal():
    body = {"title": "\x1b[2J\u202e", "detail": "\x9bx", "errors": [{"message": "\x1b]0;a\x07"}]}
    assert str(refusal(answer(422, body, {}), ADDRESS)).isprintable()
    assert str(refusal(answer(500, body, {}), ADDRESS)).isprintable()


def test_events_are_read_whatever_stands_between_them():
    lines = [
        "retry: 2000", "", ": still here", "", "id: 3", "event: progress", 'data: {"cells_done":3}',
        "", ": still here", "", "id: 9", "event: end", "data:", 'data: {"state":"complete"}', "",
        "id: 10", "data: cut",
    ]  # fmt: skip
    assert list(read_events(iter(lines))) == [
        ServerEvent(3, {"cells_done": 3}),
        ServerEvent(9, {"state": "complete"}),
    ]


@pytest.mark.parametrize("data", ["{", "7", "null", '"x"'])
def test_a_damaged_event_is_asked_for_again(data):
    with pytest.raises(UnreachableError):
        list(read_events(iter(["id: 1", f"data: {data}", ""])))


def test_the_upload_is_what_the_service_unpacks_and_always_the_same(panel):
    files = read_files(panel / "PRV_L01")
    data = packed(files)
    assert read_archive(data) == files
    assert packed(dict(reversed(files.items()))) == data
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        assert {entry.mtime for entry in archive} == {0}


def test_a_server_that_is_not_there_is_one_error():
    with Server("http://127.0.0.1:1", "retire_x") as server:
        with pytest.raises(UnreachableError, match="cannot be reached"):
            server.read("/runs/x")
        with pytest.raises(UnreachableError):
            list(server.events("x", 0))


@pytest.mark.parametrize(
    "address",
    [
        "http://retire.example", "http://192.0.2.7:8400", "http://[2001:db8::1]:8400",
        "http://localhost.example", "http://127.0.0.1.example", "http://0.0.0.0:8400",
        "HTTP://retire.example",
    ],
)  # fmt: skip
def test_a_token_does_not_travel_in_the_clear_to_another_machine(address):
    with pytest.raises(InputError) as caught:
        Server(address, "retire_token")
    assert "--insecure-http" in str(caught.value)
    assert "retire_token" not in str(caught.value)
    with Server(address, "retire_token", insecure_http=True):
        pass


@pytest.mark.parametrize(
    "address",
    [
        ADDRESS, "http://127.0.0.1:8400", "http://127.8.9.1", "http://[::1]:8400",
        "http://localhost:8400", "http://retire.localhost",
    ],
)  # fmt: skip
def test_on_this_machine_plain_http_needs_no_leave(address):
    with Server(address, "retire_token"):
        pass
