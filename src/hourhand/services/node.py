"""A running process of the cluster on one database: its duties, who wakes whom, and how it stops.

Scheduler and worker are both optional. Starts nothing of its own but tasks; what it runs on was built in
`wiring`.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.errors import Unavailable
from hourhand.ports.leases import Leases
from hourhand.ports.store import Hint, Store
from hourhand.services.auditor import Auditor
from hourhand.services.backfiller import Backfiller
from hourhand.services.dispatcher import Dispatcher
from hourhand.services.log_writer import LogWriter
from hourhand.services.loop import Duty, Poll, Step, every_second, full_pause, never
from hourhand.services.operator import Operator
from hourhand.services.planner import Planner
from hourhand.services.sweeper import Sweeper
from hourhand.services.tenure import Tenure
from hourhand.services.ticker import Ticker
from hourhand.services.webhook_sender import WebhookSender
from hourhand.services.worker import Worker
from hourhand.telemetry import Telemetry, logger

RARE_POLL_US = 5 * SECOND_US  # in case a hint was lost although they arrive
RAREST_POLL_US = 30 * SECOND_US  # the same, where little hangs on it
SWEEPERS_SEGMENT = 0  # whoever holds it sweeps, feeds backfills, operates, audits and calls webhooks, for all
_TIDY_PERIOD_US = 5 * SECOND_US
_STEP_PATIENCE_S = 5.0
_LOG_PATIENCE_S = 2.0
_DESCENTS = 500  # ended runs whose children are told at once

_log = logger("hourhand.node")


class Degraded(str):
    """What is wrong with a part that others make up for: it is told, and the process is ready all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """What plans, sweeps, feeds backfills, carries out operations, audits and calls webhooks. Without a tenure of its
    own it shares the worker's lease."""

    leases: Leases
    planner: Planner
    sweeper: Sweeper
    backfiller: Backfiller
    operator: Operator | None = None
    auditor: Auditor | None = None
    webhooks: WebhookSender | None = None
    tenure: Tenure | None = None
    dispatcher: Dispatcher | None = None  # where runs go through a broker


def _no() -> bool:
    return False


