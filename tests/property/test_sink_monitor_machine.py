"""Any order of messages, restarts and failures: no second act, and no act without an intent."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from sink.record import ChainState, check_chain, parse_line, sign_head
from tests import houses
from tests.unit.sink.fake_world import Door, FakeWorld
from tests.unit.sink.test_decision_record import KEY

pytestmark = pytest.mark.property

ANSWERS = st.sampled_from(
    [
        houses.answer({"target": "climate.den", "temperature": 26.5}),
        houses.answer({"target": "climate.den", "temperature": 20}),
        houses.answer({"target": "climate.den", "temperature": 27}),
        houses.answer({"target": "climate.hall", "temperature": 26.5}),
        houses.answer({}, tool="fan_on"),
        houses.text_answer("{}"),
        "",
    ]
)
STATES = st.sampled_from(
    [(), (("/grants", {}),), (("/facts/window/value", "open"),), (("/as_of", "never"),)]
)


class SinkMachine(RuleBasedStateMachine):
    """The sink under everything that may happen to it."""

    attempts = Bundle("attempts")

    @initialize()
    def begin(self):
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0
        self.authorized = {}
        self.world = FakeWorld()
        self.door = None
        self._open()

    def _open(self):
        door = Door(Path(self.folder.name), world=self.world, deadline_seconds=0.02)
        self.door = self.loop.run_until_complete(door.start())

    @rule(target=attempts, changes=STATES)
    def freeze(self, changes):
        self.count += 1
        attempt = f"{self.count:032x}"
        self.world.freeze(attempt, *changes)
        self.authorized[attempt] = not changes
        return attempt

    @rule(attempt=attempts, answer=ANSWERS, copies=st.integers(1, 3))
    def propose(self, attempt, answer, copies):
        replies = self.loop.run_until_complete(self._ask(attempt, answer, copies))
        assert sum(reply["decision"] == "allow" for reply in replies) <= 1
        for reply in replies:
            assert reply["decision"] in {"allow", "deny"}
            assert (reply["decision"] == "deny") == bool(reply["reason"])

    async def _ask(self, attempt, answer, copies):
        asked = (self.door.ask(attempt=attempt, answer=answer) for _ in range(copies))
        return await asyncio.gather(*asked)

    @rule(
        step=st.sampled_from(["frozen", "act"]),
        fault=st.sampled_from([RuntimeError("x"), ConnectionError("x"), "hang"]),
        sent_first=st.booleans(),
    )
    def break_world(self, step, fault, sent_first):
        self.world.broken, self.world.fault, self.world.sent_first = step, fault, sent_first

    @rule()
    def mend_world(self):
        self.world.broken = ""

    @rule(refuse_from=st.sampled_from([None, 1, 2, 3]))
    def fill_disk(self, refuse_from):
        self.door.record.refuse_from = refuse_from

    @rule()
    def restart(self):
        self.door.record.close()
        self._open()

    @rule(cut=st.integers(1, 30))
    def tear_while_writing(self, cut):
        """A kill within a write leaves part of an entry that nobody was told of."""
        self.door.record.close()
        with self.door.path.open("ab") as file:
            file.write(b'{"seq":99,"prev":"sha256:00000"'[:cut])
        self._open()

    @invariant()
    def nothing_is_sent_twice(self):
        sent = [item[1] for item in self.world.sent]
        assert len(set(sent)) == len(sent)

    @invariant()
    def every_act_has_its_intent_on_disk(self):
        lines = self.door.path.read_bytes().splitlines()
        bodies = [parse_line(line).body for line in lines]
        intents = {body["attempt"]: body for body in bodies if body.get("decision") == "allow"}
        for _, attempt, action, _ in self.world.sent:
            assert dict(action.parameters)
            assert intents[attempt]["action"]["target"] == action.target == "climate.den"
            if intents[attempt]["basis"] == "authority":
                assert self.authorized[attempt]

    @invariant()
    def the_record_is_whole(self):
        record = self.door.record
        head = sign_head(KEY, "sink", record.seq, record.hash)
        report = check_chain(self.door.path.read_bytes(), head)
        assert report.state is ChainState.INTACT

    def teardown(self):
        if getattr(self, "door", None) is not None:
            self.door.record.close()
            self.folder.cleanup()
        self.loop.close()


TestSinkMachine = SinkMachine.TestCase
TestSinkMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
