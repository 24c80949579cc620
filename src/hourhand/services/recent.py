"""The last hour in numbers, as it was heard: outcomes and lags by the minute, and what changed of jobs.

Fed by the same batches as the event log, so counts are whole whatever the load; lags are those of the events
that were told one by one. Costs no read of the store, and a bounded amount of memory per tenant.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from hourhand.clock import Clock
from hourhand.core.instant import HOUR_US, MINUTE_US
from hourhand.ports.events import Event, EventBatch, EventType

MINUTES = 60
MAX_CHANGES = 50  # of jobs, remembered per tenant
MAX_TENANTS = 1_000

_BOUNDS_MS = tuple(
    round(10 ** (step / 8)) for step in range(49)
)  # eighths of a decade, from 1 ms to 1,000 s; a few of the lowest are alike


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """What one minute held."""

    from_at: int
    counts: dict[EventType, int]
    lag_p50_ms: int | None = None
    lag_p99_ms: int | None = None
    lag_max_ms: int | None = None


class Hour(msgspec.Struct, frozen=True, kw_only=True):
    """The last hour, minute by minute, oldest first; minutes without anything are left out."""

    since_at: int  # nothing is known from before
    total: Minute
    minutes: tuple[Minute, ...]
    changes: tuple[Event, ...]  # of jobs, newest first


class Recent:
    """Used on the event loop only."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._since_at = clock.now()
        self._tenants: dict[str, _Tenant] = {}

    def add(self, batch: EventBatch) -> None:
        """Something was heard."""
        now_at = self._clock.now()
        for event in batch.events:
            self._of(event.tenant).heard(event, now_at)
        for tenant, counts in batch.counts.items():
            self._of(tenant).counted(counts, now_at)

    def hour(self, tenant: str) -> Hour:
        """What is known of the last hour."""
        found = self._tenants.get(tenant) or _Tenant()
        return found.hour(self._clock.now(), self._since_at)

    def _of(self, tenant: str) -> "_Tenant":
        found = self._tenants.get(tenant)
        if found is None:
            if len(self._tenants) >= MAX_TENANTS:
                self._tenants.pop(next(iter(self._tenants)))
            found = self._tenants[tenant] = _Tenant()
        return found


class _Tenant:
    def __init__(self) -> None:
        self._minutes: deque[_Tally] = deque(maxlen=MINUTES)
        self._changes: deque[Event] = deque(maxlen=MAX_CHANGES)

    def heard(self, event: Event, now_at: int) -> None:
        tally = self._tally(now_at)
        tally.counts[event.type] += 1
        if event.data.lag_ms is not None:
            tally.lags[bisect_left(_BOUNDS_MS, event.data.lag_ms)] += 1
            tally.lag_max_ms = max(tally.lag_max_ms, event.data.lag_ms)
        if event.scheduled_at is None:
            self._changes.append(event)

    def counted(self, counts: "dict[EventType, int]", now_at: int) -> None:
        self._tally(now_at).counts.update(counts)

    def hour(self, now_at: int, since_at: int) -> Hour:
        first_at = now_at - HOUR_US
        tallies = [tally for tally in self._minutes if tally.from_at > first_at - MINUTE_US]
        total = _Tally(first_at)
        for tally in tallies:
            total.counts.update(tally.counts)
            total.lags = [one + other for one, other in zip(total.lags, tally.lags, strict=True)]
            total.lag_max_ms = max(total.lag_max_ms, tally.lag_max_ms)
        return Hour(
            since_at=max(since_at, first_at),
            total=total.shown(),
            minutes=tuple(tally.shown() for tally in tallies),
            changes=tuple(event for event in reversed(self._changes) if event.at >= first_at),
        )

    def _tally(self, now_at: int) -> "_Tally":
        from_at = now_at - now_at % MINUTE_US
        if not self._minutes or self._minutes[-1].from_at < from_at:
            self._minutes.append(_Tally(from_at))
        return self._minutes[-1]


class _Tally:
    """A minute that is still being counted."""

    def __init__(self, from_at: int) -> None:
        self.from_at = from_at
        self.counts: Counter[EventType] = Counter()
        self.lags = [0] * (len(_BOUNDS_MS) + 1)
        self.lag_max_ms = -1

    def shown(self) -> Minute:
        known = self.lag_max_ms >= 0
        return Minute(
            from_at=self.from_at,
            counts=dict(self.counts),
            lag_p50_ms=_percentile(self.lags, 0.5, self.lag_max_ms) if known else None,
            lag_p99_ms=_percentile(self.lags, 0.99, self.lag_max_ms) if known else None,
            lag_max_ms=self.lag_max_ms if known else None,
        )


def _percentile(lags: Sequence[int], share: float, most: int) -> int:
    """The upper bound of the bucket that holds it, and never more than the largest seen."""
    wanted, seen = share * sum(lags), 0
    for bound, count in zip(_BOUNDS_MS, lags, strict=False):
        seen += count
        if seen >= wanted:
            return min(bound, most)
    return most
