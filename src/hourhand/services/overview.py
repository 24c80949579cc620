"""How everything stands, in one look: sizes, processes and the last hour; for any number of onlookers.

Sizes cost the store a count, so they are shared and kept for as long as twenty such counts take: however many
look and however much there is to count, that is at most a twentieth of one connection, and for all tenants that
look at theirs together at most one.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from hourhand.clock import Clock
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.ports.store import Backlog, NodeInfo, Store
from hourhand.services.recent import Hour, Recent

_KEPT_AT_LEAST_US = SECOND_US
_KEPT_AT_MOST_US = MINUTE_US
_TIMES_ITS_COST = 20
MAX_KEPT = 1_000  # tenants whose sizes are remembered


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted, and when."""

    backlog: Backlog
    nodes: tuple[NodeInfo, ...]
    counted_at: int


class Overview:
    """One per process."""

    def __init__(self, *, store: Store, clock: Clock, recent: Recent) -> None:
        self._store = store
        self._clock = clock
        self._recent = recent
        self._sizes: dict[str | None, tuple[Sizes, int]] = {}  # each with the time until which it is fresh
        self._counting = asyncio.Lock()

    def hour(self, tenant: str) -> Hour:
        """What happened to a tenant's runs and jobs."""
        return self._recent.hour(tenant)

    async def sizes(self, tenant: str | None = None) -> Sizes:
        """What there is, of a tenant's or of all; a moment old where others asked before."""
        async with self._counting:
            known, fresh_until = self._sizes.get(tenant, (None, 0))
            if known is None or self._clock.now() >= fresh_until:
                known = await self._count(tenant)
            return known

    async def _count(self, tenant: str | None) -> Sizes:
        began_at = self._clock.now()
        backlog, nodes = await self._store.backlog(tenant), await self._store.nodes()
        counted_at = self._clock.now()
        keep_us = (counted_at - began_at) * _TIMES_ITS_COST
        fresh_until = counted_at + min(max(keep_us, _KEPT_AT_LEAST_US), _KEPT_AT_MOST_US)
        if tenant not in self._sizes and len(self._sizes) >= MAX_KEPT:
            self._sizes.pop(next(iter(self._sizes)))
        counted = Sizes(backlog=backlog, nodes=tuple(nodes), counted_at=counted_at)
        self._sizes[tenant] = counted, fresh_until
        return counted


def alive(nodes: Sequence[NodeInfo], now_at: int) -> list[NodeInfo]:
    """Those whose lease still runs."""
    return [node for node in nodes if node.lease_until > now_at]
