"""Every page, light and dark, narrow and wide: nobody is shut out, nothing sticks out."""

from __future__ import annotations

import pytest

from tests.browser.looking import Faults, fresh_page, opened, overflow, unfolded
from tests.integration.commands import retire, small_matrix, workshop

axe_library = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = pytest.mark.browser

PAGES = (
    "runs", "run", "traces", "filtered", "cell", "refused", "diff", "compare", "certificate",
    "tests", "missing", "report",
)  # fmt: skip
SERIOUS = {"serious", "critical"}


@pytest.fixture(scope="module")
def addresses(browser, small):
    """Where each kind of page is, found by following links."""
    with fresh_page(browser) as page:
        opened(page, f"{small}/ui/runs")
        run = small + page.locator("#runs tbody a").first.get_attribute("href")
        opened(page, run)
        diff = small + page.locator("a[data-diff]").first.get_attribute("href")
        certificate = small + page.locator("a[data-certificate]").first.get_attribute("href")
        compare = page.locator('a[href*="/compare"]').first.get_attribute("href")
        opened(page, f"{run}/traces?protected=yes&member=invalid")
        cell = small + page.locator("tr[data-seq] th a").first.get_attribute("href")
        opened(page, f"{run}/traces?d1=refusal")
        refused = small + page.locator("tr[data-seq] th a").first.get_attribute("href")
    out = workshop() / "report"
    done = retire("report", small_matrix()[0], "--out", out)
    assert done.code == 0, done.err
    return {
        "runs": f"{small}/ui/runs",
        "run": run,
        "traces": f"{run}/traces",
        "filtered": f"{run}/traces?d2=deny",
        "cell": cell,
        "refused": refused,
        "diff": diff,
        "compare": small + compare,
        "certificate": f"{certificate}?verify=yes",
        "tests": f"{run}/tests",
        "missing": f"{small}/ui/runs/no-such-run",
        "report": (out / "report.html").as_uri(),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_shuts_anybody_out(browser, addresses, name, scheme):
    """No violation that axe calls serious or critical, of any of its rules."""
    # The checker is put into the page, which the page's own policy would refuse.
    with fresh_page(browser, color_scheme=scheme, bypass_csp=True) as page:
        opened(page, addresses[name])
        unfolded(page)
        results = axe_library.Axe().run(page).response
    found = [
        (it["id"], it["impact"], [node["html"][:200] for node in it["nodes"][:3]])
        for it in results["violations"]
        if it["impact"] in SERIOUS
    ]
    assert len(results["passes"]) > 5
    assert found == []


@pytest.mark.parametrize("width", [400, 2000])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_its_window(browser, addresses, name, width):
    with fresh_page(browser, viewport={"width": width, "height": 900}) as page:
        opened(page, addresses[name])
        unfolded(page)
        assert overflow(page) <= 0


@pytest.mark.parametrize("name", [name for name in PAGES if name != "missing"])
def test_no_page_complains_or_asks_elsewhere(browser, addresses, name):
    with fresh_page(browser) as page:
        faults = Faults(page)
        opened(page, addresses[name])
        assert faults.found == []
        assert page.locator("h1").count() == 1
        assert page.locator("main").count() == 1


@pytest.mark.parametrize("name", [name for name in PAGES if name != "missing"])
def test_every_page_is_read_without_scripts(browser, addresses, name):
    with fresh_page(browser, java_script_enabled=False) as page:
        page.goto(addresses[name])
        assert page.locator("h1").count() == 1
