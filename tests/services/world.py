"""One store in memory, a settable clock, and services that tests move by hand, step by step.

The target is the outside world and is scripted. The store is the real one; `FaultyStore` stands before it
where a test wants calls to fail, to be answered late, or to lose their answer after the commit.
"""

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hourhand.clock import Clock, ManualClock
from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    DEFAULT_POOL,
    DEFAULT_TENANT,
    CronTiming,
    EveryTiming,
    Job,
    JobSpec,
    OnceTiming,
    PythonTarget,
    Timing,
)
from hourhand.core.retry import Failure, Outcome
from hourhand.core.run import ClaimedRun, RunView, Settlement
from hourhand.core.specification import SpecLimits
from hourhand.errors import Unavailable
from hourhand.ids import IdSource
from hourhand.leases.native import NativeLeases
from hourhand.ports.queue import Feed, Offers
from hourhand.ports.store import JobDraft, Store
from hourhand.ports.target import OK, Result, Target
from hourhand.queues.brokered import BrokerQueue
from hourhand.queues.native import NativeQueue
from hourhand.services.backfiller import Backfiller
from hourhand.services.backfills import Backfills
from hourhand.services.dispatcher import Dispatcher
from hourhand.services.jobs import Jobs
from hourhand.services.node import Node, Scheduler
from hourhand.services.planner import Planner
from hourhand.services.room import Room
from hourhand.services.runs import Runs
from hourhand.services.sweeper import Sweeper
from hourhand.services.tenure import Tenure
from hourhand.services.worker import Worker
from hourhand.stores.sqlite import SqliteStore
from hourhand.telemetry import Telemetry

START_AT = 1_794_819_600_000_000  # 2026-11-16T09:00:00Z
MS = 1_000
LEAD_US = 2 * SECOND_US
HORIZON_US = 60 * SECOND_US
SEGMENTS = 4
SCHEDULER_LEASE_US = 3 * SECOND_US
NOOP = PythonTarget(function="tests:noop")

FAILED = Result(outcome=Outcome.FAILED, detail={"error": "it broke"})
NOT_SENT = Result(outcome=Outcome.FAILED, detail={"error": "no route"}, failure=Failure(before_sending=True))

Act = Callable[[ClaimedRun], Awaitable[Result]]


def every(seconds: float, phase_at: int = START_AT) -> EveryTiming:
    return EveryTiming(interval_us=round(seconds * SECOND_US), phase_at=phase_at)


def cron(expression: str) -> CronTiming:
    return CronTiming(expression=expression)


def once(at: int) -> OnceTiming:
    return OnceTiming(at=at)


def spec(timing: Timing | None = None, **fields: Any) -> JobSpec:
    return JobSpec(timing=timing or every(60), target=NOOP, **fields)


class Call(NamedTuple):
    """One attempt as the outside world saw it begin."""

    key: RunKey
    fence: int
    at: int
    late_us: int


class ScriptedTarget:
    """The outside world: does what it is told, and remembers who called."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.calls: list[Call] = []
        self.act: Act = succeed
        self.answers: deque[Result] = deque()  # what the next calls get, before `act` speaks
        self.cancelled: list[RunKey] = []

    async def execute(self, run: ClaimedRun) -> Result:
        now_at = self._clock.now()
        self.calls.append(Call(run.key, run.fence, now_at, now_at - run.due_at))
        try:
            return self.answers.popleft() if self.answers else await self.act(run)
        except asyncio.CancelledError:
            self.cancelled.append(run.key)
            raise

    async def close(self) -> None:
        pass

    @property
    def keys(self) -> list[RunKey]:
        return [call.key for call in self.calls]

    @property
    def fences(self) -> list[int]:
        return [call.fence for call in self.calls]

    def called(self, job: Job) -> list[int]:
        """The nominal times at which a job was called, in order of the calls."""
        return [call.key.scheduled_at for call in self.calls if call.key.job_id == job.id]


async def succeed(run: ClaimedRun) -> Result:
    return OK


class Gate:
    """An attempt's answer, given when the test says so."""

    def __init__(self, *, swallow: bool = False) -> None:
        self._swallow = swallow
        self.opened = asyncio.Event()
        self.result = OK
        self.ended = 0

    async def __call__(self, run: ClaimedRun) -> Result:
        while not self.opened.is_set():
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                if not self._swallow:
                    raise
        self.ended += 1
        return self.result


