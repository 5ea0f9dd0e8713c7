"""A budget is kept before a call, counted after it, and goes on where it stopped."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from retire.deployments.budget import (
    Account,
    Budgeted,
    BudgetReached,
    Taken,
    read_budget,
    taken_by,
)
from retire.deployments.configuration import load_deployments
from retire.deployments.estimating import prompt_tokens
from retire.deployments.openai_endpoint import EndpointFault
from retire.deployments.port import Call, Completion, DeploymentFault, Served
from retire.domain.errors import InputError
from sink.proposal import RawAnswer

MESSAGES = ({"role": "user", "content": "Unlock the front door. " * 20},)
CALL = Call(1, "audit", 1, "x")
ANSWER = RawAnswer(mode="json", text="{}", finish_reason="stop")
READ = prompt_tokens(MESSAGES)
PRICE = (
    load_deployments(
        b"""
schema: retire.deployments/v1
deployments:
  - provider: openai
    name: priced
    base_url: http://127.0.0.1:1/v1
    model: m
    price: {input: 2, output: 10, currency: EUR}
""",
        "deployments.yaml",
    )
    .deployments[0]
    .price
)


class Answering:
    """Takes what it is told to take; waits where it is told to."""

    name = "answering"
    evidence = "live_model"
    concurrency = 4

    def __init__(self, served=None, fault=None):
        self.identity = {"provider": "fake"}
        self.served = served
        self.fault = fault
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def open(self):
        pass

    async def close(self):
        pass

    async def propose(self, messages, tools, call):
        self.calls += 1
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return Completion(ANSWER, self.served)


async def ask(deployment):
    return await deployment.propose(MESSAGES, (), CALL)


@pytest.mark.parametrize(
    ("text", "limit", "unit"),
    [
        ("5 EUR", "5", "EUR"),
        ("0.50 USD", "0.50", "USD"),
        ("200 calls", "200", "calls"),
        ("1 call", "1", "calls"),
        ("1M tokens", "1000000", "tokens"),
        ("1.5k calls", "1500", "calls"),
        (" 12tokens ", "12", "tokens"),
    ],
)
def test_a_budget_is_read_from_words(text, limit, unit):
    budget = read_budget(text)
    assert (budget.limit, budget.unit) == (Decimal(limit), unit)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "EUR 5",
        "5 euros",
        "-5 EUR",
        "0 EUR",
        "five calls",
        "1G tokens",
        "5 EUR 3 USD",
        "5 €",
    ],
)
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(InputError, match="200 calls"):
        read_budget(text)


async def test_no_call_is_made_that_could_pass_the_limit():
    inner = Answering(Served(prompt_tokens=100, completion_tokens=10))
    budget = read_budget(f"{2 * (READ + 64)} tokens")
    account = Account(budget)
    deployment = Budgeted(inner, account, max_tokens=64)
    while account.spent + READ + 64 <= budget.limit:
        await ask(deployment)
    made = inner.calls
    assert made >= 2
    assert account.spent == made * 110
    with pytest.raises(BudgetReached) as caught:
        await ask(deployment)
    assert inner.calls == made
    assert str(budget) in str(caught.value)


async def test_calls_under_way_are_counted_at_their_worst():
    inner = Answering(Served(prompt_tokens=1, completion_tokens=1))
    inner.gate.clear()
    deployment = Budgeted(inner, Account(read_budget("3 calls")), max_tokens=64)
    asking = [asyncio.create_task(ask(deployment)) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(BudgetReached, match="under way"):
        await ask(deployment)
    inner.gate.set()
    await asyncio.gather(*asking)
    assert inner.calls == 3


async def test_money_is_counted_at_the_declared_price():
    inner = Answering(Served(prompt_tokens=1000, completion_tokens=100))
    account = Account(read_budget("1 EUR"))
    await ask(Budgeted(inner, account, 64, PRICE))
    assert account.spent == Decimal("0.003")


@pytest.mark.parametrize("budget", ["1 EUR", "1 USD"])
def test_money_without_a_price_in_its_currency_is_refused(budget):
    price = None if budget == "1 EUR" else PRICE
    with pytest.raises(InputError, match="price"):
        Budgeted(Answering(), Account(read_budget(budget)), 64, price)


async def test_figures_that_a_server_does_not_give_are_taken_at_their_worst():
    account = Account(read_budget("1M tokens"))
    await ask(Budgeted(Answering(Served()), account, max_tokens=64))
    await ask(Budgeted(Answering(None), account, max_tokens=64))
    assert account.spent == 2 * (READ + 64)


async def test_tries_in_vain_count_as_calls_that_read_their_prompt():
    calls, tokens = Account(read_budget("100 calls")), Account(read_budget("1M tokens"))
    for account in (calls, tokens):
        served = Served(prompt_tokens=100, completion_tokens=10, tries=3)
        await ask(Budgeted(Answering(served), account, 64))
        with pytest.raises(DeploymentFault):
            await ask(Budgeted(Answering(fault=EndpointFault("down", 5)), account, 64))
        with pytest.raises(DeploymentFault):
            await ask(Budgeted(Answering(fault=DeploymentFault("closed")), account, 64))
    assert calls.spent == 3 + 5 + 1
    assert tokens.spent == 110 + 2 * READ + 5 * READ + READ


async def test_a_cancelled_call_gives_its_reservation_back_and_counts_its_prompt():
    inner = Answering(Served())
    inner.gate.clear()
    account = Account(read_budget("1M tokens"))
    asking = asyncio.create_task(ask(Budgeted(inner, account, 64)))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert account.spent == READ
    account.reserve(account.budget.limit - account.spent)


async def test_a_resumed_run_goes_on_from_what_is_stored():
    served = [
        Served(prompt_tokens=100, completion_tokens=10, tries=1),
        Served(prompt_tokens=100, completion_tokens=20, tries=2),
    ]
    taken = taken_by(served)
    assert taken == Taken(calls=3, read=300, written=30)
    budget = read_budget("3 calls")
    inner = Answering(Served())
    deployment = Budgeted(inner, Account(budget, budget.amount(taken, None)), 64)
    with pytest.raises(BudgetReached):
        await ask(deployment)
    assert inner.calls == 0


async def test_two_deployments_share_one_account():
    account = Account(read_budget("2 calls"))
    first, second = Answering(Served()), Answering(Served())
    await ask(Budgeted(first, account, 64))
    await ask(Budgeted(second, account, 64))
    with pytest.raises(BudgetReached):
        await ask(Budgeted(first, account, 64))


def test_a_budget_changes_nothing_else():
    inner = Answering()
    deployment = Budgeted(inner, Account(read_budget("1 call")), 64)
    assert deployment.name == inner.name
    assert deployment.identity == inner.identity
    assert deployment.evidence == inner.evidence
    assert deployment.concurrency == inner.concurrency
