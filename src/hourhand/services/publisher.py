"""Tells the world what became of runs and jobs: at most ten small batches a second, whatever the load.

Of what happens between two batches it keeps the first few events, with places held for what went wrong,
and counts the rest. A herd of thousands costs one pass of counting. Delivery is the bus' matter.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from hourhand.clock import Clock
from hourhand.core.lifecycle import Event as Change
from hourhand.core.lifecycle import State, after
from hourhand.core.model import Job
from hourhand.core.run import ClaimedRun, Progress, Settlement
from hourhand.ports.events import (
    MAX_BATCH_BYTES,
    MAX_EVENTS,
    Event,
    EventBatch,
    EventBus,
    EventData,
    EventType,
    cut,
    encoded_bytes,
    first_line,
)
from hourhand.telemetry import logger

BATCHES_PER_SECOND = 10  # of some twenty events each: as many as one client gets one by one
_ORDINARY_EVENTS = 30  # of a batch; the other places are for what did not succeed
_EVENT_BYTES = MAX_BATCH_BYTES * 3 // 4  # of a batch; the rest is for its counts
_ORDINARY_BYTES = _EVENT_BYTES * 3 // 4
_COUNT_BYTES = MAX_BATCH_BYTES - _EVENT_BYTES - 100  # the batch's own brackets
_MOST_TALLIES = 10_000  # tenants and types that wait to be told; beyond, counts are lost
_TALLY_BYTES = 24 + 12  # a type's name, punctuation and its number

_TYPES = {
    Change.SUCCEED: EventType.RUN_SUCCEEDED,
    Change.EXHAUST: EventType.RUN_FAILED,
    Change.RETRY: EventType.RUN_RETRYING,
    Change.SKIP: EventType.RUN_SKIPPED,
    Change.CANCEL: EventType.RUN_CANCELLED,
}  # what is given back or will be reported has not ended

SettledPair = tuple[ClaimedRun, Settlement]

_log = logger("hourhand.publisher")


class Publisher:
    """One process' voice. To be called on the event loop; nothing here raises into the work it tells of."""

    def __init__(self, *, bus: EventBus, clock: Clock, publisher: str) -> None:
        self._bus = bus
        self._clock = clock
        self._publisher = publisher
        self._tick = 0  # the last id's time
        self._events: list[Event] = []
        self._events_bytes = 0
        self._ordinary = 0
        self._tallies: Counter[tuple[str, EventType]] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def settled(self, batch: Sequence[SettledPair]) -> None:
        """These outcomes are committed."""
        try:
            if len(batch) <= _ORDINARY_EVENTS - self._ordinary:
                for pair in batch:
                    self._tell_run(pair)
            else:
                self._tell_some(batch)
            self._publish_soon()
        except Exception:  # who only tells must not stop the work
            _log.exception("settled runs could not be told")

    def noted(self, run: ClaimedRun, progress: Progress) -> None:
        """How far an attempt is was kept."""
        try:
            if self._full or self._ordinary >= _ORDINARY_EVENTS:
                self._count(run.tenant, EventType.RUN_PROGRESS, 1)
            else:
                self._ordinary += 1
                data = EventData(
                    state=State.RUNNING,
                    name=cut(run.spec.name),
                    attempt=run.fence,
                    progress=progress.fraction,
                    message=first_line(progress.message),
                )
                at = progress.noted_at
                self._add(EventType.RUN_PROGRESS, run.tenant, at, run.job_id, run.scheduled_at, data)
            self._publish_soon()
        except Exception:
            _log.exception("progress could not be told")

    def jobs_changed(self, kind: EventType, jobs: Sequence[Job]) -> None:
        """These jobs are stored as they are now."""
        try:
            for job in jobs:
                if self._full:
                    self._count(job.tenant, kind, 1)
                else:
                    data = EventData(
                        state=_job_state(kind, job), name=cut(job.spec.name), version=job.version
                    )
                    self._add(kind, job.tenant, self._clock.now(), job.id, None, data)
            self._publish_soon()
        except Exception:
            _log.exception("changed jobs could not be told")

    def flush(self) -> None:
        """Publish what waits, as when the process ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._events or self._tallies:
            self._publish()

    @property
    def _full(self) -> bool:
        return len(self._events) >= MAX_EVENTS or self._events_bytes >= _EVENT_BYTES

    def _tell_some(self, batch: Sequence[SettledPair]) -> None:
        """Count everything at once, and take out the few that there is room to tell."""
        tally = Counter([(run.tenant, settlement.event) for run, settlement in batch])
        for (tenant, change), count in tally.items():
            kind = _TYPES.get(change)
            if kind is not None:
                self._count(tenant, kind, count)
        told = list(islice(batch, max(0, _ORDINARY_EVENTS - self._ordinary)))
        if not self._full and any(change is not Change.SUCCEED for _, change in tally):
            wrong = (pair for pair in islice(batch, len(told), None) if pair[1].event is not Change.SUCCEED)
            told += islice(wrong, MAX_EVENTS - len(self._events))
        for run, settlement in told:
            kind = _TYPES.get(settlement.event)
            if kind is not None:
                self._count(run.tenant, kind, -1)
                self._tell_run((run, settlement))

    def _tell_run(self, pair: SettledPair) -> None:
        run, settlement = pair
        kind = _TYPES.get(settlement.event)
        if kind is None:
            return
        is_ordinary = kind is EventType.RUN_SUCCEEDED
        if self._full or (is_ordinary and self._events_bytes >= _ORDINARY_BYTES):
            self._count(run.tenant, kind, 1)
            return
        self._ordinary += is_ordinary
        at, scheduled_at = settlement.finished_at, run.scheduled_at
        self._add(kind, run.tenant, at, run.job_id, scheduled_at, _run_data(run, settlement))

    def _add(
        self, kind: EventType, tenant: str, at: int, job_id: int, scheduled_at: int | None, data: EventData
    ) -> None:
        event = Event(self._new_id(), kind, tenant, at, job_id, scheduled_at, data)
        size_bytes = encoded_bytes(event)
        if self._events_bytes + size_bytes > _EVENT_BYTES:
            self._events_bytes = _EVENT_BYTES  # full, though a smaller one might still fit
            self._count(tenant, kind, 1)
            return
        self._events.append(event)
        self._events_bytes += size_bytes

    def _count(self, tenant: str, kind: EventType, more: int) -> None:
        key = (tenant, kind)
        count = self._tallies[key] + more
        if count:
            if key in self._tallies or len(self._tallies) < _MOST_TALLIES:
                self._tallies[key] = count
        else:
            del self._tallies[key]

    def _new_id(self) -> str:
        self._tick = max(self._tick + 1, self._clock.now())
        return f"{self._tick:016d}-{self._publisher}"

    def _publish_soon(self) -> None:
        """At once after a quiet while, else with what else comes until the next batch may go."""
        if self._timer is None and (self._events or self._tallies):
            self._publish()
            self._timer = asyncio.get_running_loop().call_later(1 / BATCHES_PER_SECOND, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._publish_soon()

    def _publish(self) -> None:
        counts: dict[str, dict[EventType, int]] = {}
        room_bytes = _COUNT_BYTES
        for tenant, kind in list(self._tallies):  # what does not fit goes with a later batch
            room_bytes -= _TALLY_BYTES + (0 if tenant in counts else len(msgspec.json.encode(tenant)) + 4)
            if room_bytes < 0:
                break
            counts.setdefault(tenant, {})[kind] = self._tallies.pop((tenant, kind))
        batch = EventBatch(tuple(self._events), counts)
        self._events, self._events_bytes, self._ordinary = [], 0, 0
        self._bus.publish(batch)


class _Told(msgspec.Struct):
    """What an event shows of a settlement's detail."""

    error: Any = None
    reason: Any = None


_DETAIL = msgspec.json.Decoder(_Told)


def _run_data(run: ClaimedRun, settlement: Settlement) -> EventData:
    started_at = settlement.started_at
    told = _Told()
    if settlement.detail and settlement.event is not Change.SUCCEED:
        told = _DETAIL.decode(settlement.detail)
    return EventData(
        state=after(State.RUNNING, settlement.event),
        name=cut(run.spec.name),
        lag_ms=None if started_at is None else max(0, started_at - run.due_at) // 1000,
        took_ms=None if started_at is None else max(0, settlement.finished_at - started_at) // 1000,
        attempt=run.fence,
        error=first_line(told.error),
        reason=first_line(told.reason),
        version=settlement.version,
    )


def _job_state(kind: EventType, job: Job) -> str:
    return "deleted" if kind is EventType.JOB_DELETED else job.state.value