class FaultyStore:
    """A store whose calls fail before or after they happened, or are answered late."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()
        self.away = False
        self._before: Counter[str] = Counter()
        self._after: Counter[str] = Counter()
        self._gates: dict[str, asyncio.Event] = {}
        self.chance: Callable[[str], str | None] = lambda verb: None  # "before", "after" or None
        self.delay_s: Callable[[str], float] = lambda verb: 0  # on the way there and on the way back

    def fail(self, verb: str, times: int = 1) -> None:
        """The next calls of a verb do nothing and raise."""
        self._before[verb] += times

    def lose_answer(self, verb: str, times: int = 1) -> None:
        """The next calls of a verb are carried out and raise all the same."""
        self._after[verb] += times

    def hold_answer(self, verb: str) -> asyncio.Event:
        """The next call of a verb is carried out, and answered when the event is set."""
        self._gates[verb] = asyncio.Event()
        return self._gates[verb]

    def subscribe(self, wake: Callable[..., None]) -> None:
        self.inner.subscribe(wake)

    def place(self, tenant: str, spec: JobSpec) -> int | None:
        return self.inner.place(tenant, spec)

    def __getattr__(self, verb: str) -> Any:
        real = getattr(self.inner, verb)

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[verb] += 1
            fault = self.chance(verb)
            if self.away or self._spend(self._before, verb) or fault == "before":
                raise Unavailable(f"{verb}: the store is away")
            await _pass(self.delay_s(verb))
            answer = await real(*args, **kwargs)
            await _pass(self.delay_s(verb))
            gate = self._gates.pop(verb, None)
            if gate is not None:
                await gate.wait()
            if self._spend(self._after, verb) or fault == "after":
                raise Unavailable(f"{verb}: the answer was lost")
            return answer

        return call

    @staticmethod
    def _spend(budget: Counter[str], verb: str) -> bool:
        if budget[verb] <= 0:
            return False
        budget[verb] -= 1
        return True


async def _pass(seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)


class Hand:
    """A worker with the steps that its duties would take."""

    def __init__(self, world: "World", worker: Worker) -> None:
        self._world = world
        self.worker = worker
        self._beat_at = 0
        self.settled: list[tuple[ClaimedRun, Settlement]] = []

    @property
    def in_hand(self) -> int:
        return self.worker.in_hand

    async def claim(self) -> int | None:
        """Claim while that leads to anything; answers when the worker wants to ask again."""
        now_at = self._world.now
        for _ in range(1_000):
            next_at = await self.worker.step(now_at)
            await quiet()
            if next_at is None or next_at > now_at + 10 * MS:
                return next_at
            if next_at > now_at:  # its little patience before a small claim
                now_at = next_at
        raise AssertionError("claims go on for ever without coming to rest")

    async def tick(self) -> int | None:
        """Tick as often as the worker asks for at this moment; answers its next timer."""
        while (next_at := self.worker.tick(self._world.now)) is not None and next_at <= self._world.now:
            await quiet()
        await quiet()
        return next_at

    async def settle(self) -> None:
        """Commit what has ended."""
        while await self.worker.settle_step(self._world.now) is not None:
            pass
        await quiet()

    async def beat(self) -> int | None:
        next_at = await self.worker.heartbeat(self._world.now)
        await quiet()
        return next_at

    async def cancels(self) -> None:
        await self.worker.cancel_step(self._world.now)
        await quiet()

    async def work(self) -> list[int]:
        """Claim, start, settle, until there is nothing to do at this moment; answers what comes next."""
        for _ in range(1_000):
            held, done = self.in_hand, len(self.settled)
            asks_at = await self.claim()
            timer_at = await self.tick()
            await self.settle()
            if (held, done) == (self.in_hand, len(self.settled)):
                return [at for at in (asks_at, timer_at) if at is not None]
        raise AssertionError("the worker does not come to rest")

    async def go(self, until_at: int) -> None:
        """Work until an instant, stopping wherever a timer, a claim or a heartbeat is due."""
        while True:
            if self._world.now >= self._beat_at:
                self._beat_at = await self.beat() or 0
            coming = [*await self.work(), self._beat_at, until_at]
            next_at = min(at for at in coming if at > self._world.now or at == until_at)
            if next_at <= self._world.now:
                return
            self._world.go_to(next_at)


class _JoinedWhenAsked(NativeLeases):
    """The membership of a planner that a test moves by hand: it joins when it first plans."""

    def __init__(self, world: "World") -> None:
        super().__init__(store=world.real, ids=world.ids, kind="scheduler", name="planner", plans=True)

    async def segments(self) -> Mapping[int, int]:
        if not self._node_id:
            await self.join()
        return await super().segments()


class World:
    """Everything on one clock."""

    def __init__(
        self, *, clock: Clock | None = None, horizon_us: int = HORIZON_US, keep_us: int = 30 * DAY_US
    ) -> None:
        self.clock: Any = clock or ManualClock(START_AT)
        self._horizon_us = horizon_us
        self._keep_us = keep_us
        self.real = SqliteStore.in_memory(
            clock=self.clock, segments=SEGMENTS, lead_us=LEAD_US, keep_us=keep_us
        )
        self.store = FaultyStore(self.real)
        self.target = ScriptedTarget(self.clock)
        self.telemetry = Telemetry()
        self.ids = IdSource(self.clock, seed=1)
        self._names = itertools.count(1)
        self.hints_arrive = False  # what nodes take for granted of their hints
        self.planner = self.new_planner()
        self.sweeper = self.new_sweeper()
        self.jobs = Jobs(store=self.store, ids=self.ids, clock=self.clock, limits=SpecLimits())
        self.runs = Runs(store=self.store, clock=self.clock, horizon_us=horizon_us)
        self.backfiller = self.new_backfiller()
        self.backfills = Backfills(store=self.store, ids=self.ids, clock=self.clock, keep_us=keep_us)

    @property
    def now(self) -> int:
        return self.clock.now()

    def pass_time(self, seconds: float) -> int:
        return self.clock.advance(round(seconds * SECOND_US))

    def go_to(self, at: int) -> None:
        self.clock.now_at = at

    def leases(self, name: str) -> NativeLeases:
        """A worker's membership."""
        return NativeLeases(store=self.store, ids=self.ids, kind="worker", name=name, plans=False)

    def scheduler_leases(self, name: str) -> NativeLeases:
        """A scheduler's membership."""
        return NativeLeases(
            store=self.store,
            ids=self.ids,
            kind="scheduler",
            name=name,
            plans=True,
            lease_us=SCHEDULER_LEASE_US,
        )

    async def worker(
        self,
        concurrency: int = 10,
        *,
        pools: Sequence[str] = (DEFAULT_POOL,),
        lead_us: int = LEAD_US,
        name: str | None = None,
        feeds: Sequence[Feed] = (),
    ) -> Hand:
        """A worker that has joined."""
        made = self.new_worker(concurrency, pools=pools, lead_us=lead_us, name=name, feeds=feeds)
        hand = Hand(self, made)
        hand.worker._settled = hand.settled.extend
        await hand.worker.join()
        return hand

    def new_worker(
        self,
        concurrency: int = 10,
        *,
        pools: Sequence[str] = (DEFAULT_POOL,),
        lead_us: int = LEAD_US,
        name: str | None = None,
        target: Target | None = None,
        leases: NativeLeases | None = None,
        room: Room | None = None,
        feeds: Sequence[Feed] = (),
        **watching: Any,
    ) -> Worker:
        name = name or f"worker-{next(self._names)}"
        return Worker(
            store=self.store,
            queue=self.brokered(feeds) if feeds else NativeQueue(self.store),
            leases=leases or self.leases(name),
            targets={PythonTarget: target or self.target},
            clock=self.clock,
            telemetry=self.telemetry,
            name=name,
            pools=tuple(pools),
            room=room or Room(concurrency),
            lead_us=lead_us,
            **watching,
        )

    def brokered(self, feeds: Sequence[Feed]) -> BrokerQueue:
        return BrokerQueue(store=self.store, feeds=feeds, clock=self.clock, telemetry=self.telemetry)

    def new_dispatcher(self, offers: Offers, leases: NativeLeases | None = None) -> Dispatcher:
        return Dispatcher(
            store=self.store,
            leases=leases or _JoinedWhenAsked(self),
            offers=offers,
            telemetry=self.telemetry,
            lead_us=LEAD_US,
        )

    def new_planner(self, leases: NativeLeases | None = None) -> Planner:
        return Planner(
            store=self.store,
            leases=leases or _JoinedWhenAsked(self),
            clock=self.clock,
            horizon_us=self._horizon_us,
            telemetry=self.telemetry,
        )

    def new_sweeper(self) -> Sweeper:
        keep_us = self._keep_us
        return Sweeper(store=self.store, keep_us=keep_us, dead_keep_us=keep_us, telemetry=self.telemetry)

    def new_backfiller(self) -> Backfiller:
        return Backfiller(store=self.store, telemetry=self.telemetry)

    def new_node(self, concurrency: int = 10, target: Target | None = None, *, joint: bool = False) -> Node:
        """A whole process: scheduler and worker with their duties, on the store as it is set now.

        `joint`: with one lease for both, as `up` has on a file.
        """
        name = f"node-{next(self._names)}"
        both = NativeLeases(store=self.store, ids=self.ids, kind="up", name=name, plans=True)
        leases = both if joint else self.scheduler_leases(name)
        return self._node(
            scheduler=self._scheduler(leases, None if joint else Tenure(leases, SCHEDULER_LEASE_US)),
            worker=self.new_worker(concurrency, target=target, name=name, leases=both if joint else None),
        )

    def new_scheduler_node(self, offers: Offers | None = None) -> Node:
        """A process that only plans and sweeps, and offers where there is a broker."""
        leases = self.scheduler_leases(f"scheduler-{next(self._names)}")
        return self._node(scheduler=self._scheduler(leases, Tenure(leases, SCHEDULER_LEASE_US), offers))

    def new_worker_node(
        self, concurrency: int = 10, room: Room | None = None, feeds: Sequence[Feed] = ()
    ) -> Node:
        """A process that only works."""
        return self._node(worker=self.new_worker(concurrency, room=room, feeds=feeds))

    def _scheduler(
        self, leases: NativeLeases, tenure: Tenure | None, offers: Offers | None = None
    ) -> Scheduler:
        return Scheduler(
            leases=leases,
            planner=self.new_planner(leases),
            sweeper=self.new_sweeper(),
            backfiller=self.new_backfiller(),
            tenure=tenure,
            dispatcher=None if offers is None else self.new_dispatcher(offers, leases),
        )

    def _node(self, **parts: Any) -> Node:
        return Node(
            store=self.store,
            clock=self.clock,
            telemetry=self.telemetry,
            hints_arrive=lambda: self.hints_arrive,
            **parts,
        )

    async def create(self, timing: Timing | None = None, **fields: Any) -> Job:
        return (await self.create_all([spec(timing, **fields)]))[0]

    async def create_all(self, specs: Sequence[JobSpec], tenant: str = DEFAULT_TENANT) -> list[Job]:
        drafts = [JobDraft(id=self.ids.job_id(), tenant=tenant, spec=one) for one in specs]
        answers = await self.real.create_jobs(drafts)
        assert all(isinstance(answer, Job) for answer in answers), answers
        return [answer for answer in answers if isinstance(answer, Job)]

    async def plan(self) -> int | None:
        """Let the planner work until it wants to sleep."""
        for _ in range(1_000):
            next_at = await self.planner.step(self.now)
            if next_at is None or next_at > self.now:
                return next_at
        raise AssertionError("the planner does not come to rest")

    async def sweep(self) -> int | None:
        """Let the sweeper work until it wants to sleep."""
        for _ in range(1_000):
            next_at = await self.sweeper.step(self.now)
            if next_at is None or next_at > self.now:
                return next_at
        raise AssertionError("the sweeper does not come to rest")

    async def view(self, job: Job, scheduled_at: int) -> RunView:
        found = await self.real.get_run(job.tenant, RunKey(job.id, scheduled_at))
        assert found is not None, "there is no such run"
        return found

    async def state(self, job: Job, scheduled_at: int) -> State | None:
        found = await self.real.get_run(job.tenant, RunKey(job.id, scheduled_at))
        return None if found is None else found.state

    async def states(self, job: Job, *nominals: int) -> list[State | None]:
        return [await self.state(job, at) for at in nominals]

    async def planned(self) -> list[tuple[int, int]]:
        """(scheduled_at, job_id) of everything that waits to be claimed."""
        return sorted(await self.real._engine.read(_planned_rows))

    async def is_dead(self, job: Job, scheduled_at: int) -> bool:
        letters = await self.runs.dead_among(job.tenant, [RunKey(job.id, scheduled_at)])
        return bool(letters)


async def _planned_rows(tx: Any) -> list[tuple[int, int]]:
    return [tuple(row) for row in tx._connection.execute("SELECT scheduled_at, job_id FROM planned")]


def key_of(job: Job, scheduled_at: int) -> RunKey:
    return RunKey(job.id, scheduled_at)


def reason(view: RunView) -> str | None:
    """Why a run ended without succeeding."""
    detail = view.attempts[-1].detail if view.attempts else None
    return None if detail is None else detail.get("reason") or detail.get("error")


async def quiet() -> None:
    """Let every task get as far as it can without the clock moving on."""
    for _ in range(12):
        await asyncio.sleep(0)
