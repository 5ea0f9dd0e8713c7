"""Sessions, and where signing in leads."""

from __future__ import annotations

import pytest

from retire.service.reviewing.library import FolderRuns
from retire.service.reviewing.sessions import COOKIE, IDLE_SECONDS, MOST, Sessions, cookie_of
from retire.service.routes.signing_in import safe_return
from retire.service.tokens import Scope
from tests.unit.service.fake_keeper import FakeTokens, House


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def tokens():
    return FakeTokens()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sessions(tokens, clock):
    return Sessions(tokens, clock)


async def test_a_session_stands_for_its_token_until_it_ends(tokens, sessions):
    secret = tokens.add("t-one", Scope.READ)
    value = await sessions.begin(secret)
    assert value is not None
    assert secret not in value
    token = await sessions.token(value)
    assert token is not None
    assert token.id == "t-one"
    sessions.end(value)
    assert await sessions.token(value) is None


async def test_no_session_without_a_living_token(tokens, sessions):
    secret = tokens.add("t-one", Scope.READ)
    value = await sessions.begin(secret)
    tokens.revoke("t-one")
    assert await sessions.begin(secret) is None
    assert await sessions.token(value) is None
    assert await sessions.begin("retire_" + "x" * 43) is None
    assert await sessions.token("") is None
    assert await sessions.token("\udcff") is None


async def test_an_unused_session_ends(tokens, sessions, clock):
    value = await sessions.begin(tokens.add("t-one", Scope.READ))
    clock.now = IDLE_SECONDS - 1
    assert await sessions.token(value)
    clock.now += IDLE_SECONDS - 1
    assert await sessions.token(value)
    clock.now += IDLE_SECONDS + 1
    assert await sessions.token(value) is None


async def test_the_session_unused_for_longest_makes_room(tokens, sessions):
    secret = tokens.add("t-one", Scope.READ)
    values = [await sessions.begin(secret) for _ in range(MOST + 1)]
    assert await sessions.token(values[0]) is None
    assert await sessions.token(values[1])
    assert await sessions.token(values[-1])


@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ([], ""),
        ([(b"cookie", b"other=1")], ""),
        ([(b"cookie", f"other=1; {COOKIE}=abc=".encode())], "abc="),
        ([(b"cookie", b"\xff\xfe=;;;=")], ""),
    ],
)
def test_the_cookie_is_found_among_others(headers, value):
    assert cookie_of(headers) == value


@pytest.mark.parametrize("address", ["/ui/runs/a?condition=B2", "/ui/compare?left=a%20b"])
def test_signing_in_leads_back_to_a_page(address):
    assert safe_return(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "", "//example.org/ui/", "https://example.org/ui/runs", "/runs", "javascript:alert(1)",
        "/ui/\\example.org", "/ui/runs\r\nX: 1", "http:/ui/runs", "/uix", "\u202e/ui/runs", "http://[",
    ],
)  # fmt: skip
def test_signing_in_leads_nowhere_else(address):
    assert safe_return(address) == "/ui/runs"


@pytest.fixture
def house(tmp_path):
    return House(reviews=FolderRuns(tmp_path))


async def test_attempts_to_sign_in_are_limited(house):
    async with house.client(None) as client:
        origin = {"Origin": "http://service"}
        codes = [
            (await client.post("/ui/sign-in", data={"token": "x"}, headers=origin)).status_code
            for _ in range(45)
        ]
    assert codes[0] == 401
    assert codes[-1] == 429


@pytest.mark.parametrize(("origin", "secure"), [("http", False), ("https", True)])
async def test_the_cookie_is_secure_where_the_browser_came_by_tls(house, origin, secure):
    async with house.client(None) as client:
        answer = await client.post(
            "/ui/sign-in",
            data={"token": house.secrets["reader"]},
            headers={"Origin": f"{origin}://service"},
        )
        assert answer.status_code == 303
        assert ("secure" in answer.headers["set-cookie"].lower()) is secure


async def test_a_part_that_is_loaded_by_itself_is_not_filled_with_the_form(house):
    async with house.client(None) as client:
        answer = await client.get("/ui/list", headers={"HX-Request": "true"})
        assert answer.headers["hx-redirect"].startswith("/ui/sign-in")


async def test_the_described_api_has_no_pages_and_keeps_its_answers(house):
    async with house.client("admin") as client:
        described = (await client.get("/openapi.json")).json()
        assert not [path for path in described["paths"] if path.startswith("/ui") or path == "/"]
        assert (await client.get("/none")).headers["content-type"] == "application/problem+json"
        assert (await client.delete("/ui/runs")).status_code == 405
        assert (await client.get("/ui/none")).status_code == 404
