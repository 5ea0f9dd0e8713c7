"""A run within a budget: what earlier passes spent counts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from retire.deployments.budget import Account, Budgeted, taken_by
from retire.deployments.configuration import OpenAIConfiguration

if TYPE_CHECKING:
    from decimal import Decimal

    from retire.deployments import Deployment
    from retire.deployments.budget import Budget
    from retire.deployments.configuration import Price
    from retire.deployments.port import Served
    from retire.store import RunStore
    from retire.wiring.preparing import Prepared


def within_budget(prepared: Prepared, store: RunStore) -> Prepared:
    """Return the run with a budget around every deployment that an operator configured.

    Recorded and simulated deployments cost nothing and are left as they are.

    Raises:
        InputError: The budget is money, and a deployment has no price in its currency.
    """
    budget, configured = prepared.request.budget, prepared.request.catalog.configured
    if budget is None:
        return prepared
    account = Account(budget, _spent(prepared, store, budget))
    deployments: dict[str, Deployment] = {
        name: (
            Budgeted(item, account, configured[name].sampling.max_tokens, _price(prepared, name))
            if name in configured
            else item
        )
        for name, item in prepared.deployments.items()
    }
    return replace(prepared, deployments=deployments)


def _spent(prepared: Prepared, store: RunStore, budget: Budget) -> Decimal:
    calls: dict[str, list[Served]] = defaultdict(list)
    for item in store.served():
        calls[item.cell.split("/")[1]].append(item.served)
    amounts = (
        budget.amount(taken_by(calls[name]), _price(prepared, name))
        for name in prepared.deployments
        if name in prepared.request.catalog.configured
    )
    return sum(amounts, start=budget.limit * 0)


def _price(prepared: Prepared, name: str) -> Price | None:
    item = prepared.request.catalog.configured[name]
    return item.price if isinstance(item, OpenAIConfiguration) else None
