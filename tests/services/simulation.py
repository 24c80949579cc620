"""A small fleet on virtual time, from one seed: nodes crash and freeze, calls of the store fail before or after
they happened and are slow, targets fail, hang and swallow cancellations, people edit. Then everything heals.

The outside world honours the idempotency key, and notes what it saw; the checks compare that, the tables and
the schedules.
"""

import asyncio
import random
from collections import Counter
from functools import partial
from typing import Any

import msgspec

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    Delivery,
    Job,
    JobSpec,
    JobState,
    Misfire,
    MisfirePolicy,
    OnceTiming,
    Overlap,
    Priority,
    Retry,
    Timing,
)
from hourhand.core.retry import Outcome
from hourhand.core.run import ClaimedRun
from hourhand.errors import Conflict, NotFound, Overloaded, Unavailable
from hourhand.ports.target import OK, Result
from hourhand.services.jobs import NewJob
from hourhand.services.node import Node
from tests.contract.checker import assert_covered, assert_sound, expected_nominals
from tests.contract.harness import Tables, _sqlite_tables
from tests.services.virtual import LoopClock
from tests.services.world import (
    FAILED,
    NOOP,
    NOT_SENT,
    SEGMENTS,
    START_AT,
    FaultyStore,
    World,
    cron,
    every,
    once,
)

_QUIET_S = 150  # lease, takeover, backoffs and the longest timeout, with room to spare


