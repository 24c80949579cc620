"""The last hour by the minute, and sizes that any number of onlookers share."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from hourhand.clock import ManualClock
from hourhand.core.instant import HOUR_US, MINUTE_US, SECOND_US
from hourhand.ports.events import Event, EventBatch, EventData, EventType
from hourhand.ports.store import Backlog
from hourhand.services import recent as module
from hourhand.services.overview import Overview
from hourhand.services.recent import MAX_CHANGES, MAX_TENANTS, Recent
from hourhand.stores.sqlite.store import SqliteStore


def ended(clock: ManualClock, lag_ms: int | None = 5, kind: EventType = EventType.RUN_SUCCEEDED) -> Event:
    data = EventData(state="SUCCEEDED", name="a", lag_ms=lag_ms)
    return Event(f"{clock.now()}-1", kind, "default", clock.now(), 7, clock.now(), data)


def changed(clock: ManualClock, job_id: int = 7) -> Event:
    data = EventData(state="active", name="a", version=2)
    return Event(f"{clock.now()}-{job_id}", EventType.JOB_CHANGED, "default", clock.now(), job_id, None, data)


def test_minutes_hold_what_was_told_and_what_was_only_counted() -> None:
    clock = ManualClock()
    recent = Recent(clock=clock)
    recent.add(EventBatch((ended(clock, 3), ended(clock, 40)), {"default": {EventType.RUN_SUCCEEDED: 1_000}}))
    clock.advance(MINUTE_US)
    recent.add(EventBatch((ended(clock, None, EventType.RUN_FAILED),)))
    hour = recent.hour("default")
    first, second = hour.minutes
    assert first.counts == {EventType.RUN_SUCCEEDED: 1_002}
    assert (first.lag_p50_ms, first.lag_p99_ms, first.lag_max_ms) == (3, 40, 40)
    assert second.counts == {EventType.RUN_FAILED: 1}
    assert second.lag_p99_ms is None
    assert hour.total.counts == {EventType.RUN_SUCCEEDED: 1_002, EventType.RUN_FAILED: 1}
    assert hour.total.lag_p99_ms == 40
    assert recent.hour("nobody").minutes == ()


def test_an_hour_is_all_that_is_kept() -> None:
    clock = ManualClock()
    recent = Recent(clock=clock)
    began_at = clock.now()
    for _ in range(90):
        recent.add(EventBatch((ended(clock),)))
        clock.advance(MINUTE_US)
    hour = recent.hour("default")
    assert 59 <= len(hour.minutes) <= 60
    assert hour.since_at == clock.now() - HOUR_US > began_at
    clock.advance(2 * HOUR_US)
    assert recent.hour("default").minutes == ()


def test_changes_of_jobs_are_remembered_newest_first_and_not_without_end() -> None:
    clock = ManualClock()
    recent = Recent(clock=clock)
    for number in range(MAX_CHANGES + 20):
        clock.advance(SECOND_US)
        recent.add(EventBatch((changed(clock, number),)))
    found = recent.hour("default").changes
    assert [event.job_id for event in found] == list(range(MAX_CHANGES + 19, 19, -1))
    for number in range(MAX_TENANTS + 10):
        recent.add(EventBatch((), {f"tenant-{number}": {EventType.RUN_SUCCEEDED: 1}}))
    assert recent.hour("tenant-0").minutes == ()
    assert len(recent.hour(f"tenant-{MAX_TENANTS + 9}").minutes) == 1


@given(st.lists(st.integers(0, 10_000_000), min_size=1, max_size=300))
def test_percentiles_are_near_and_never_beyond_the_largest(lags: list[int]) -> None:
    clock = ManualClock()
    recent = Recent(clock=clock)
    recent.add(EventBatch(tuple(ended(clock, lag) for lag in lags)))
    minute = recent.hour("default").total
    assert minute.lag_max_ms == max(lags)
    exact = sorted(lags)[max(0, -(-len(lags) * 99 // 100) - 1)]
    assert minute.lag_p99_ms is not None
    assert minute.lag_p99_ms <= max(lags)
    if exact <= module._BOUNDS_MS[-1]:
        assert exact <= minute.lag_p99_ms <= max(exact * 1.6, exact + 2)


class Counting(SqliteStore):
    """Counts how often it was asked, and takes its time."""

    asked = 0
    took_us = 0

    async def backlog(self, tenant: str | None = None) -> Backlog:
        Counting.asked += 1
        self.clock.advance(self.took_us)  # type: ignore[attr-defined]
        return await super().backlog(tenant)


async def test_sizes_are_counted_once_for_all_and_kept_by_their_cost() -> None:
    clock = ManualClock()
    store = Counting.in_memory(clock=clock)
    store.clock = clock  # type: ignore[attr-defined]
    Counting.asked, Counting.took_us = 0, 0
    overview = Overview(store=store, clock=clock, recent=Recent(clock=clock))
    await asyncio.gather(*(overview.sizes() for _ in range(50)))
    assert Counting.asked == 1
    clock.advance(SECOND_US)
    Counting.took_us = 500_000
    assert (await overview.sizes()).backlog.jobs == 0
    assert Counting.asked == 2
    clock.advance(9 * SECOND_US)
    await overview.sizes()
    assert Counting.asked == 2
    clock.advance(SECOND_US)
    await overview.sizes()
    assert Counting.asked == 3
    await store.close()
