"""How often a token or an address may call: a bucket each, with the clock as an argument."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

MOST_CALLERS = 100_000
"""Buckets that are kept; beyond, the one that was not used for longest is forgotten."""


def address_of(scope: Scope) -> str:
    """Return the name under which a connection's address is counted.

    An IPv6 address counts by its first 64 bits: a subscriber has all the others (RFC 6177).
    """
    client = scope.get("client")
    host = str(client[0]) if client else "unknown"
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return f"address {host}"
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return f"network {address.exploded[:19]}"
    return f"address {getattr(address, 'ipv4_mapped', None) or address}"


@dataclass(slots=True)
class _Bucket:
    level: float
    filled_at: float


class RateLimiter:
    """One bucket per caller.

    Args:
        rate: Calls per second that flow back into a bucket.
        burst: What a full bucket holds, in calls.
        clock: Monotonic seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, caller: str) -> int:
        """Take one call; return 0, or the whole seconds after which one may be had."""
        now = self._clock()
        bucket = self._buckets.setdefault(caller, _Bucket(float(self._burst), now))
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        flowed = max(0.0, now - bucket.filled_at) * self._rate
        bucket.level = min(float(self._burst), bucket.level + flowed)
        bucket.filled_at = now
        if bucket.level < 1:
            return max(1, math.ceil((1 - bucket.level) / self._rate))
        bucket.level -= 1
        return 0


class StreamCounter:
    """How many event streams each caller holds open."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Streams open now."""
        return sum(self._open.values())

    def enter(self, caller: str) -> bool:
        """Count one more stream; False, and nothing counted, where the caller has its most."""
        held = self._open.get(caller, 0)
        if held >= self._most:
            return False
        self._open[caller] = held + 1
        return True

    def leave(self, caller: str) -> None:
        """Count one stream less."""
        held = self._open.get(caller, 0) - 1
        if held > 0:
            self._open[caller] = held
        else:
            self._open.pop(caller, None)
