"""One scheduler and some workers on a store in memory and a virtual clock: the real services, called when they
have something to do.

In a process each duty polls, in case a hint was lost and a clock was set anew. Here no hint is lost, so nothing
polls, and the time between two events costs nothing. Leases never run out for the same reason; an outage ends them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from hourhand.clock import ManualClock
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.model import DEFAULT_POOL, DEFAULT_TENANT, AfterTiming, Job, JobState
from hourhand.core.specification import SpecLimits
from hourhand.errors import HourhandError
from hourhand.ids import IdSource
from hourhand.leases.native import NativeLeases
from hourhand.ports.store import Hint, JobDraft
from hourhand.ports.target import Target
from hourhand.queues.native import NativeQueue
from hourhand.services.jobs import Jobs, NewJob
from hourhand.services.planner import Planner
from hourhand.services.room import Room
from hourhand.services.runs import Runs
from hourhand.services.sweeper import Sweeper
from hourhand.services.worker import Settled, Worker
from hourhand.simulation.virtual import LoopClock, VirtualLoop
from hourhand.stores.sqlite import SqliteStore
from hourhand.telemetry import Telemetry

LEAD_US = 2 * SECOND_US
HORIZON_US = (
    10 * SECOND_US
)  # no process dies unseen here, so a short one shows the same and leaves more to jump over
_IDS_AT = 1_767_225_600_000_000  # 2026-01-01
_KEEP_US = 4_000 * DAY_US
_LEASE_US = 40_000 * DAY_US
_SWEEP_US = HOUR_US  # how often it is swept although nothing asks for it
_BUSY_SWEEP_US = MINUTE_US  # and while workers are full
_WAIT_SWEEP_US = 10 * MINUTE_US  # and where runs may wait for their parents, unless they wait less long
_DESCENTS = 500
_BATCH = 1_000
_MOST_STEPS = 100_000  # at one instant

Step = Callable[[int], Awaitable[int | None]]


class NoRest(RuntimeError):
    """The services go on and on without time passing."""


class _Part:
    """A step, and when it wants to be called."""

    __slots__ = ("next_at", "step", "wake_world", "woken")

    def __init__(self, step: Step, wake_world: Callable[[], None]) -> None:
        self.step = step
        self.next_at: int | None = None
        self.woken = True
        self.wake_world = wake_world

    def wake(self) -> None:
        """Call it at this instant."""
        self.woken = True
        self.wake_world()


class World:
    """Everything on one clock. Its coroutines run on the clock's loop, one at a time."""

    def __init__(
        self,
        loop: VirtualLoop,
        clock: LoopClock,
        *,
        targets: Mapping[type, Target],
        workers: int = 1,
        concurrency: int = 100,
        seed: int = 0,
        settled: Settled = lambda batch: None,
    ) -> None:
        self._loop = loop
        self.clock = clock
        self._targets = targets
        self._worker_count = workers
        self._concurrency = concurrency
        self._settled = settled
        self._telemetry = Telemetry()
        self._ids = IdSource(ManualClock(_IDS_AT), seed=seed)  # simulated years may lie where ids end
        self.store = SqliteStore.in_memory(clock=clock, segments=1, lead_us=LEAD_US, keep_us=_KEEP_US)
        self.store.subscribe(self._hinted)
        self.jobs = Jobs(store=self.store, ids=self._ids, clock=clock, limits=SpecLimits())
        self.runs = Runs(store=self.store, clock=clock, horizon_us=HORIZON_US)
        self._leases = self._new_leases("scheduler", plans=True)
        self.planner = Planner(
            store=self.store,
            leases=self._leases,
            clock=clock,
            horizon_us=HORIZON_US,
            telemetry=self._telemetry,
        )
        self._sweeper = Sweeper(
            store=self.store,
            keep_us=_KEEP_US,
            dead_keep_us=_KEEP_US,
            telemetry=self._telemetry,
            period_us=_SWEEP_US,
        )
        self._pools = {DEFAULT_POOL}
        self._workers: list[Worker] = []
        self._waking: asyncio.Future[None] | None = None
        self._plan = self._part(self.planner.step)
        self._sweep = self._part(self._sweep_step)
        self._descend = self._part(self._descend_step)
        self._scheduling = (self._plan, self._sweep, self._descend)
        self._parts: list[_Part] = []
        self._claims: list[_Part] = []
        self._cancels: list[_Part] = []
        self._wait_us: int | None = (
            None  # how often to look for waits that are over, where jobs follow others
        )

    # --- what people do

    async def create(self, news: Sequence[NewJob], tenant: str = DEFAULT_TENANT) -> list[Job | HourhandError]:
        """Store jobs; workers serve their pools from then on."""
        answers = await self.jobs.create_many(tenant, news)
        await self._serve([answer for answer in answers if isinstance(answer, Job)])
        return answers

    async def adopt(self, jobs: Sequence[Job]) -> None:
        """Take jobs that another world has made, under their ids; those who follow come after whom they follow."""
        drafts = [
            JobDraft(id=job.id, tenant=job.tenant, spec=job.spec, paused=job.state is JobState.PAUSED)
            for job in jobs
        ]
        for first in range(0, len(drafts), _BATCH):
            answers = await self.store.create_jobs(drafts[first : first + _BATCH])
            assert all(isinstance(answer, Job) for answer in answers), "another world took it"
        await self._serve(jobs)

    async def _serve(self, jobs: Sequence[Job]) -> None:
        """Let workers take runs of the jobs' pools."""
        waits = [job.spec.timing.wait_us for job in jobs if isinstance(job.spec.timing, AfterTiming)]
        if waits:
            self._wait_us = min(self._wait_us or _WAIT_SWEEP_US, max(SECOND_US, min(waits) // 4))
        pools = {job.spec.pool for job in jobs}
        if not pools <= self._pools:
            self._pools |= pools
            if self.is_up:
                await self.stop()
                await self.start()

    # --- being there, and not

    @property
    def is_up(self) -> bool:
        """Whether anybody plans and works."""
        return bool(self._parts)

    async def start(self) -> None:
        """Scheduler and workers join, and what was left is taken up."""
        await self._leases.join()
        while await self._sweeper.rescue(self.clock.now()):
            pass
        self._workers = [self._new_worker(f"worker-{number + 1}") for number in range(self._worker_count)]
        self._claims = [self._part(worker.step) for worker in self._workers]
        self._cancels = [self._part(worker.cancel_step) for worker in self._workers]
        self._parts = [*self._scheduling]
        for worker, claim, cancel in zip(self._workers, self._claims, self._cancels, strict=True):
            tick, settle = self._part(_ticking(worker)), self._part(worker.settle_step)
            worker.on_room, worker.on_timer, worker.on_outcome = claim.wake, tick.wake, settle.wake
            self._parts += (claim, tick, settle, cancel)
            await worker.join()
        for part in self._scheduling:
            part.woken = True

    async def stop(self) -> None:
        """All of it goes at once: attempts under way are cut short, as a stopped process does it."""
        for worker in self._workers:
            await worker.drain(0)
            await worker.leave()
        await self._leases.leave()
        self._parts, self._workers, self._claims, self._cancels = [], [], [], []

    async def close(self) -> None:
        """Let go of the store."""
        await self.store.close()

    # --- time

    async def run_until(self, end_at: int) -> None:
        """Let time pass up to and with an instant."""
        while True:
            await self._come_to_rest()
            now_at = self.clock.now()
            if now_at >= end_at:
                return
            await self._sleep_until(min(self._next_at(end_at), end_at))

    async def run_until_done(self, limit_at: int, is_done: Callable[[], Awaitable[bool]]) -> bool:
        """Let time pass until something holds, or up to a limit; whether it did."""
        while True:
            await self._come_to_rest()
            if await is_done():
                return True
            if self.clock.now() >= limit_at:
                return False
            await self._sleep_until(min(self._next_at(limit_at), limit_at))

    @property
    def in_hand(self) -> int:
        """How many runs workers hold."""
        return sum(worker.in_hand for worker in self._workers)

    def before_planning(self, step: Callable[[int], Awaitable[None]]) -> None:
        """Call something each time before the planner is called."""
        plan = self.planner.step

        async def both(now_at: int) -> int | None:
            await step(now_at)
            return await plan(now_at)

        self._plan.step = both

    async def _come_to_rest(self) -> None:
        for _ in range(_MOST_STEPS):
            now_at = self.clock.now()
            part = next((part for part in self._parts if _is_due(part, now_at)), None)
            if part is not None:
                part.woken = False
                part.next_at = await part.step(now_at)
                continue
            await self._loop.rest()
            if not any(_is_due(part, now_at) for part in self._parts):
                return
        raise NoRest(f"more than {_MOST_STEPS:,} steps at one instant; nothing goes on")

    def _next_at(self, end_at: int) -> int:
        sweep_us = self._sweep_us()
        if sweep_us is not None and self.is_up:
            soon_at = self.clock.now() + sweep_us
            self._sweep.next_at = min(soon_at, self._sweep.next_at or soon_at)
        return min((part.next_at for part in self._parts if part.next_at is not None), default=end_at)

    def _sweep_us(self) -> int | None:
        """How soon somebody may wait for the sweeper: for a worker with room, or for parents in vain."""
        is_full = self.in_hand >= self._worker_count * self._concurrency
        return _BUSY_SWEEP_US if is_full else self._wait_us

    async def _sleep_until(self, at: int) -> None:
        """Until an instant, or until something happens before it."""
        self._waking = self._loop.create_future()
        delay_s = max(0, at - self.clock.now()) / SECOND_US
        timer = self._loop.call_later(delay_s, self._wake)
        try:
            await self._waking
        finally:
            timer.cancel()
            self._waking = None

    def _wake(self) -> None:
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(None)

    # --- the parts

    async def _sweep_step(self, now_at: int) -> int | None:
        return await self._sweeper.step(now_at)

    async def _descend_step(self, now_at: int) -> int | None:
        return now_at if await self.store.descend(_DESCENTS) else None

    def _hinted(self, hint: Hint) -> None:
        match hint:
            case Hint.CLOCKS:
                self._plan.wake()
            case Hint.GRAPHS:
                self._descend.wake()
            case Hint.JOBS:
                self._sweep.wake()
            case Hint.RUNS:
                for claim in self._claims:
                    claim.wake()
            case Hint.CANCEL:
                for cancel in self._cancels:
                    cancel.wake()
            case _:
                pass

    def _part(self, step: Step) -> _Part:
        return _Part(step, self._wake)

    def _new_leases(self, name: str, *, plans: bool) -> NativeLeases:
        kind = "scheduler" if plans else "worker"
        return NativeLeases(
            store=self.store, ids=self._ids, kind=kind, name=name, plans=plans, lease_us=_LEASE_US
        )

    def _new_worker(self, name: str) -> Worker:
        return Worker(
            store=self.store,
            queue=NativeQueue(self.store),
            leases=self._new_leases(name, plans=False),
            targets=self._targets,
            clock=self.clock,
            telemetry=self._telemetry,
            name=name,
            pools=tuple(sorted(self._pools)),
            room=Room(self._concurrency),
            lead_us=LEAD_US,
            settled=self._settled,
        )


def _is_due(part: _Part, now_at: int) -> bool:
    return part.woken or (part.next_at is not None and part.next_at <= now_at)


def _ticking(worker: Worker) -> Step:
    async def tick(now_at: int) -> int | None:
        return worker.tick(now_at)

    return tick
