"""Plans ahead: takes clocks that reach into the horizon and lets the store write their members' runs.

The decision is `core.plan`'s; a clock that somebody else moved meanwhile is left alone by the store.
"""

from functools import lru_cache

from hourhand.clock import Clock
from hourhand.core.plan import ClockPlan, plan_clock
from hourhand.core.schedule import Rule, parse_key
from hourhand.ports.leases import Leases
from hourhand.ports.store import Clock as StoreClock
from hourhand.ports.store import Store
from hourhand.telemetry import Telemetry

_FEWEST_CLOCKS = 16
_MOST_CLOCKS = 1024
_FEW_RUNS = 5_000  # a step that wrote less may take more clocks next time
_MANY_RUNS = 20_000  # and one that wrote more holds up the others for too long


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
        self._batch = _FEWEST_CLOCKS

    async def step(self, now_at: int) -> int | None:
        """Plan a batch; answers when the next clock reaches into the horizon."""
        segments = await self._leases.segments()
        beyond_at = now_at + self._horizon_us + 1  # a time on the horizon itself is planned
        clocks = await self._store.due_clocks(segments, beyond_at, self._batch)
        if clocks:
            count = await self._store.plan([self._plan(clock, now_at) for clock in clocks])
            self._telemetry.planned(count)
            self._adapt(count)
            self._telemetry.planner_stepped(max(0, self._clock.now() - now_at))
            return now_at
        next_at = await self._store.next_clock_at(segments)
        return None if next_at is None else next_at - self._horizon_us

    def _plan(self, clock: StoreClock, now_at: int) -> ClockPlan:
        horizon_at = now_at + self._horizon_us
        return plan_clock(
            clock.id, rule_by_key(clock.rule_key), clock.next_at, now_at, horizon_at, clock.misfires
        )

    def _adapt(self, count: int) -> None:
        if count > _MANY_RUNS:
            self._batch = max(_FEWEST_CLOCKS, self._batch // 2)
        elif count < _FEW_RUNS:
            self._batch = min(_MOST_CLOCKS, self._batch * 2)


@lru_cache(maxsize=10_000)
def rule_by_key(key: str) -> Rule:
    """Rules are many clocks' and cost more to parse than to ask."""
    return parse_key(key)
