"""`hourhand simulate`: days of somebody's jobs on the real services, with what needs no simulation jumped over.

Answers a document; how it looks to people is the command line's matter.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from heapq import merge
from typing import Any

import msgspec

from hourhand.cli.launch import RefusedJobs, SimulationWish
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    DEFAULT_TENANT,
    AfterTiming,
    HttpTarget,
    Job,
    JobState,
    OnceTiming,
    PythonTarget,
    ShellTarget,
)
from hourhand.core.plan import ClockPlan, first_since
from hourhand.errors import HourhandError, Invalid
from hourhand.ports.reading import RunQuery
from hourhand.services.planner import rule_by_key
from hourhand.simulation.foresight import Life, lives
from hourhand.simulation.ledger import Ledger
from hourhand.simulation.loading import load, over_before
from hourhand.simulation.quiet import Stretches, alone, stretches
from hourhand.simulation.report import Facts, report
from hourhand.simulation.script import Duration, Habits, Script, ScriptedTarget
from hourhand.simulation.virtual import LoopClock, VirtualLoop
from hourhand.simulation.world import LEAD_US, World

MAX_JOBS = 10_000
MAX_EXPECTED = 500_000
MAX_STEPPED = 50_000  # runs that services carry out; what is jumped over costs next to nothing
_SEGMENTS = (0,)
_PAGE = 1_000
_BEFORE_US = 10 * SECOND_US  # jobs are made a little earlier: a time at the very start is one of their times


class _Enough(Exception):
    """More than a simulation may carry out."""


def simulate(wish: SimulationWish, *, jumps: bool = True) -> dict[str, Any]:
    """The whole of it; RefusedJobs where documents are not right, Invalid where it would be too much.

    Without `jumps` services carry out every run, which takes longer and finds the same.
    """
    if len(wish.jobs) > MAX_JOBS:
        raise Invalid(f"more than {MAX_JOBS:,} jobs; simulate them in parts")
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(_Days(loop, wish, jumps).run())


class _Days:
    """One simulation."""

    def __init__(self, loop: VirtualLoop, wish: SimulationWish, jumps: bool) -> None:
        self._loop = loop
        self._wish = wish
        self._jumps = jumps
        self._clock = LoopClock(loop, wish.start_at - _BEFORE_US)
        self._habits: dict[int, Habits] = {}
        self._script = Script(self._habits, wish.seed)
        self._ledger = Ledger(())
        self._world = self._new_world()
        self._jobs: dict[int, Job] = {}  # by its number among the documents
        self._once: list[int] = []
        self._home: list[Life] = []  # of jobs that take no part
        self._quiet = Stretches([])

    async def run(self) -> dict[str, Any]:
        """Load, look ahead, live through what has to be lived through, and tell."""
        await self._load()
        expected = self._expected_times()
        by_job = self._lives(expected)
        if self._jumps:
            await self._send_home(by_job)
            runs = merge(*(by_job[number] for number in by_job))
            self._quiet = stretches(runs, **self._bounds())
        self._world.before_planning(self._jump)
        stopped_at = await self._live()
        self._ledger.passed([life for life in self._home if stopped_at is None or life.end_at < stopped_at])
        await self._count_skips()
        facts = Facts(
            jobs=self._jobs, expected=expected, ledger=self._ledger, wish=self._wish, stopped_at=stopped_at
        )
        await self._world.close()
        return report(facts)

    # --- what there is

    def _new_world(self) -> World:
        target = ScriptedTarget(self._script)
        return World(
            self._loop,
            self._clock,
            targets={HttpTarget: target, PythonTarget: target, ShellTarget: target},
            workers=self._wish.workers,
            concurrency=self._wish.concurrency,
            seed=self._wish.seed,
            settled=lambda batch: self._ledger.settled(batch),
        )

    def _bounds(self) -> dict[str, Any]:
        wish = self._wish
        return {"slots": wish.workers * wish.concurrency, "lead_us": LEAD_US, "outages": wish.outages}

    async def _load(self) -> None:
        wish = self._wish
        over = over_before([job.document for job in wish.jobs], wish.start_at)
        todo = [number for number in range(len(wish.jobs)) if number not in over]
        documents = [wish.jobs[number].document for number in todo]
        answers = await load(self._world, documents, wish.start_at, not_before=wish.start_at)
        refused = [
            (number, answer)
            for number, answer in zip(todo, answers, strict=True)
            if isinstance(answer, HourhandError)
        ]
        if refused:
            raise RefusedJobs(refused)
        for number, job in zip(todo, answers, strict=True):
            assert isinstance(job, Job)
            given = wish.jobs[number]
            duration = Duration(p50_us=given.p50_us, p99_us=given.p99_us)
            self._habits[job.id] = Habits(number=number, duration=duration, fails=given.fails)
            self._jobs[number] = job
            if isinstance(job.spec.timing, OnceTiming) and job.state is JobState.ACTIVE:
                self._once.append(job.spec.timing.at)
        self._ledger = Ledger(self._habits)

    def _expected_times(self) -> dict[int, Sequence[int]]:
        """The nominal times of each job by its schedule alone; those who follow others have theirs."""
        times: dict[int, Sequence[int]] = {}
        followers = []
        total = 0
        for number, job in self._jobs.items():
            if isinstance(job.spec.timing, AfterTiming):
                followers.append(number)
                continue
            times[number] = self._own_times(job)
            total += len(times[number])
            if total > MAX_EXPECTED:
                raise Invalid(f"more than {MAX_EXPECTED:,} runs; simulate fewer days or jobs")
        for number in sorted(followers, key=lambda one: self._jobs[one].id):  # parents have smaller ids
            job = self._jobs[number]
            assert isinstance(job.spec.timing, AfterTiming)
            parent = self._habits[job.spec.timing.parents[0]].number
            times[number] = times[parent]  # roots of a graph have the same times
        return times

    def _own_times(self, job: Job) -> Sequence[int]:
        last_at = self._wish.end_at - 1
        if job.state is not JobState.ACTIVE:
            return []
        if isinstance(job.spec.timing, OnceTiming):
            return [job.spec.timing.at] if job.spec.timing.at <= last_at else []
        assert job.spec.rule is not None
        since = first_since(job.spec, self._wish.start_at - 1)
        return job.spec.rule.times(since, min(job.until, last_at), MAX_EXPECTED + 1)

    def _lives(self, expected: Mapping[int, Sequence[int]]) -> dict[int, list[Life]]:
        """How each run goes if nothing gets in its way; where those who follow begin is not known beforehand."""
        parents = self._followed()
        found = {}
        for number, job in self._jobs.items():
            if not isinstance(job.spec.timing, AfterTiming):
                leads = isinstance(job.spec.timing, OnceTiming) or job.id in parents
                drawn = partial(self._script.drawn, job.id)
                found[number] = lives(job, expected[number], drawn, end_at=self._wish.end_at, leads=leads)
        return found

    async def _send_home(self, by_job: dict[int, list[Life]]) -> None:
        """Let the jobs that meet nobody take no part; the others begin in a world of their own."""
        followers = [job for job in self._jobs.values() if isinstance(job.spec.timing, AfterTiming)]
        if any(job.spec.concurrency is None for job in followers):
            return
        bounds = self._bounds()
        bounds["slots"] -= sum(job.spec.concurrency or 0 for job in followers)
        followed = self._followed()  # even one that never runs must be there for those who follow it
        quiet = {number for number in alone(by_job, **bounds) if self._jobs[number].id not in followed}
        if not quiet:
            return
        for number in quiet:
            self._home += by_job.pop(number)
        await self._world.close()
        self._world = self._new_world()
        rest = [job for number, job in self._jobs.items() if number not in quiet]
        await self._world.adopt(sorted(rest, key=lambda job: job.id))

    def _followed(self) -> set[int]:
        """The ids of jobs that others follow."""
        timings = [job.spec.timing for job in self._jobs.values()]
        return {one for timing in timings if isinstance(timing, AfterTiming) for one in timing.parents}

    # --- how it goes

    async def _live(self) -> int | None:
        """Let the days pass; answers where it stopped short of their end."""
        world, last_at = self._world, self._wish.end_at - 1
        try:
            await world.start()
            for begin_at, over_at in self._wish.outages:
                await world.run_until(min(begin_at, last_at))
                await world.stop()
                await world.run_until(min(over_at, last_at))
                await world.start()
            await world.run_until(last_at)
        except _Enough:
            return self._clock.now()
        return None

    async def _jump(self, now_at: int) -> None:
        """Before anything is planned: where all is at rest, let the clocks pass over quiet stretches."""
        if self._ledger.stepped > MAX_STEPPED:
            raise _Enough
        store = self._world.store
        next_at = None if self._world.in_hand else await store.next_clock_at(_SEGMENTS)
        quiet = () if next_at is None else self._quiet.quiet_from(next_at)
        if not quiet or not await self._is_empty(now_at):
            return
        until_at = quiet[-1].to_at + 1
        while clocks := await store.due_clocks(_SEGMENTS, until_at, _PAGE):
            await store.plan(
                [
                    ClockPlan(
                        clock_id=clock.id,
                        expected_next_at=clock.next_at,
                        new_next_at=rule_by_key(clock.rule_key).next(until_at - 1),
                        times=(),
                    )
                    for clock in clocks
                ]
            )
        for stretch in quiet:
            self._ledger.passed(stretch.runs)

    async def _is_empty(self, now_at: int) -> bool:
        backlog = await self._world.store.backlog()
        once = sum(at > now_at for at in self._once)
        return backlog.planned <= once and not (backlog.running or backlog.blocked or backlog.waiting)

    # --- what came of it

    async def _count_skips(self) -> None:
        """Skips are decided in the store, so they are read there."""
        query = RunQuery(from_at=0, to_at=1 << 60, states=(State.SKIPPED,), limit=_PAGE)
        while True:
            page = await self._world.store.list_runs(DEFAULT_TENANT, query)
            for run in page.runs:
                detail = (run.attempts[-1].detail or {}) if run.attempts else {}
                self._ledger.jobs[run.job_id].skipped[str(detail.get("reason", "other"))] += 1
            if page.next_before is None:
                break
            query = msgspec.structs.replace(query, before=page.next_before)
        if self._wish.outages:
            await self._count_missed()

    async def _count_missed(self) -> None:
        """Times that passed while nobody planned have no rows of their own."""
        for job in self._jobs.values():
            for gap in await self._world.store.missed(DEFAULT_TENANT, job.id):
                if gap.missed > gap.ran:
                    self._ledger.jobs[job.id].skipped["misfire"] += gap.missed - gap.ran
