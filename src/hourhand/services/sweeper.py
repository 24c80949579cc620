"""Repairs: runs of lost workers go on, late ones are judged, forgotten slots handed on, old rows dropped.

It issues the same transitions as anybody else, each guarded by slot and fence, so a worker that was
only slow keeps what it settled first, and what comes second is refused.
"""

import math
from typing import Any

import msgspec

from hourhand.core.instant import SECOND_US, format_duration
from hourhand.core.lifecycle import Event, Reason
from hourhand.core.model import JobSpec
from hourhand.core.report import UNREPORTED
from hourhand.core.retry import Outcome, decide
from hourhand.core.run import Settlement
from hourhand.ports.store import Cursor, Store, StrayRun
from hourhand.telemetry import Telemetry

PAGE = 500
SLACK_US = 10 * SECOND_US  # a live worker ends its attempts at the deadline by itself
PERIOD_US = SECOND_US
SHARED_PERIOD_US = 2 * SECOND_US  # over a network, where every look costs the server some statements
_APART_US = 5 * SECOND_US  # between last chances: lead and a late start, so that each is alone in a hand
_LONGEST_APART_US = 600 * SECOND_US  # for as many as there are
_SOONEST_APART = 2  # lost workers: the first may happen to anybody, and its runs go on at once
_PURGE_PERIOD_US = 60 * SECOND_US
_GRAPHS_PERIOD_US = 10 * SECOND_US  # whoever ends a run tells its children; this is for those who died before
_SKIPS_PERIOD_US = 10 * SECOND_US
_encode = msgspec.json.Encoder().encode


class Sweeper:
    """One bounded page of each repair per step."""

    def __init__(
        self,
        *,
        store: Store,
        keep_us: int,
        dead_keep_us: int,
        telemetry: Telemetry,
        period_us: int = PERIOD_US,
    ) -> None:
        self._store = store
        self._keep_us = keep_us
        self._dead_keep_us = dead_keep_us
        self._telemetry = telemetry
        self._period_us = period_us
        self._late_cursors: dict[int, Cursor] = {}
        self._purge_at = 0
        self._graphs_at = 0
        self._skips_at = 0

    async def step(self, now_at: int) -> int | None:
        """Repair what there is; answers now while a page was full."""
        more = await self.rescue(now_at)
        late = await self._store.judge_late(self._late_cursors, PAGE)
        self._late_cursors = late.cursors
        more |= (
            bool(late.cursors) and late.judged > 0
        )  # a backlog that is not too late is the workers' matter
        more |= await self._store.hand_on_slots(PAGE) >= PAGE
        more |= await self._look_at_graphs(now_at)
        more |= await self._end_skips(now_at)
        attend_at = await self._store.tend_jobs(PAGE)
        if not 0 < self._purge_at - now_at <= _PURGE_PERIOD_US:  # further off: the clock was set back
            full = await self._store.purge(now_at - self._keep_us, now_at - self._dead_keep_us, PAGE * 4)
            self._purge_at = now_at if full else now_at + _PURGE_PERIOD_US
            more |= full
            self._telemetry.backlog(await self._store.backlog())
        if more:
            return now_at
        next_at = now_at + self._period_us
        return next_at if attend_at is None else min(next_at, max(attend_at, now_at + 1))

    async def _look_at_graphs(self, now_at: int) -> bool:
        """Tell children whom nobody has told, and see who waits in vain; True while there is more."""
        if 0 < self._graphs_at - now_at <= _GRAPHS_PERIOD_US:
            return False
        more = await self._store.descend(PAGE) > 0
        more |= await self._store.judge_waits(PAGE) >= PAGE
        self._graphs_at = now_at if more else now_at + _GRAPHS_PERIOD_US
        return more

    async def _end_skips(self, now_at: int) -> bool:
        """Times that were to be skipped end a little after they came: nobody waits for that."""
        if 0 < self._skips_at - now_at <= _SKIPS_PERIOD_US:  # further off: the clock was set back
            return False
        full = await self._store.end_skips(PAGE) >= PAGE
        self._skips_at = now_at if full else now_at + _SKIPS_PERIOD_US
        return full

    async def rescue(self, now_at: int) -> bool:
        """Take runs from lost workers, attempts long past their deadline and targets that did not report in time.

        True while there are more.
        """
        strays = await self._store.stray_runs(SLACK_US, PAGE)
        fates = [
            (stray, _settlement(stray, now_at))
            for stray in sorted(strays, key=lambda stray: stray.scheduled_at)
        ]
        by_worker: dict[str, list[Settlement]] = {}
        for stray, settlement in _set_apart(fates, now_at):
            by_worker.setdefault(stray.worker, []).append(settlement)
        for worker, settlements in by_worker.items():
            await self._store.settle(worker, settlements)
        return len(strays) >= PAGE