class Node:
    """Scheduler, worker or both on one event loop.

    `hints_arrive` says whether what others commit is told to this process, so that polling is only for
    what gets lost. `draw` gives the jitter of pauses.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        telemetry: Telemetry,
        scheduler: Scheduler | None = None,
        worker: Worker | None = None,
        log: LogWriter | None = None,
        hints_arrive: Callable[[], bool] = _no,
        draw: Callable[[], float] = full_pause,
    ) -> None:
        self._store = store
        self._worker = worker
        self._log = log
        self._scheduler = scheduler
        self._clock = clock
        self._telemetry = telemetry
        self._hints_arrive = hints_arrive
        self._draw = draw
        self._ticker: Ticker | None = None
        self._tasks: dict[Duty, asyncio.Task[None]] = {}
        self._descend = self._duty("graphs", self._descend_step, poll_us=never)
        self._dispatcher = None if scheduler is None else scheduler.dispatcher
        self._planning = () if scheduler is None else self._planning_duties(scheduler)
        self._tenure = self._tenure_duties(scheduler)
        self._working = () if worker is None else self._working_duties(worker)
        store.subscribe(self._hinted)

    @property
    def parts(self) -> dict[str, str | None]:
        """Each duty and what is wrong with it, None where nothing is."""
        told = {duty.name: "stopped" if task.done() else duty.trouble for duty, task in self._tasks.items()}
        if self._scheduler is not None:
            for name, wrong in self._scheduler.leases.parts.items():
                told[name] = None if wrong is None else Degraded(wrong)
        return told

    @property
    def in_hand(self) -> int:
        """How many runs its worker holds."""
        return 0 if self._worker is None else self._worker.in_hand

    async def start(self) -> None:
        """Join, rescue what an earlier process left, and begin all duties."""
        if self._worker is not None:
            await self._join_worker(self._worker)
        if self._scheduler is not None:
            await self._begin_tenure(self._scheduler)
        for duty in (self._descend, *self._planning, *self._tenure, *self._working):
            self._tasks[duty] = asyncio.create_task(duty.run(), name=duty.name)

    async def stop(self, patience_us: int) -> None:
        """Drain: no new runs, those in hand end and are committed or given back, then everything stops."""
        await self._end(*self._planning, *self._tenure, *self._working[:1])
        if self._scheduler is not None and self._scheduler.tenure is not None:
            with contextlib.suppress(Unavailable):  # then the lease runs out by itself
                await self._scheduler.tenure.end()
        if self._scheduler is not None and self._scheduler.webhooks is not None:
            await self._scheduler.webhooks.close()
        if self._dispatcher is not None:
            await self._dispatcher.close()
        if self._worker is not None:
            await self._stop_worker(self._worker, patience_us)
        await self._end(self._descend)

    def cut_short(self) -> None:
        """Let a stop that is under way wait no longer for the runs in hand."""
        if self._worker is not None:
            self._worker.cut_short()

    # --- the scheduler's part

    def _planning_duties(self, scheduler: Scheduler) -> tuple[Duty, ...]:
        self._plan = self._duty("plan", scheduler.planner.step, poll_us=self._seldom)
        self._sweep = self._duty("sweep", self._sweep_step, poll_us=self._seldom)
        self._backfill = self._duty("backfill", self._backfill_step, poll_us=self._hardly_ever)
        self._operate = self._duty("operations", self._operate_step, poll_us=self._hardly_ever)
        tidy = self._duty("tidy", self._tidy_step, poll_us=never)
        audit = self._duty("audit", self._audit_step, poll_us=self._hardly_ever)
        self._call = self._duty("webhooks", self._webhooks_step, poll_us=self._seldom)
        duties = self._plan, self._sweep, self._backfill, self._operate, audit, tidy, self._call
        if scheduler.webhooks is not None:
            scheduler.webhooks.on_ended = self._call.wake
        return (
            duties
            if scheduler.dispatcher is None
            else (*duties, *self._offering_duties(scheduler.dispatcher))
        )

    def _offering_duties(self, dispatcher: Dispatcher) -> tuple[Duty, ...]:
        self._load = self._duty("load", dispatcher.step)
        offer = self._duty("offer", dispatcher.offer_step, poll_us=never)
        dispatcher.on_loaded = offer.wake
        return self._load, offer

    def _tenure_duties(self, scheduler: Scheduler | None) -> tuple[Duty, ...]:
        if scheduler is None or scheduler.tenure is None:
            return ()
        duty = self._duty("segments", scheduler.tenure.step, poll_us=never)
        scheduler.leases.subscribe(duty.wake)
        return (duty,)

    async def _begin_tenure(self, scheduler: Scheduler) -> None:
        if scheduler.tenure is not None:
            scheduler.tenure.on_change = self._segments_changed
            await scheduler.tenure.begin()
        if SWEEPERS_SEGMENT in await scheduler.leases.segments():
            while await scheduler.sweeper.rescue(self._clock.now()):
                pass

    async def _sweep_step(self, now_at: int) -> int | None:
        scheduler = self._scheduler
        if scheduler is None or SWEEPERS_SEGMENT not in await scheduler.leases.segments():
            return None
        return await scheduler.sweeper.step(now_at)

    async def _backfill_step(self, now_at: int) -> int | None:
        scheduler = self._scheduler
        if scheduler is None or SWEEPERS_SEGMENT not in await scheduler.leases.segments():
            return None
        return await scheduler.backfiller.step(now_at)

    async def _operate_step(self, now_at: int) -> int | None:
        scheduler = self._scheduler
        if scheduler is None or scheduler.operator is None:
            return None
        if SWEEPERS_SEGMENT not in await scheduler.leases.segments():
            return None
        return await scheduler.operator.step(now_at)

    async def _audit_step(self, now_at: int) -> int | None:
        scheduler = self._scheduler
        if scheduler is None or scheduler.auditor is None:
            return None
        if SWEEPERS_SEGMENT not in await scheduler.leases.segments():
            return None
        return await scheduler.auditor.step(now_at)

    async def _webhooks_step(self, now_at: int) -> int | None:
        scheduler = self._scheduler
        if scheduler is None or scheduler.webhooks is None:
            return None
        if SWEEPERS_SEGMENT not in await scheduler.leases.segments():
            await scheduler.webhooks.record()  # what it called while it was its turn
            return None
        return await scheduler.webhooks.step(now_at)

    async def _tidy_step(self, now_at: int) -> int | None:
        scheduler = self._scheduler
        if scheduler is not None and SWEEPERS_SEGMENT in await scheduler.leases.segments():
            await self._store.tidy()
        return now_at + _TIDY_PERIOD_US

    async def _descend_step(self, now_at: int) -> int | None:
        """Tell children of what ended here; what is left over is the sweeper's."""
        return now_at if await self._store.descend(_DESCENTS) else None

    def _segments_changed(self) -> None:
        self._plan.wake()
        self._sweep.wake()
        self._backfill.wake()
        self._operate.wake()
        self._call.wake()
        if self._dispatcher is not None:
            self._load.wake()

    # --- the worker's part

    def _working_duties(self, worker: Worker) -> tuple[Duty, ...]:
        self._claim = self._duty("claim", worker.step, poll_us=self._seldom)
        self._settle = self._duty("settle", worker.settle_step)
        self._beat = self._duty("heartbeat", worker.heartbeat, poll_us=never)
        self._cancel = self._duty("cancel", worker.cancel_step, poll_us=self._only_without_hints)
        progress = self._duty("progress", worker.progress.step)
        duties = self._claim, self._settle, self._beat, self._cancel, progress
        if self._log is None:
            return duties
        self._write = self._duty("log", self._log.step, poll_us=never)
        return *duties, self._write

    async def _join_worker(self, worker: Worker) -> None:
        self._ticker = Ticker(worker.tick, self._clock)
        worker.on_timer = self._ticker.wake
        worker.on_room = self._claim.wake
        worker.on_outcome = self._settle.wake
        if self._log is not None:
            self._log.wakes(self._write.wake)
        await worker.join()

    async def _stop_worker(self, worker: Worker, patience_us: int) -> None:
        try:
            await worker.drain(patience_us)
        except Unavailable as error:
            _log.error("not all could be committed; the next start takes it up", why=error.message)
        finally:
            await self._end(*self._working)
            await self._write_log()
            if self._ticker is not None:
                self._ticker.stop()
        with contextlib.suppress(Unavailable):  # then the lease runs out by itself
            await worker.leave()

    async def _write_log(self) -> None:
        """Write down what the last attempts said, if the store answers soon."""
        if self._log is not None:
            with contextlib.suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(_LOG_PATIENCE_S):
                    await self._log.flush()

    # --- duties

    def _duty(self, name: str, step: Step, poll_us: Poll = every_second) -> Duty:
        return Duty(name, step, self._clock, self._telemetry, poll_us=poll_us, draw=self._draw)

    def _seldom(self) -> int:
        return RARE_POLL_US if self._hints_arrive() else SECOND_US

    def _hardly_ever(self) -> int:
        return RAREST_POLL_US if self._hints_arrive() else SECOND_US

    def _only_without_hints(self) -> int | None:
        return None if self._hints_arrive() else SECOND_US  # the heartbeat looks too

    async def _end(self, *duties: Duty) -> None:
        """Let the steps under way finish; a step that does not is cut short."""
        tasks = [self._tasks[duty] for duty in duties if duty in self._tasks]
        for duty in duties:
            duty.stop()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_STEP_PATIENCE_S)
        for task in late:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _hinted(self, hint: Hint) -> None:
        if hint is Hint.RUNS and self._dispatcher is not None:
            self._dispatcher.hinted()
            self._load.wake()
        match hint:
            case Hint.CLOCKS if self._scheduler is not None:
                self._plan.wake()
            case Hint.GRAPHS:
                self._descend.wake()
            case Hint.RUNS if self._worker is not None:
                self._claim.wake()
            case Hint.BACKFILLS if self._scheduler is not None:
                self._backfill.wake()
            case Hint.OPERATIONS if self._scheduler is not None:
                self._operate.wake()
            case Hint.WEBHOOKS if self._scheduler is not None:
                self._call.wake()
            case Hint.CANCEL if self._worker is not None:
                self._cancel.wake()
            case _:
                pass  # not its matter; what jobs want is seen by the sweeper, which looks all the time
