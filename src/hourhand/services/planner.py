"""Plans ahead: takes clocks that reach into the horizon and lets the store write their members' runs.

The decision is `core.plan`'s; a clock that somebody else moved meanwhile is left alone by the store.
"""

from functools import lru_cache

import msgspec

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.core.plan import ClockPlan, plan_clock
from hourhand.core.schedule import Rule, parse_key
from hourhand.ports.leases import Leases
from hourhand.ports.store import Clock as StoreClock
from hourhand.ports.store import Store
from hourhand.telemetry import Telemetry

_FIRST_CLOCKS = 16
_MOST_CLOCKS = 1024
_FEW_RUNS = 5_000  # a step that wrote less may take more clocks next time
_MANY_RUNS = 20_000  # and one that wrote more holds up the others for too long
_SHORT_US = 50_000
_LONG_US = 150_000  # a long transaction keeps what claims delete from being cleaned up behind them
_REFUSED_PAUSE_US = SECOND_US // 10  # until the lease tells which segments are still held


class Planner:
    """One bounded batch of clocks per step."""

    def __init__(
        self, *, store: Store, leases: Leases, clock: Clock, horizon_us: int, telemetry: Telemetry
    ) -> None:
        self._store = store
        self._leases = leases
        self._clock = clock
        self._horizon_us = horizon_us
        self._telemetry = telemetry
        self._batch = _FIRST_CLOCKS
        self._last: list[StoreClock] = []

    async def step(self, now_at: int) -> int | None:
        """Plan a batch; answers when the next clock reaches into the horizon."""
        segments = await self._leases.segments()
        if not segments:
            return None
        beyond_at = now_at + self._horizon_us + 1  # a time on the horizon itself is planned
        clocks = await self._store.due_clocks(tuple(segments), beyond_at, self._batch)
        last, self._last = self._last, clocks
        if clocks:
            plans = [self._plan(clock, now_at, segments.get(clock.segment)) for clock in clocks]
            count = await self._store.plan(plans)
            self._telemetry.planned(count)
            took_us = max(0, self._clock.now() - now_at)
            self._adapt(count, took_us)
            self._telemetry.planner_stepped(took_us)
            # The same clocks again: somebody else's by now, which the store has seen and the lease has not.
            return now_at + _REFUSED_PAUSE_US if clocks == last else now_at
        next_at = await self._store.next_clock_at(tuple(segments))
        return None if next_at is None else next_at - self._horizon_us

    def _plan(self, clock: StoreClock, now_at: int, fence: int | None) -> ClockPlan:
        horizon_at = now_at + self._horizon_us
        plan = plan_clock(
            clock.id, rule_by_key(clock.rule_key), clock.next_at, now_at, horizon_at, clock.misfires
        )
        return msgspec.structs.replace(plan, fence=fence)

    def _adapt(self, count: int, took_us: int) -> None:
        if count > _MANY_RUNS or took_us > _LONG_US:
            self._batch = max(1, self._batch // 2)
        elif count < _FEW_RUNS and took_us < _SHORT_US:
            self._batch = min(_MOST_CLOCKS, self._batch * 2)


@lru_cache(maxsize=10_000)
def rule_by_key(key: str) -> Rule:
    """Rules are many clocks' and cost more to parse than to ask."""
    return parse_key(key)