def _settlement(stray: StrayRun, now_at: int) -> Settlement:
    """What becomes of a stray run, by the same policy as an attempt that failed."""
    event, tries, due_at, detail = _fate(stray, now_at)
    return Settlement(
        job_id=stray.job_id,
        scheduled_at=stray.scheduled_at,
        slot=stray.slot,
        fence=stray.fence,
        event=event,
        version=stray.version,
        tries=tries,
        due_at=due_at,
        started_at=stray.awaited_since,
        finished_at=now_at,
        detail=_encode(detail).decode(),
    )


def _set_apart(fates: list[tuple[StrayRun, Settlement]], now_at: int) -> list[tuple[StrayRun, Settlement]]:
    """The same, where those that may have killed their workers go on apart from each other.

    One of those that go down together may be what kills the worker each time. Started again together,
    the others would use up their tries with it. So while they can afford one more loss they go on in
    groups, and the group that goes down is small; then one by one, and only the culprit ends.
    """
    spare = [_spare_losses(*fate) for fate in fates]
    last, nearly = spare.count(0), spare.count(1)
    apart_us = min(_APART_US, _LONGEST_APART_US // max(1, last))
    group = math.isqrt(max(0, nearly - 1)) + 1
    alone_at, together_at = now_at, now_at + last * apart_us
    placed, grouped = [], 0
    for (stray, settlement), left in zip(fates, spare, strict=True):
        if left == 0:
            alone_at = max(alone_at + apart_us, settlement.due_at)
            settlement = msgspec.structs.replace(settlement, due_at=alone_at)
        elif left == 1:
            at = together_at + (grouped // group + 1) * _APART_US
            settlement = msgspec.structs.replace(settlement, due_at=max(at, settlement.due_at))
            grouped += 1
        placed.append((stray, settlement))
    return placed


def _spare_losses(stray: StrayRun, settlement: Settlement) -> int | None:
    """How many more lost workers the run outlives; None where it is no suspect.

    A worker that says nothing long after a deadline is as good as lost, though its lease still runs.
    """
    if stray.awaited_since is not None or settlement.event is not Event.RETRY or stray.spec is None:
        return None
    spare = max(0, stray.spec.retry.max - settlement.tries)
    return spare if spare == 0 or settlement.tries >= _SOONEST_APART else None


def _fate(stray: StrayRun, now_at: int) -> tuple[Event, int, int, dict[str, Any]]:
    if stray.spec is None:
        return Event.CANCEL, stray.tries, 0, {"reason": Reason.DELETED.value}
    if stray.cancel_asked:
        return Event.CANCEL, stray.tries, 0, {"reason": Reason.ASKED.value}
    if (
        stray.due_at > now_at and stray.awaited_since is None
    ):  # taken ahead of its time, so it never began: no try, and not before its time
        return Event.RELEASE, stray.tries, 0, {}
    outcome = Outcome.LOST if stray.worker_lost else Outcome.TIMED_OUT
    verdict = decide(
        outcome,
        stray.spec,
        job_id=stray.job_id,
        scheduled_at=stray.scheduled_at,
        tries=stray.tries,
        now_at=now_at,
    )
    return verdict.event, verdict.tries, verdict.due_at, _told(stray, stray.spec)


def _told(stray: StrayRun, spec: JobSpec) -> dict[str, Any]:
    if stray.worker_lost:
        return {"error": "its worker was lost"}
    if stray.awaited_since is None:
        return {"error": "no outcome long after its deadline"}
    return {"error": f"no report within its timeout of {format_duration(spec.timeout_us)}", UNREPORTED: True}
