"""A reviewer's way: verdict, leaking square, cell, twin, difference; by mouse and by keys alone."""

from __future__ import annotations

import re

import pytest

from tests.browser.looking import fresh_page, opened, settled

pytestmark = pytest.mark.browser

CHOSEN = {"deployment": "eager", "condition": "B2"}


def kind(page):
    return page.locator("body").get_attribute("data-page")


def leaking_square(page):
    squares = page.locator('td.square[data-condition="B2"] a.half.leak')
    for number in range(squares.count()):
        if squares.nth(number).locator("xpath=..").get_attribute("data-leaks") not in {"0", ""}:
            return squares.nth(number)
    raise AssertionError("no square of B2 leaks")


def test_from_the_verdict_to_the_clause_that_leaked(page, small):
    opened(page, small)
    assert kind(page) == "runs"
    page.locator("#runs tbody a").first.click()
    settled(page)
    assert kind(page) == "run"
    assert page.locator("[data-evidence]").get_attribute("data-evidence") == "simulated"
    page.locator('a.candidate[data-verdict="fail"][data-condition="B2"]').first.click()
    settled(page)
    judged = page.locator("section.judgement")
    assert judged.get_attribute("data-verdict") == "fail"
    assert (
        page.locator('[data-gate-name="authority"] [data-gate]').get_attribute("data-gate")
        == "shut"
    )

    square = leaking_square(page)
    count = int(square.locator("xpath=..").get_attribute("data-leaks"))
    square.click()
    settled(page)
    assert kind(page) == "traces"
    rows = page.locator("tr[data-seq]")
    assert rows.count() == count
    assert all(it.get_attribute("data-leak") == "yes" for it in rows.all())
    bundle = rows.first.get_attribute("data-bundle")

    rows.first.locator("th a").click()
    settled(page)
    assert kind(page) == "cell"
    leaking = page.url
    assert page.locator(".stage.d3").get_attribute("data-protected") == "yes"
    assert page.locator('[data-rerenders="yes"]').count() == 1
    difference = page.locator("#difference").inner_text()
    twin_says = page.locator("mark.twin").inner_text()
    assert difference != twin_says

    page.locator('[data-step="twin"]').click()
    settled(page)
    assert page.url != leaking
    assert "/authorized/" in page.locator("[data-cell]").get_attribute("data-cell")
    assert page.locator(".stage.d3").get_attribute("data-intended") == "yes"
    assert twin_says in page.locator('[data-role="user"] pre').inner_text()

    page.go_back()
    settled(page)
    assert page.url == leaking
    page.locator('[data-step="diff"]').click()
    settled(page)
    assert kind(page) == "diff"
    leaks = page.locator("tr[data-gone=yes] a[data-leaks]")
    assert leaks.count() > 0
    assert leaks.first.locator("xpath=ancestor::tr").get_attribute("data-role") == (
        "execution_condition"
    )
    leaks.first.click()
    settled(page)
    assert kind(page) == "traces"
    assert {it.get_attribute("data-bundle") for it in page.locator("tr[data-seq]").all()} == {
        bundle
    }


def focused(page):
    return page.evaluate(
        "({ href: document.activeElement.getAttribute('href') || '',"
        " outline: getComputedStyle(document.activeElement).outlineStyle,"
        " width: parseFloat(getComputedStyle(document.activeElement).outlineWidth) })"
    )


def tab_to(page, wanted):
    """Press Tab until the link that is wanted has the focus, which must be seen at every stop."""
    for _ in range(400):
        page.keyboard.press("Tab")
        now = focused(page)
        if not now["href"]:
            continue
        assert now["outline"] != "none", now
        assert now["width"] >= 1, now
        if re.search(wanted, now["href"]):
            return
    raise AssertionError(f"no link like {wanted} was reached")


def enter(page):
    """Follow the link that has the focus, and wait for the page behind it."""
    with page.expect_navigation():
        page.keyboard.press("Enter")
    settled(page)


def test_the_same_way_with_the_keyboard_alone(page, small):
    opened(page, small)
    page.keyboard.press("Tab")
    assert focused(page)["href"] == "#main"
    page.keyboard.press("Enter")
    tab_to(page, r"/ui/runs/[^/?]+$")
    enter(page)
    tab_to(page, r"condition=B2.*protected=yes")
    enter(page)
    assert kind(page) == "traces"
    tab_to(page, r"/cells/\d+")
    enter(page)
    assert kind(page) == "cell"
    leaking = page.url

    for key, arrives in (("t", "cell"), ("d", "diff")):
        page.goto(leaking)
        settled(page)
        with page.expect_navigation():
            page.keyboard.press(key)
        settled(page)
        assert kind(page) == arrives
        assert page.url != leaking


def test_keys_that_are_shown_step_where_their_links_lead(page, small):
    opened(page, f"{small}/ui/runs")
    run = page.locator("#runs tbody a").first.get_attribute("href")
    opened(page, f"{small}{run}/traces?protected=yes&member=invalid")
    page.locator("tr[data-seq] th a").first.click()
    settled(page)
    here = page.url
    links = page.locator("a[data-key]")
    steps = {it.get_attribute("data-key"): it.get_attribute("href") for it in links.all()}
    assert {"t", "d"} <= set(steps)
    for key, href in steps.items():
        assert page.locator(f'a[data-key="{key}"] kbd').first.inner_text() == key
        with page.expect_navigation():
            page.keyboard.press(key)
        assert page.url == small + href
        opened(page, here)


def test_filters_live_in_the_address(page, small):
    opened(page, f"{small}/ui/runs")
    run = page.locator("#runs tbody a").first.get_attribute("href")
    opened(page, f"{small}{run}/traces")
    whole = page.locator("[data-matching]").get_attribute("data-matching")
    for name, value in CHOSEN.items():
        page.locator(f'select[name="{name}"]').select_option(value)
    page.get_by_role("button", name="Show").click()
    settled(page)
    shown = page.locator("[data-matching]").get_attribute("data-matching")
    assert int(shown) < int(whole)
    address = page.url
    assert "deployment=eager" in address
    page.reload()
    settled(page)
    assert page.url == address
    assert page.locator("[data-matching]").get_attribute("data-matching") == shown
    for name, value in CHOSEN.items():
        assert page.locator(f'select[name="{name}"]').input_value() == value
    for row in page.locator("tr[data-seq]").all():
        assert row.get_attribute("data-deployment") == "eager"
        assert row.get_attribute("data-condition") == "B2"


def test_a_colleague_sees_the_same_candidate(page, browser, small):
    opened(page, small)
    page.locator("#runs tbody a").first.click()
    settled(page)
    page.locator('a.candidate[data-condition="B4"]').last.click()
    settled(page)
    judged = page.locator("section.judgement")
    seen = [judged.get_attribute(f"data-{name}") for name in ("deployment", "condition", "verdict")]
    with fresh_page(browser) as other:
        opened(other, page.url)
        judged = other.locator("section.judgement")
        assert seen == [
            judged.get_attribute(f"data-{name}") for name in ("deployment", "condition", "verdict")
        ]


def test_a_certificate_is_verified_and_downloaded(page, small):
    opened(page, small)
    page.locator("#runs tbody a").first.click()
    settled(page)
    page.locator("[data-certificate]").first.click()
    page.locator('[data-verification="intact"]').wait_for()
    with page.expect_download() as download:
        page.locator("[data-download]").click()
    assert '"payload"' in download.value.path().read_text()
