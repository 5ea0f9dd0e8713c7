"""Limits per minute and at once: never passed, and nobody waits longer than they demand."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retire.deployments.limits import (
    LONGEST_WAIT_SECONDS,
    WINDOW_SECONDS,
    RateLimit,
    asked_wait,
    backoff,
    is_worth_another_try,
)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 1000.0

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        assert seconds > 0
        self.now += seconds
        await asyncio.sleep(0)


async def admissions(times, limit, tokens):
    """Ask for each request in turn; return when each was admitted."""
    admitted = []
    for needed in tokens:
        async with limit.admitted(needed):
            admitted.append(times.now)
    return admitted


@settings(max_examples=60, deadline=None)
@given(
    requests=st.none() | st.integers(1, 6),
    per_minute=st.none() | st.integers(1, 100),
    tokens=st.lists(st.integers(0, 120), max_size=20),
)
def test_no_minute_holds_more_than_is_allowed(requests, per_minute, tokens):
    times = Time()
    limit = RateLimit(4, requests, per_minute, times.clock, times.sleep)
    admitted = asyncio.run(admissions(times, limit, tokens))
    for first, start in enumerate(admitted):
        within = [n for n, at in enumerate(admitted) if start <= at < start + WINDOW_SECONDS]
        within = [n for n in within if n >= first]
        if requests is not None:
            assert len(within) <= requests
        if per_minute is not None and len(within) > 1:
            assert sum(tokens[n] for n in within) <= per_minute


async def test_what_an_answer_did_not_take_is_given_back():
    times = Time()
    limit = RateLimit(4, None, 100, times.clock, times.sleep)
    async with limit.admitted(90) as admission:
        admission.tokens = 10
    async with limit.admitted(90):
        assert times.now == 1000.0


async def test_without_limits_nobody_waits():
    times = Time()
    limit = RateLimit(4, None, None, times.clock, times.sleep)
    assert await admissions(times, limit, [10**9] * 50) == [1000.0] * 50


async def test_a_pause_that_a_server_asks_for_holds_everybody():
    times = Time()
    limit = RateLimit(4, None, None, times.clock, times.sleep)
    limit.hold(30)
    limit.hold(10)
    assert await admissions(times, limit, [1, 1]) == [1030.0, 1030.0]


async def test_a_place_is_given_back_by_a_failure_and_by_a_cancellation():
    times = Time()
    limit = RateLimit(1, None, None, times.clock, times.sleep)
    with pytest.raises(KeyError):
        async with limit.admitted(1):
            raise KeyError
    holding = asyncio.Event()

    async def hold():
        async with limit.admitted(1):
            holding.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hold())
    await holding.wait()
    waiting = asyncio.create_task(admissions(times, limit, [1]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await waiting == [1000.0]


@pytest.mark.parametrize(
    ("status", "again"), [(200, False), (404, False), (429, True), (503, True)]
)
def test_only_a_status_that_says_later_is_worth_another_try(status, again):
    assert is_worth_another_try(status) is again


@given(tries=st.integers(1, 10_000), jitter=st.floats(0, 1))
def test_waits_grow_to_a_bound(tries, jitter):
    assert 0.25 <= backoff(tries, jitter) <= 30.0
    assert backoff(tries, jitter) <= backoff(tries + 1, jitter)
    assert backoff(tries, 1.0) < LONGEST_WAIT_SECONDS


@given(text=st.text(max_size=40), date=st.text(max_size=40))
def test_whatever_stands_in_retry_after_gives_a_wait_or_nothing(text, date):
    wait = asked_wait({"retry-after": text, "date": date})
    assert wait is None or wait >= 0


def test_a_date_in_the_past_asks_for_no_wait():
    headers = {
        "date": "Mon, 30 Nov 2026 10:00:09 GMT",
        "retry-after": "Mon, 30 Nov 2026 10:00:00 GMT",
    }
    assert asked_wait(headers) == 0.0
    assert asked_wait({"retry-after": headers["retry-after"]}) is None
