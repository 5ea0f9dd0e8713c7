"""The pages of a real service: who signs in sees their own runs, and a cookie opens pages alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.integration.commands import retire
from tests.integration.serving import serving
from tests.integration.viewing import Reader
from tests.markup import read_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.serving import Serving

pytestmark = pytest.mark.integration

ASKED = {
    "bundle": "PRV_L01",
    "reduce": True,
    "deployment": "plain",
    "placement": "B2",
    "repetitions": 1,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("pages")) as found:
        yield found


def asked(server: Serving, token: str) -> dict[str, object]:
    answer = httpx.post(
        f"{server.address}/certify",
        json=ASKED,
        headers={"Authorization": f"Bearer {token}", "Prefer": "wait=60"},
        timeout=90,
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


@pytest.fixture(scope="module")
def run(server: Serving) -> str:
    """A run of the token with scope certify."""
    return str(asked(server, server.token("certify"))["id"])


@pytest.fixture
def sign_in() -> Iterator[Callable[..., Reader]]:
    """Makes browsers that have signed in, and closes them."""
    readers: list[Reader] = []

    def begin(server: Serving, token: str, back: str = "") -> Reader:
        readers.append(Reader(server.address))
        return signed_in(readers[-1], server, token, back)

    yield begin
    for reader in readers:
        reader.client.close()


def signed_in(reader: Reader, server: Serving, token: str, back: str) -> Reader:
    """Sign a browser in."""
    page = reader.open(f"/ui/sign-in?back={back}" if back else "/ui/sign-in")
    form = page.one("form", method="post")
    fields = {it["name"]: it.attributes.get("value", "") for it in form.all("input")}
    answer = reader.client.post(
        form["action"], data={**fields, "token": token}, headers={"Origin": server.address}
    )
    assert answer.status_code == 303, answer.text
    assert token not in str(answer.headers)
    reader.at = answer.headers["location"]
    return reader


def test_without_a_session_every_page_leads_to_signing_in(server, run):
    with httpx.Client(base_url=server.address) as client:
        for path in ("/", "/ui", "/ui/runs", f"/ui/runs/{run}", "/ui/compare", "/ui/list"):
            answer = client.get(path)
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/ui/sign-in")
        assert client.get("/ui/static/style.css").status_code == 200
        assert client.get("/runs").status_code == 401


def test_who_signs_in_reads_the_run_and_its_certificate(server, run, sign_in):
    reader = sign_in(server, server.token("certify"), "/ui/runs")
    assert reader.at == "/ui/runs"
    runs = reader.open("/")
    page = reader.follow(runs.one("tr", data_run=run).one("a"))
    assert page.one("section", data_verdict="fail")
    square = next(it for it in page.all("td", data_condition="B2") if int(it["data-leaks"]))
    traces = reader.follow(square.all("a")[1])
    cell = reader.follow(traces.having("data-seq")[0].one("a"))
    assert cell.one("section", data_leak="yes")
    assert reader.follow(cell.one("a", data_step="diff")).having("data-clause")
    page = reader.open(f"/ui/runs/{run}/certificates/plain-B2?verify=yes")
    assert page.one("div", data_verification="intact")
    envelope = reader.client.get(page.having("data-download")[0]["href"]).json()
    kept = httpx.get(
        f"{server.address}/certificates/{run}",
        headers={"Authorization": f"Bearer {server.token('certify')}"},
    )
    assert envelope == kept.json()


def test_the_cookie_is_for_this_browser_alone_and_for_pages_alone(server, run, sign_in):
    reader = sign_in(server, server.token("certify"))
    (cookie,) = reader.client.cookies.jar
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite").lower() == "strict"
    assert cookie.expires is None
    assert server.token("certify") not in (cookie.value or "")
    for path in ("/runs", f"/runs/{run}", f"/certificates/{run}", "/bundles", "/metrics"):
        assert reader.client.get(path).status_code == 401
    for path in (f"/runs/{run}/cancel", "/certify", "/bundles", "/verify"):
        answer = reader.client.post(path, json={}, headers={"Origin": server.address})
        assert answer.status_code == 401


def test_others_runs_look_as_if_there_were_none(server, run, sign_in):
    made = retire("token", "new", "--scope", "read", "--data", server.folder / "data")
    stranger = sign_in(server, made.out.split()[1])
    assert not stranger.open("/ui/runs").all("tr", data_run=run)
    for part in ("", "/traces", "/cells/1", "/tests", "/progress", "/certificates/plain-B2"):
        stranger.open(f"/ui/runs/{run}{part}", 404)
    stranger.open(f"/ui/compare?left={run}&right={run}", 404)
    admin = sign_in(server, server.token("admin"))
    assert admin.open("/ui/runs").all("tr", data_run=run)
    assert admin.open(f"/ui/runs/{run}").one("section", data_verdict="fail")


def test_signing_out_or_revoking_ends_the_session(server, sign_in):
    made = retire("token", "new", "--scope", "read", "--data", server.folder / "data")
    name, secret = made.out.split()[:2]
    reader = sign_in(server, secret)
    page = reader.open("/ui/runs")
    form = page.one("form", class_="sign-out")
    kept = dict(reader.client.cookies)
    out = reader.client.post(form["action"], headers={"Origin": server.address})
    assert out.status_code == 303
    reader.client.cookies.update(kept)
    assert reader.client.get("/ui/runs").status_code == 303
    again = sign_in(server, secret)
    assert again.client.get("/ui/runs").status_code == 200
    assert retire("token", "revoke", name, "--data", server.folder / "data").code == 0
    assert again.client.get("/ui/runs").status_code == 303


@pytest.mark.parametrize("origin", [None, "http://example.org", "null", "http://127.0.0.1:1"])
def test_a_form_from_elsewhere_is_refused(server, origin, sign_in):
    headers = {} if origin is None else {"Origin": origin}
    reader = sign_in(server, server.token("certify"))
    for path in ("/ui/sign-in", "/ui/sign-out"):
        answer = reader.client.post(path, data={"token": server.token("certify")}, headers=headers)
        assert answer.status_code == 403
        assert reader.client.get("/ui/runs").status_code == 200


@pytest.mark.parametrize("secret", ["", "retire_" + "x" * 43, "\u202e", "x" * 5000])
def test_a_wrong_token_says_so_and_begins_nothing(server, secret):
    with httpx.Client(base_url=server.address) as client:
        answer = client.post(
            "/ui/sign-in", data={"token": secret}, headers={"Origin": server.address}
        )
        assert answer.status_code == 401
        assert read_page(answer.text).one("p", role="alert").words
        assert "set-cookie" not in answer.headers


def test_a_run_under_way_is_listed_and_then_shown(server, sign_in):
    token = server.token("certify")
    answer = httpx.post(
        f"{server.address}/certify",
        json={**ASKED, "repetitions": 30, "seed": 7},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 202, answer.text
    name = answer.json()["id"]
    reader = sign_in(server, token)
    row = reader.open("/ui/runs").one("tr", data_run=name)
    assert row["data-state"] in {"queued", "running", "complete"}
    with httpx.Client(base_url=server.address, timeout=90) as client:
        headers = {"Authorization": f"Bearer {token}"}
        with client.stream("GET", f"/runs/{name}/events", headers=headers) as events:
            lines = [line for line in events.iter_lines() if line.startswith("data:")]
        assert json.loads(lines[-1][5:])["state"] == "complete"
    page = reader.open(f"/ui/runs/{name}")
    assert page.one("div", id="live")["data-ended"] == "yes"
    assert int(page.one("div", id="live")["data-done"]) == 240