class Fleet:
    """Some nodes on one store, and everything that was seen of them."""

    def __init__(self, clock: LoopClock, seed: int) -> None:
        self._clock = clock
        self._random = random.Random(seed)
        self._world = World(clock=clock)
        self._real = self._world.real
        self._faults = True
        self._nodes: dict[Node, _NodeStore] = {}
        self._jobs: list[Job] = []
        self.calls: list[tuple[RunKey, int, int]] = []  # key, fence, microseconds after its due time
        self.effects: Counter[RunKey] = Counter()  # applied once per key, as an honest target does
        self.sent: Counter[RunKey] = Counter()  # how often the effect would have happened without the key

    # --- the course of things

    async def live(self, seconds: float) -> None:
        """Faults and work, then peace."""
        for _ in range(3):
            await self._start_node()
        for _ in range(12):
            await self._create()
        actors = [asyncio.create_task(self._people()), asyncio.create_task(self._trouble())]
        await asyncio.sleep(seconds)
        for actor in actors:
            actor.cancel()
        await asyncio.gather(*actors, return_exceptions=True)
        self._faults = False
        for store in self._nodes.values():
            store.away = False
        while len(self._nodes) < 2:
            await self._start_node()
        for job in self._jobs:
            await self._maybe_pause(job)
        await asyncio.sleep(_QUIET_S)

    async def end(self) -> None:
        """Check everything, then stop what is left in good order."""
        tables = await self._tables()
        await self._check(tables)
        for node in list(self._nodes):
            await node.stop(5 * SECOND_US)
        assert_sound(await self._tables())

    async def _tables(self) -> Tables:
        return await self._real._engine.write(_sqlite_tables)

    # --- nodes

    async def _start_node(self) -> None:
        store = _NodeStore(self._real, self)
        self._world.store = store
        node = self._world.new_node(concurrency=self._random.choice((3, 10, 40)), target=self)
        while True:
            try:
                await node.start()
                break
            except Unavailable:
                await asyncio.sleep(0.5)
        self._nodes[node] = store

    def _crash(self, node: Node) -> None:
        """As kill -9 does: nothing is said any more, nothing is cleaned up."""
        self._nodes.pop(node).crashed = True
        for task in node._tasks.values():
            task.cancel()
        assert node._ticker is not None
        node._ticker.stop()
        node._worker.on_timer = node._worker.on_outcome = node._worker.on_room = lambda: None
        for attempt in node._worker._in_hand.values():
            attempt.done = True
            if attempt.task is not None:
                attempt.task.cancel()

    async def _trouble(self) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(1 / 12))
            kind = self._random.random()
            if kind < 0.4 and self._nodes:
                self._crash(self._random.choice(list(self._nodes)))
                await asyncio.sleep(self._random.choice((0.1, 2, 40)))
            elif kind < 0.6 and self._nodes:
                store = self._random.choice(list(self._nodes.values()))
                store.away = True  # cut off from the store for less or more than its lease
                await asyncio.sleep(self._random.choice((1, 10, 45)))
                store.away = False
            elif kind < 0.8 and self._nodes:
                worker = self._random.choice(list(self._nodes))
                stopping = asyncio.create_task(worker.stop(self._random.choice((0, 3)) * SECOND_US))
                self._nodes.pop(worker)
                await stopping
            elif kind < 0.85:
                self._clock.offset_us += self._random.choice((3_600, 40, -3, -20)) * SECOND_US
            while len(self._nodes) < 2:
                await self._start_node()

    # --- people

    async def _create(self) -> None:
        draw = self._random
        spec = JobSpec(
            timing=self._timing(),
            target=NOOP,
            priority=draw.choice(list(Priority)),
            concurrency=draw.choice((1, 1, 2, None)),
            overlap=draw.choice(list(Overlap)),
            misfire=Misfire(
                policy=draw.choice(list(MisfirePolicy)),
                grace_us=draw.choice((0, 5, 60)) * SECOND_US,
                limit=draw.choice((1, 5, 100)),
            ),
            jitter_us=draw.choice((0, 0, 1_500_000)),
            retry=Retry(max=draw.choice((0, 2, 30)), first_us=draw.choice((0, 1)) * SECOND_US, factor=1.2),
            timeout_us=draw.choice((500_000, 4_000_000, 20_000_000)),
            delivery=draw.choice((Delivery.AT_LEAST_ONCE,) * 3 + (Delivery.AT_MOST_ONCE,)),
        )
        [job] = await self._world.create_all([spec])
        self._jobs.append(job)

    def _timing(self) -> Timing:
        draw = self._random
        return draw.choice(
            (
                every(draw.choice((1, 2, 5, 13)), phase_at=START_AT + draw.randrange(SECOND_US)),
                cron(draw.choice(("* * * * *", "*/10 * * * * *"))),
                once(self._clock.now() + draw.randrange(-10, 120) * SECOND_US),
            )
        )

    async def _people(self) -> None:
        jobs = self._world.jobs
        while True:
            await asyncio.sleep(self._random.expovariate(1 / 4))
            job = self._random.choice(self._jobs)
            try:
                match self._random.randrange(8):
                    case 0:
                        await self._create()
                    case 1:
                        await jobs.pause(job.tenant, job.id, until_at=self._clock.now() + 7 * SECOND_US)
                    case 2:
                        await jobs.resume(job.tenant, job.id)
                    case 3:
                        await jobs.run_now(job.tenant, job.id)
                    case 4 if not isinstance(job.spec.timing, OnceTiming):
                        change = partial(_with, every(self._random.choice((1, 3, 8))))
                        await jobs.update(job.tenant, job.id, change)
                    case 5:
                        for run in await self._world.runs.history(job, limit=1):
                            await self._world.runs.cancel(job.tenant, RunKey(run.job_id, run.scheduled_at))
                    case _:
                        pass
            except (Conflict, NotFound, Overloaded, Unavailable):
                continue

    async def _maybe_pause(self, job: Job) -> None:
        """Most jobs stop making runs, so that what is left can be seen to end."""
        if self._random.random() < 0.8:
            await self._world.jobs.pause(job.tenant, job.id)

    # --- the outside world, as a target

    async def execute(self, run: ClaimedRun) -> Result:
        key = run.key
        self.calls.append((key, run.fence, self._clock.now() - run.due_at))
        draw = self._random
        mood = draw.random() if self._faults else 1.0
        if mood < 0.05:
            return NOT_SENT
        if mood < 0.10:
            return FAILED
        await asyncio.sleep(draw.choice((0, 0, 0, 0.05, 0.3, 3)))
        self._apply(key)
        if mood < 0.17:
            return FAILED  # after the effect
        if mood < 0.20:
            await asyncio.sleep(1_000)  # never says
        if mood < 0.23:
            await _stubborn(15)
        if mood < 0.25:
            return Result(outcome=Outcome.SKIPPED, detail={"reason": "holiday"})
        await asyncio.sleep(draw.choice((0, 0, 0.1)))
        return OK

    async def close(self) -> None:
        pass

    def _apply(self, key: RunKey) -> None:
        self.sent[key] += 1
        self.effects[key] = 1

    # --- what must hold

    async def _check(self, tables: Tables) -> None:
        early = [call for call in self.calls if call[2] < 0]
        assert not early, f"started before they were due: {early[:3]}"
        assert_sound(tables)
        now_at = self._clock.now()
        done = {(row.job_id, row.scheduled_at): row.state for row in tables.history}
        once_only = {job.id for job in self._jobs if job.spec.delivery is Delivery.AT_MOST_ONCE}
        for key, count in self.sent.items():
            assert count == 1 or key.job_id not in once_only, f"sent {count} times: {key}"
        for key, state in done.items():
            if state is State.SUCCEEDED:
                assert self.effects[RunKey(*key)] == 1, f"succeeded without an effect: {key}"
        self._check_fences()
        for job in self._jobs:
            versions = await self._real.versions(job.tenant, job.id)
            if not versions:
                continue
            assert_covered(tables, job.id, versions, now_at, SEGMENTS)
            promised = expected_nominals(versions, now_at - 30 * SECOND_US)
            waiting = [
                row
                for table in (tables.planned, tables.blocked, tables.running)
                for row in table
                if row.job_id == job.id and row.scheduled_at in promised
            ]
            paused = (await self._world.jobs.get(job.tenant, job.id)).state is not JobState.ACTIVE
            assert not (paused and waiting), f"not at rest: {waiting[:3]} at {now_at}"
        for node in self._nodes:
            held = await self._real.held_runs(node._worker._node_id)
            assert len(held) == node._worker.in_hand, "what it holds is what the store thinks it holds"
            assert set(node.parts.values()) == {None}

    def _check_fences(self) -> None:
        newest: dict[RunKey, int] = {}
        for key, fence, _ in self.calls:
            assert fence != newest.get(key), f"one attempt was carried out twice: {key} {fence}"
            newest[key] = max(fence, newest.get(key, 0))

    # --- faults of the store

    def fault(self, verb: str) -> str | None:
        if not self._faults:
            return None
        drawn = self._random.random()
        return "before" if drawn < 0.02 else "after" if drawn < 0.04 else None

    def delay_s(self, verb: str) -> float:
        if not self._faults or self._random.random() < 0.7:
            return 0
        return self._random.choice((0.001, 0.02, 0.02, 0.3))


class _NodeStore(FaultyStore):
    """The store as one node sees it; once the node has crashed, no call of it gets anywhere."""

    def __init__(self, inner: Any, fleet: Fleet) -> None:
        super().__init__(inner)
        self.crashed = False
        self.chance = fleet.fault
        self.delay_s = self._delay_s
        self._fleet = fleet

    def _delay_s(self, verb: str) -> float:
        if self.crashed:
            raise asyncio.CancelledError
        return self._fleet.delay_s(verb)


async def _stubborn(seconds: float) -> None:
    """Swallows every cancellation until its time is over."""
    loop = asyncio.get_running_loop()
    over_at = loop.time() + seconds
    while loop.time() < over_at:
        try:
            await asyncio.sleep(over_at - loop.time())
        except asyncio.CancelledError:
            continue


def _with(timing: Timing, job: Job, now_at: int) -> NewJob:
    changed = msgspec.structs.replace(job.spec, timing=timing)
    return NewJob(spec=changed, paused=job.state is JobState.PAUSED)
