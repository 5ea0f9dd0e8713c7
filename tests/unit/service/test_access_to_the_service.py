"""Who may do what: closed by default, scopes, own runs only, rates, sizes, an audit line."""

from __future__ import annotations

import json
import logging

import pytest

from retire.domain.errors import IncompleteError, InputError
from retire.service.limiting import RateLimiter, address_of
from retire.service.settings import ServiceSettings
from retire.service.tokens import SECRET_LENGTH, Scope, Token, new_secret, secret_digest, token_of
from tests.unit.service.fake_keeper import FakeTokens, House

BODY = {"bundle": "PRV_L01", "reduce": True, "deployment": "plain", "placement": "B4"}
CLOSED = (
    ("POST", "/certify"),
    ("GET", "/runs"),
    ("GET", "/runs/r1"),
    ("GET", "/runs/r1/events"),
    ("POST", "/runs/r1/cancel"),
    ("POST", "/runs/r1/purge"),
    ("GET", "/runs/r1/traces"),
    ("GET", "/traces/r1.1"),
    ("GET", "/certificates/k-r1"),
    ("POST", "/verify"),
    ("GET", "/bundles"),
    ("POST", "/bundles"),
    ("GET", "/deployments"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/there-is-no-such-call"),
    ("GET", "//healthz"),
    ("GET", "/healthz/"),
)


def problem(answer, slug: str) -> dict:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["type"] == f"urn:problem-type:retire:{slug}"
    assert body["status"] == answer.status_code
    assert body["instance"] == f"urn:uuid:{answer.headers['x-request-id']}"
    return body


@pytest.mark.parametrize(("method", "path"), CLOSED)
async def test_everything_but_health_is_closed(house, method, path) -> None:
    house.keeper.start("t-pipeline")
    async with house.client(None) as client:
        answer = await client.request(method, path)
        problem(answer, "unauthorized")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_every_call_of_the_document_is_in_the_list_above(house) -> None:
    document = house.app.openapi()
    calls = {
        (method.upper(), path) for path in document["paths"] for method in document["paths"][path]
    }
    shown = {
        (
            method,
            path.replace("r1.1", "{trace}").replace("k-r1", "{certificate}").replace("r1", "{run}"),
        )
        for method, path in CLOSED
    }
    assert calls - {("GET", "/healthz")} <= shown


@pytest.mark.parametrize(
    "header",
    [
        "Bearer ",
        "Bearer retire_wrong",
        "Bearer " + "x" * SECRET_LENGTH,
        "Bearer " + "é" * SECRET_LENGTH,
        "Basic dXNlcjpwYXNz",
        "",
    ],
)
async def test_what_is_no_token_is_refused(house, header) -> None:
    async with house.client(None) as client:
        answer = await client.get("/runs", headers={"Authorization": header.encode()})
        problem(answer, "unauthorized")


async def test_two_authorization_headers_are_refused(house) -> None:
    good = f"Bearer {house.secrets['reader']}"
    async with house.client(None) as client:
        answer = await client.get("/runs", headers=[("Authorization", good)] * 2)
        problem(answer, "unauthorized")


async def test_a_revoked_token_is_refused_at_once(house) -> None:
    async with house.client("reader") as client:
        assert (await client.get("/runs")).status_code == 200
        house.tokens.revoke("t-reader")
        problem(await client.get("/runs"), "unauthorized")


async def test_the_store_sees_digests_only_and_its_equality_is_not_believed() -> None:
    secret, digest = new_secret()
    other, _ = new_secret()

    class Lax(FakeTokens):
        async def by_digest(self, digest: str) -> Token | None:
            self.asked.append(digest)
            return next(iter(self.known.values()))

    tokens = Lax()
    tokens.known[digest] = Token("t", digest, frozenset({Scope.READ}))
    assert await token_of(tokens, f"bearer {secret}") == tokens.known[digest]
    assert await token_of(tokens, f"Bearer {other}") is None
    assert tokens.asked == [secret_digest(secret), secret_digest(other)]
    assert secret not in "".join(tokens.asked)


@pytest.mark.parametrize(
    ("who", "method", "path", "status"),
    [
        ("reader", "POST", "/certify", 403),
        ("reader", "POST", "/runs/r1/cancel", 403),
        ("reader", "POST", "/bundles", 403),
        ("reader", "GET", "/deployments", 200),
        ("pipeline", "POST", "/bundles", 403),
        ("pipeline", "POST", "/runs/r1/cancel", 200),
        ("pipeline", "GET", "/runs/r1", 200),
        ("admin", "POST", "/runs/r1/cancel", 200),
        ("reader", "POST", "/runs/r1/purge", 403),
        ("pipeline", "POST", "/runs/r1/purge", 403),
        ("admin", "POST", "/runs/r1/purge", 409),
    ],
)
async def test_scopes(house, who, method, path, status) -> None:
    house.keeper.start("t-pipeline")
    async with house.client(who) as client:
        answer = await client.request(method, path)
        assert answer.status_code == status
        if status == 403:
            problem(answer, "forbidden")
            assert "insufficient_scope" in answer.headers["www-authenticate"]


async def test_a_scope_is_asked_for_before_a_body_is_looked_at(house) -> None:
    async with house.client("reader") as client:
        problem(await client.post("/certify", content=b"{"), "forbidden")


@pytest.mark.parametrize(
    "path", ["/runs/r1", "/runs/r1/events", "/runs/r1/traces", "/traces/r1.1", "/certificates/k-r1"]
)
async def test_another_token_s_run_looks_like_none(house, path) -> None:
    house.keeper.start("t-pipeline")
    house.keeper.finish("r1")
    async with house.client("other") as client:
        hidden = problem(await client.get(path), "not-found")
        absent = problem(await client.get(path.replace("r1", "r9")), "not-found")
        assert hidden["detail"] == absent["detail"]
        assert (await client.post("/runs/r1/cancel")).status_code == 404
        assert (await client.get("/runs")).json()["runs"] == []
    for who in ("pipeline", "admin"):
        async with house.client(who) as client:
            assert (await client.get(path)).status_code == 200


async def test_paths_that_an_operator_opens_need_no_token() -> None:
    opened = frozenset({"/healthz", "/readyz", "/docs"})
    house = House(ServiceSettings(open_paths=opened))
    async with house.client(None) as client:
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/docs")).status_code == 200
        assert (await client.get("/metrics")).status_code == 401
    with pytest.raises(InputError):
        ServiceSettings(open_paths=frozenset({"/runs"}))


async def test_a_token_that_calls_too_often_must_wait_and_others_need_not() -> None:
    now = [0.0]
    house = House(ServiceSettings(burst=2, rate_per_second=0.5), clock=lambda: now[0])
    async with house.client("reader") as client, house.client("other") as other:
        assert [(await client.get("/runs")).status_code for _ in range(2)] == [200, 200]
        refused = await client.get("/runs")
        problem(refused, "rate-limited")
        assert refused.headers["retry-after"] == "2"
        assert (await other.get("/runs")).status_code == 200
        now[0] += 2
        assert (await client.get("/runs")).status_code == 200


async def test_an_address_that_calls_without_a_token_must_wait_and_tokens_need_not() -> None:
    now = [0.0]
    opened = frozenset({"/healthz", "/readyz"})
    limits = {"burst": 2, "rate_per_second": 0.5, "open_paths": opened}
    house = House(ServiceSettings(**limits), clock=lambda: now[0])
    guess = {"Authorization": f"Bearer {new_secret()[0]}"}
    async with house.client(None) as nobody, house.client("reader") as reader:
        assert (await nobody.get("/runs")).status_code == 401
        assert (await nobody.get("/runs", headers=guess)).status_code == 401
        for call in (
            nobody.get("/runs", headers=guess),
            nobody.post("/certify", json=BODY),
            nobody.get("/readyz"),
        ):
            refused = await call
            problem(refused, "rate-limited")
            assert refused.headers["retry-after"] == "2"
        # Behind a proxy all share an address: whoever has a token is not kept out with the others.
        assert (await reader.get("/runs")).status_code == 200
        assert (await nobody.get("/healthz")).status_code == 200
        async with house.client(None, address="203.0.113.9") as elsewhere:
            assert (await elsewhere.get("/runs")).status_code == 401
        now[0] += 2
        assert (await nobody.get("/runs", headers=guess)).status_code == 401


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
    ],
)
def test_what_counts_as_one_address(one, other, same) -> None:
    names = [address_of({"client": (host, 40000 + at)}) for at, host in enumerate((one, other))]
    assert (names[0] == names[1]) is same
    assert address_of({"client": None}) == address_of({}) != names[0]


