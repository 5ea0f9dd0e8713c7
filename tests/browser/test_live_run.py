"""A run that is going on: the pages follow it by themselves, without being loaded again."""

from __future__ import annotations

import pytest

from tests.browser.looking import fresh_page, matrix_under_way, opened, viewing
from tests.browser.runs import SLOW, UNHURRIED
from tests.integration.commands import PANEL
from tests.integration.scripted_endpoint import ScriptedEndpoint, simulated

pytestmark = pytest.mark.browser


def wait_for_traces(page, address):
    """Wait until the run's page can be opened and some of its cells are done."""
    for _ in range(240):
        opened(page, address)
        row = page.locator("tr[data-run]")
        if row.count() and not row.locator(".count", has_text="0 of").count():
            return
        page.wait_for_timeout(250)
    raise AssertionError("the run never showed up")


def test_a_running_matrix_updates_its_pages(browser, tmp_path):
    protocol = tmp_path / "slow.yaml"
    protocol.write_text(SLOW)
    deployments = tmp_path / "deployments.yaml"
    runs = tmp_path / "runs"
    runs.mkdir()
    out = runs / "slow"
    with (
        ScriptedEndpoint(simulated("plain"), latency=0.2) as endpoint,
        fresh_page(browser) as page,
    ):
        deployments.write_text(UNHURRIED.format(url=endpoint.base_url))
        watch(page, (protocol, PANEL, deployments, out))


def watch(page, run):
    """Follow a run from its first cell to its verdict."""
    out = run[-1]
    with matrix_under_way(*run) as process:
        while not (out / "plan.json").exists():
            assert process.poll() is None
            page.wait_for_timeout(100)
        with viewing(out.parent) as address:
            follow(page, address)
            assert process.wait() == 0
            page.locator("section.judgement").first.wait_for()
            assert page.locator("#live").get_attribute("data-ended") == "yes"


def follow(page, address):
    """The list and then the run's page show more cells, without being loaded again."""
    wait_for_traces(page, address)
    page.evaluate("window.loadedOnce = true")
    first = page.locator("tr[data-run] .count").inner_text()
    page.wait_for_function(
        "before => document.querySelector('tr[data-run] .count').innerText !== before",
        arg=first,
    )
    assert page.evaluate("window.loadedOnce") is True

    page.locator("#runs tbody a").first.click()
    live = page.locator("#live")
    live.wait_for()
    page.evaluate("window.loadedOnce = true")
    assert live.get_attribute("data-ended") == "no"
    done = live.get_attribute("data-done")
    page.wait_for_function(
        "before => document.querySelector('#live').dataset.done !== before", arg=done
    )
    assert page.evaluate("window.loadedOnce") is True
