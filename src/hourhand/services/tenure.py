"""A scheduler's tenure: joins, renews its segments, and begins again under a new id when they were lost.

Decides nothing about who gets which segment; that is the leases' matter.
"""

from collections.abc import Callable

from hourhand.ports.leases import Leases
from hourhand.ports.store import LeaseLost
from hourhand.telemetry import logger

_RENEWALS_PER_LEASE = 3

_log = logger("hourhand.scheduler")


class Tenure:
    """One node's segments over time."""

    def __init__(self, leases: Leases, lease_us: int) -> None:
        self._leases = leases
        self._period_us = lease_us // _RENEWALS_PER_LEASE
        self._joined = False
        self.on_change: Callable[[], None] = lambda: None  # wakes who plans and sweeps

    async def begin(self) -> None:
        """Join, and take the first segments."""
        await self._leases.join()
        self._joined = True
        _log.info("segments", count=len(await self._leases.segments()))

    async def step(self, now_at: int) -> int | None:
        """Renew; answers when to renew again."""
        before = await self._leases.segments()
        try:
            await self._leases.renew()
        except LeaseLost:
            _log.warning("lease lost; starting again under a new id", segments=len(before))
            await self._leases.join()
        after = await self._leases.segments()
        if after != before:
            _log.info("segments", count=len(after), before=len(before))
            self.on_change()
        return now_at + self._period_us

    async def end(self) -> None:
        """Give the segments back at once."""
        if self._joined:
            self._joined = False
            await self._leases.leave()