async def test_without_a_database_nobody_is_let_in_and_told_to_come_back(house, caplog) -> None:
    async def down(digest: str) -> Token | None:
        raise IncompleteError("the service's database does not answer", mend="Try again later")

    house.tokens.by_digest = down
    async with house.client("admin") as client:
        for path in ("/runs", "/there-is-no-such-call"):
            answer = await client.get(path)
            problem(answer, "unavailable")
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
        assert (await client.get("/healthz")).status_code == 200


async def test_what_falls_silent_later_says_when_to_come_back_too(house) -> None:
    house.keeper.fault = IncompleteError("the service's database does not answer")
    async with house.client() as client:
        answer = await client.post("/certify", json=BODY)
        problem(answer, "unavailable")
        assert int(answer.headers["retry-after"]) > 0


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    now = [0.0]
    limiter = RateLimiter(10, 3, lambda: now[0])
    now[0] = 1e6
    assert [limiter.take("a") for _ in range(4)] == [0, 0, 0, 1]
    now[0] -= 5
    assert limiter.take("a") == 1


async def test_a_large_body_is_refused_by_its_declared_length(house) -> None:
    async with house.client() as client:
        headers = {"Content-Type": "application/json", "Content-Length": str(10**9)}
        answer = await client.post("/certify", content=b"{}", headers=headers)
        problem(answer, "too-large")
        answer = await client.post("/runs/r1/cancel", content=b"x" * 70_000)
        problem(answer, "too-large")


