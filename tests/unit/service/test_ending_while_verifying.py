"""A server that is told to stop while a page takes long ends in order, and says so."""

from __future__ import annotations

import logging
import threading

import httpx
import pytest

from retire.service.reviewing.viewing import view_app
from tests.unit.service.living import living


class SlowRun:
    """A run whose certificate takes long to verify, and its tests to compute."""

    def __init__(self):
        self.begun = threading.Event()
        self.release = threading.Event()
        self.verified = {}

    def verification(self, name):
        return self.tests()

    def tests(self):
        self.begun.set()
        assert self.release.wait(60)
        return {}


class OneRun:
    def __init__(self):
        self.run = SlowRun()

    async def open(self, run, owner):
        return self.run


class Viewing:
    def __init__(self):
        self.source = OneRun()
        self.app = view_app(self.source)


@pytest.mark.parametrize(
    "address",
    ["certificates/plain-B2?verify=yes", "certificates/plain-B2/verification", "tests"],
)
def test_whoever_waits_is_told_and_nothing_is_logged_as_a_failure(address, caplog):
    house = Viewing()
    slow = house.source.run
    answers = []

    def ask(base):
        answers.append(httpx.get(f"{base}/ui/runs/r/{address}", timeout=60))
        slow.release.set()

    # The server's loggers do not hand on what they log.
    for name in ("uvicorn.error", "uvicorn"):
        logging.getLogger(name).propagate = True
    try:
        with living(house) as base:
            asking = threading.Thread(target=ask, args=(base,))
            asking.start()
            assert slow.begun.wait(20)
        asking.join(20)
    finally:
        slow.release.set()
    assert [answer.status_code for answer in answers] == [503]
    assert not [it for it in caplog.records if it.levelno >= logging.ERROR]
