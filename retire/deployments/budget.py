"""A limit on what a run may spend, kept before each call: ``5 EUR``, ``200 calls``, ``1M tokens``.

A call begins only if its worst case, together with every call under way, stays within the limit:
the prompt as estimated, and as many written tokens as the configuration allows. What a call did
take is then counted from the server's own figures. A try without an answer counts as a call that
read its prompt, since an endpoint may charge for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from retire.deployments.estimating import prompt_tokens
from retire.deployments.openai_endpoint import EndpointFault
from retire.deployments.port import DeploymentFault
from retire.domain.errors import InputError
from sink.contract import canonical_decimal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from retire.deployments.configuration import Price
    from retire.deployments.port import Call, Completion, Deployment, Identity, Served
    from retire.domain.evidence import Evidence
    from retire.prompts import ToolSchema

_TEXT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(k|M)? *(calls?|tokens?|[A-Z]{3})")
_TIMES = {None: 1, "k": 1_000, "M": 1_000_000}
_MILLION = 1_000_000


class BudgetReached(DeploymentFault):
    """The next call could pass the budget; it was not made."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What calls took.

    Attributes:
        calls: Requests made.
        read: Tokens read.
        written: Tokens written.
    """

    calls: int = 0
    read: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit; ``unit`` is ``calls``, ``tokens`` or a currency of three letters."""

    limit: Decimal
    unit: str

    def __str__(self) -> str:
        return f"{canonical_decimal(self.limit)} {self.unit}"

    def amount(self, taken: Taken, price: Price | None) -> Decimal:
        """Return what calls come to in the budget's unit.

        Raises:
            InputError: The budget is money, and there is no price in its currency.
        """
        if self.unit == "calls":
            return Decimal(taken.calls)
        if self.unit == "tokens":
            return Decimal(taken.read + taken.written)
        if price is None or price.currency != self.unit:
            known = "no price" if price is None else f"a price in {price.currency}"
            raise InputError(
                f"the budget is in {self.unit} and a deployment has {known}",
                where="--budget",
                mend="Add price to the deployments file, or give the budget in calls or tokens",
            )
        return cost(taken, price)


def cost(taken: Taken, price: Price) -> Decimal:
    """Return what calls cost, in the price's currency."""
    read, written = Decimal(price.input) * taken.read, Decimal(price.output) * taken.written
    return (read + written) / _MILLION


def read_budget(text: str) -> Budget:
    """Read ``5 EUR``, ``0.50 USD``, ``200 calls``, ``1.5k calls`` or ``1M tokens``.

    Raises:
        InputError: Any other form, or nothing at all.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None or not Decimal(match[1]):
        raise InputError(
            f"{text[:60]!r} is no budget",
            where="--budget",
            mend="Write for example '5 EUR', '200 calls' or '1M tokens'",
        )
    number, times, unit = match.groups()
    unit = f"{unit}s" if unit in {"call", "token"} else unit
    return Budget(Decimal(number) * _TIMES[times], unit)


def taken_by(served: Iterable[Served]) -> Taken:
    """Return what stored calls took, to begin a resumed run's account with.

    Args:
        served: What is stored of every answered call of one deployment.
    """
    calls = read = written = 0
    for item in served:
        calls += item.tries
        read += item.tries * (item.prompt_tokens or 0)
        written += item.completion_tokens or 0
    return Taken(calls, read, written)


class Account:
    """One budget, shared by every deployment of a run.

    Args:
        budget: The limit.
        spent: What was spent before, in the budget's unit.
    """

    def __init__(self, budget: Budget, spent: Decimal = Decimal(0)) -> None:
        self.budget = budget
        self.spent = spent
        self._reserved = Decimal(0)

    def reserve(self, worst: Decimal) -> None:
        """Put aside what a call may come to.

        Raises:
            BudgetReached: It might pass the limit.
        """
        if self.spent + self._reserved + worst > self.budget.limit:
            under_way = " with the calls under way" if self._reserved else ""
            raise BudgetReached(
                f"the budget of {self.budget} is reached: {_money(self.spent)} spent, and the next "
                f"call could take {_money(worst)}{under_way}; give a larger budget to go on"
            )
        self._reserved += worst

    def settle(self, worst: Decimal, actual: Decimal) -> None:
        """Replace what was put aside by what the call took."""
        self._reserved -= worst
        self.spent += actual


def _money(amount: Decimal) -> str:
    return canonical_decimal(amount.quantize(Decimal("0.000001")))


class Budgeted:
    """A deployment that asks only within a budget.

    Args:
        inner: The deployment.
        account: Where its calls are counted.
        max_tokens: The most that one answer writes.
        price: What its tokens cost; needed where the budget is money.

    Raises:
        InputError: The budget is money, and the price is not in its currency.
    """

    def __init__(
        self, inner: Deployment, account: Account, max_tokens: int, price: Price | None = None
    ) -> None:
        self._inner = inner
        self._account = account
        self._max_tokens = max_tokens
        self._price = price
        account.budget.amount(Taken(), price)

    @property
    def name(self) -> str:
        """The inner one's."""
        return self._inner.name

    @property
    def identity(self) -> Identity:
        """The inner one's: a budget changes no answer."""
        return self._inner.identity

    @property
    def evidence(self) -> Evidence:
        """The inner one's."""
        return self._inner.evidence

    @property
    def concurrency(self) -> int | None:
        """The inner one's."""
        return self._inner.concurrency

    async def open(self) -> None:
        """Open the inner one."""
        await self._inner.open()

    async def close(self) -> None:
        """Close the inner one."""
        await self._inner.close()

    async def propose(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema], call: Call
    ) -> Completion:
        """Ask, if the budget allows the worst that may come of it.

        Raises:
            BudgetReached: It does not; nothing was asked.
            DeploymentFault: As the inner one.
        """
        read = prompt_tokens(messages, tools)
        worst = self._amount(Taken(1, read, self._max_tokens))
        self._account.reserve(worst)
        # What an answer that never comes may be charged for.
        taken = Taken(1, read, 0)
        try:
            completion = await self._inner.propose(messages, tools, call)
            taken = self._taken(completion.served, read)
        except EndpointFault as fault:
            taken = Taken(fault.tries, fault.tries * read, 0)
            raise
        finally:
            self._account.settle(worst, self._amount(taken))
        return completion

    def _taken(self, served: Served | None, read: int) -> Taken:
        if served is None:
            return Taken(1, read, self._max_tokens)
        answered = read if served.prompt_tokens is None else served.prompt_tokens
        in_vain = (served.tries - 1) * read
        written = served.completion_tokens
        return Taken(
            served.tries, answered + in_vain, self._max_tokens if written is None else written
        )

    def _amount(self, taken: Taken) -> Decimal:
        return self._account.budget.amount(taken, self._price)