async def test_a_large_body_is_refused_while_it_arrives(house) -> None:
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 65536
            yield b" " * 65536

    async with house.client() as client:
        for path in ("/certify", "/verify"):
            sent = 0
            answer = await client.post(
                path, content=endless(), headers={"Content-Type": "application/json"}
            )
            problem(answer, "too-large")
            assert sent < 8 * 1024 * 1024


async def test_every_change_leaves_one_line_without_a_secret(house, caplog) -> None:
    caplog.set_level(logging.INFO, "retire.audit")
    async with house.client() as client:
        await client.post("/certify", json=BODY)
        await client.post("/certify", json={**BODY, "deployment": "nowhere"})
        await client.post("/runs/r1/cancel")
        await client.get("/runs/r1")
        house.keeper.fault = RuntimeError("no disk")
        await client.post("/certify", json=BODY)
    async with house.client("reader") as client:
        await client.post("/certify", json={**BODY, "api_key": "sk-very-secret"})
        await client.post("/runs/r1/purge")
    house.keeper.fault = None
    async with house.client("admin") as client:
        await client.post("/runs/r1/purge")
        await client.post("/runs/r9/purge")
    lines = [json.loads(r.getMessage()) for r in caplog.records if r.name == "retire.audit"]
    told = [(line["action"], line["token"], line["subject"], line["outcome"]) for line in lines]
    assert told == [
        ("run.start", "t-pipeline", "r1", "done"),
        ("run.start", "t-pipeline", "", "refused"),
        ("run.cancel", "t-pipeline", "r1", "done"),
        ("run.start", "t-pipeline", "", "failed"),
        ("run.start", "t-reader", "", "refused"),
        ("run.purge", "t-reader", "r1", "refused"),
        ("run.purge", "t-admin", "r1", "done"),
        ("run.purge", "t-admin", "r9", "refused"),
    ]
    written = caplog.text
    assert "sk-very-secret" not in written
    assert not any(secret in written for secret in house.secrets.values())
