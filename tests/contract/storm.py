"""Everybody at once: planners, workers, targets, sweepers and people on one store, from one seed.

Each actor does what a service would do, badly at times: workers die with runs in hand, report twice and
report late, planners plan what others have planned. What they see is checked on the way; the tables are
checked afterwards, when the storm is over and somebody has cleaned up.
"""

import asyncio
import random
from contextlib import suppress
from typing import Any

import msgspec

from hourhand.core.identity import SEGMENTS, RunKey
from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import FINAL, Event
from hourhand.core.model import (
    Delivery,
    Job,
    JobSpec,
    JobState,
    Misfire,
    MisfirePolicy,
    Overlap,
    Priority,
    Timing,
)
from hourhand.core.plan import plan_clock
from hourhand.core.report import Report, ReportOutcome, report_token
from hourhand.core.retry import Outcome, decide
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.core.schedule import parse_key
from hourhand.errors import Conflict, Overloaded
from hourhand.ports.reading import DeadQuery, RunQuery
from hourhand.ports.store import ClaimRequest, Cursor, JobEdit, LeaseLost, Store
from hourhand.services.reports import Receipt, Reports
from tests.contract.builders import draft, every, once, outcome, outcome_of_stray, spec
from tests.contract.checker import assert_covered, assert_sound
from tests.contract.harness import LEAD_US, Harness

POOLS = ("default", "other")
TENANTS = ("a", "b", "c")
HORIZON_US = 20 * SECOND_US
LEASE_US = 15 * SECOND_US
ENDINGS = [Event.SUCCEED] * 6 + [Event.RETRY] * 2 + [Event.EXHAUST, Event.SKIP, Event.CANCEL, Event.RELEASE]


class Storm:
    """One store, one seed, and what was seen."""

    def __init__(self, harness: Harness, seed: int, clock_jumps: bool = False) -> None:
        self._harness = harness
        self._random = random.Random(seed)
        self._clock_jumps = clock_jumps
        self._node = 0
        self._jobs: dict[int, Job] = {}  # as created
        self._fences: dict[RunKey, int] = {}
        self._accepted: list[ClaimedRun] = []  # by a target that will report
        self._raging = False

    @property
    def _store(self) -> Store:
        return self._harness.store

    async def rage(self, steps: int) -> None:
        """Let all actors loose for so many steps each."""
        people = [self._person(steps) for _ in range(3)]
        workers = [self._worker(steps) for _ in range(4)]
        others = [self._planner(steps), self._planner(steps), self._sweeper(steps), self._sweeper(steps)]
        others += [self._target(steps), self._target(steps)]
        self._raging = True
        await asyncio.gather(*people, *workers, *others, self._reader(steps))
        self._raging = False

    async def calm(self) -> None:
        """Everything is healthy again: what is due runs, what was lost is found, nothing waits."""
        leases = [node.lease_until for node in await self._store.nodes()]
        self._harness.set_now(max([self._now, *leases]) + 30 * SECOND_US)
        for run in self._accepted:
            with suppress(Conflict):
                await self._report(run, ReportOutcome.SUCCEEDED)
        for _ in range(40):
            node = await self._new_node()
            await self._plan()
            await self._sweep()
            await self._store.hand_on_slots(1_000)
            cursors: dict[int, Cursor] = {}
            for _ in range(1_000):
                runs, cursors = await self._claim(200, cursors, node)
                if not runs and not cursors:
                    break
                assert await self._settle([outcome(run, now_at=self._now) for run in runs]) == []
            self._harness.advance(2 * SECOND_US)

    async def check(self) -> None:
        """What must hold over everything that is stored."""
        tables = await self._harness.tables()
        limits: dict[int, int | None] = {}
        now_at = self._now
        for job in self._jobs.values():
            versions = await self._store.versions(job.tenant, job.id)
            bounds = [version.spec.concurrency for version in versions]
            limits[job.id] = None if None in bounds else max(bound or 0 for bound in bounds)
            assert_covered(tables, job.id, versions, now_at)
        assert_sound(tables, limits)
        late = [row for row in tables.planned if row.due_at < now_at - 60 * SECOND_US]
        assert not late, f"nobody ever took {late[:3]}"
        assert not [row for row in tables.running if row.due_at < now_at - 60 * SECOND_US], tables.running[:3]
        assert len(tables.blocked) <= len(tables.running) * 100

    # --- actors

    async def _planner(self, steps: int) -> None:
        for _ in range(steps):
            await self._breathe()
            await self._plan()

    async def _plan(self) -> None:
        now_at = self._now
        clocks = await self._store.due_clocks(range(SEGMENTS), now_at + HORIZON_US, 8)
        await self._breathe()
        plans = [
            plan_clock(
                clock.id,
                parse_key(clock.rule_key),
                clock.next_at,
                now_at,
                now_at + HORIZON_US,
                clock.misfires,
            )
            for clock in clocks
        ]
        await self._store.plan(plans)

    async def _worker(self, steps: int) -> None:
        node = await self._new_node()
        hand: list[ClaimedRun] = []
        cursors: dict[int, Cursor] = {}
        for _ in range(steps):
            await self._breathe()
            try:
                match self._random.choice(
                    [
                        "claim",
                        "claim",
                        "settle",
                        "settle",
                        "settle",
                        "renew",
                        "die",
                        "twice",
                        "held",
                        "accept",
                    ]
                ):
                    case "claim":
                        runs, cursors = await self._claim(self._random.choice([1, 3, 20]), cursors, node)
                        hand += runs
                    case "settle" if hand:
                        self._random.shuffle(hand)
                        count = self._random.randint(1, len(hand))
                        batch, hand = hand[:count], hand[count:]
                        await self._settle([self._ending(run) for run in batch])
                    case "accept" if hand:
                        run = hand.pop()
                        self._accepted.append(run)  # its report may be faster than this
                        await self._settle([outcome(run, Event.REPORT_LATER, now_at=self._now)])
                    case "twice" if hand:
                        run = hand.pop()
                        first = await self._settle([self._ending(run)])
                        again = self._ending(run)
                        await self._breathe()
                        assert await self._settle([again]) == [again], f"twice: {first} {again}"
                    case "renew":
                        await self._store.renew_node(node, "worker", str(node), LEASE_US)
                    case "held":
                        await self._store.cancel_asked(node)
                        held = {
                            (one.job_id, one.slot, one.fence) for one in await self._store.held_runs(node)
                        }
                        assert held <= {(run.job_id, run.slot, run.fence) for run in hand}
                    case "die":
                        if self._random.random() < 0.3:
                            await self._store.end_node(node)
                        node, hand = await self._new_node(), []
            except LeaseLost:
                late, hand = hand, []
                node = await self._new_node()
                await self._settle([self._ending(run) for run in late])  # perhaps refused, never doubled

    async def _target(self, steps: int) -> None:
        """Reports on what it accepted, at times twice, late, or on what was cancelled."""
        for _ in range(steps):
            await self._breathe()
            if not self._accepted:
                continue
            run = self._random.choice(self._accepted)
            what = self._random.choice(list(ReportOutcome))
            try:
                first = await self._report(run, what)
            except Conflict:
                continue
            if what is not ReportOutcome.PROGRESS:
                again = await self._report(run, what)
                assert (again.state, again.repeated) == (first.state, True), f"{run}: {first} {again}"

    async def _report(self, run: ClaimedRun, what: ReportOutcome) -> Receipt:
        key = await self._store.report_key(run.job_id)
        assert key is not None
        extend_us = self._random.choice([None, SECOND_US]) if what is ReportOutcome.PROGRESS else None
        report = Report(attempt=run.fence, outcome=what, extend_us=extend_us)
        token = report_token(key, run.run_id, run.fence)
        return await Reports(store=self._store).take(run.key, token, report)

    async def _sweeper(self, steps: int) -> None:
        cursors: dict[int, Cursor] = {}
        for _ in range(steps // 2):
            await self._breathe(8)
            cursors = (await self._store.judge_late(cursors, self._random.choice([3, 100]))).cursors
            await self._sweep()
            await self._store.hand_on_slots(3)

    async def _sweep(self) -> None:
        await self._store.tend_jobs(self._random.choice([1, 50]))
        strays = await self._store.stray_runs(10 * SECOND_US, self._random.choice([2, 100]))
        await self._breathe()
        settlements: list[Settlement] = []
        for stray in strays:
            if stray.spec is None or stray.cancel_asked:
                settlements.append(outcome_of_stray(stray, Event.CANCEL, now_at=self._now))
                continue
            verdict = decide(
                Outcome.LOST,
                stray.spec,
                job_id=stray.job_id,
                scheduled_at=stray.scheduled_at,
                tries=stray.tries,
                now_at=self._now,
            )
            settlements.append(
                outcome_of_stray(
                    stray, verdict.event, now_at=self._now, tries=verdict.tries, due_at=verdict.due_at
                )
            )
        await self._settle(settlements)

    async def _person(self, steps: int) -> None:
        for _ in range(steps):
            await self._breathe()
            if len(self._jobs) < 4 or self._random.random() < 0.1:
                await self._create()
            else:
                await self._act_on(self._random.choice(list(self._jobs.values())))

    async def _create(self) -> None:
        made = await self._store.create_jobs(
            [
                draft(
                    self._any_spec(),
                    tenant=self._random.choice(TENANTS),
                    paused=self._random.random() < 0.1,
                    paused_until=self._now + self._random.choice([1, 30]) * SECOND_US,
                )
                for _ in range(self._random.choice([1, 1, 3]))
            ]
        )
        self._jobs |= {job.id: job for job in made if isinstance(job, Job)}

    async def _act_on(self, job: Job) -> None:
        store, tenant, job_id = self._store, job.tenant, job.id
        acts = "rule pause pause resume resume policy policy lane bound run run run cancel requeue discard delete"
        match self._random.choice(acts.split()):
            case "rule":
                await self._change(job, timing=self._any_timing())
            case "pause":
                until = self._random.choice([None, self._now + self._random.randint(1, 40) * SECOND_US])
                await self._change(job, paused=True, paused_until=until)
            case "resume":
                await self._change(job, paused=False)
            case "policy":
                new = self._any_spec()
                fields = {
                    name: getattr(new, name) for name in ("concurrency", "overlap", "misfire", "delivery")
                }
                await self._change(job, **fields)
            case "lane":
                new = self._any_spec()
                await self._change(job, priority=new.priority, pool=new.pool, jitter_us=new.jitter_us)
            case "bound":
                new = self._any_spec()
                bounds = {name: getattr(new, name) for name in ("starts_at", "ends_at", "max_runs")}
                await self._change(job, **bounds)
            case "run":
                key = self._random.choice([None, "k1", "k2"])
                with suppress(Overloaded):
                    await store.add_run(tenant, job_id, key)
            case "cancel":
                for run in await store.job_runs(tenant, job_id, [], None, 5):
                    if run.state not in FINAL:
                        with suppress(Conflict):
                            await store.cancel_run(tenant, RunKey(job_id, run.scheduled_at))
            case "requeue" | "discard" as act:
                page = await store.dead_letters(tenant, DeadQuery(limit=5))
                keys = [RunKey(letter.job_id, letter.scheduled_at) for letter in page.letters]
                await (store.requeue(tenant, keys) if act == "requeue" else store.discard(tenant, keys))
            case "delete" if self._random.random() < 0.3:
                await store.delete_job(tenant, job_id, self._random.random() < 0.5)

    async def _reader(self, steps: int) -> None:
        for _ in range(steps):
            await self._breathe()
            if not self._jobs:
                continue
            job = self._random.choice(list(self._jobs.values()))
            for run in await self._store.job_runs(job.tenant, job.id, [], None, 10):
                assert run.job_id == job.id
            window = RunQuery(from_at=self._now - HOUR_US, to_at=self._now, limit=5)
            await self._store.list_runs(job.tenant, window)
            await self._store.get_job(job.tenant, job.id)
            await self._store.backlog()

    # --- what actors share

    @property
    def _now(self) -> int:
        return self._harness.now()

    async def _breathe(self, most: int = 3) -> None:
        """Let others go first, for a while, and let time pass."""
        if self._raging:
            self._harness.advance(self._random.choice([0, 1, 1_000, 30_000, 90_000, 300_000]))
            if self._random.random() < 0.002:
                self._harness.advance(200 * SECOND_US)  # nobody did anything for minutes
            if self._clock_jumps and self._random.random() < 0.01:
                self._harness.advance(self._random.choice([-HOUR_US, HOUR_US, -5 * SECOND_US]))
        for _ in range(self._random.randint(1, most)):
            await asyncio.sleep(0)

    async def _new_node(self) -> int:
        self._node += 1
        node = self._node
        await self._store.renew_node(node, "worker", str(node), LEASE_US)
        return node

    async def _claim(
        self, room: int, cursors: dict[int, Cursor], node: int
    ) -> tuple[list[ClaimedRun], dict[int, Cursor]]:
        claim = await self._store.claim(
            ClaimRequest(
                node_id=node,
                pools=POOLS,
                room=room,
                lead_us=LEAD_US,
                taken_before=self._random.randint(0, 99),
                cursors=cursors,
            )
        )
        assert len(claim.runs) <= room
        for run in claim.runs:
            assert run.due_at <= claim.now_at + LEAD_US, f"too early: {run}"
            if run.spec.delivery is Delivery.AT_MOST_ONCE:
                assert run.due_at <= claim.now_at, f"too early for at_most_once: {run}"
            assert run.fence > self._fences.get(run.key, 0), f"the fence did not grow: {run}"
            self._fences[run.key] = run.fence
        return claim.runs, claim.cursors

    async def _settle(self, settlements: list[Settlement]) -> list[Settlement]:
        return await self._store.settle("worker", settlements)

    def _ending(self, run: ClaimedRun) -> Settlement:
        event = self._random.choice(ENDINGS)
        due_at = self._now + self._random.choice([0, 1, 5]) * SECOND_US
        tries = run.tries + (event in (Event.RETRY, Event.EXHAUST))
        detail = {"error": self._random.choice(["one", "two"])}
        return outcome(run, event, now_at=self._now, tries=tries, due_at=due_at, detail=detail)

    async def _change(
        self, job: Job, paused: bool | None = None, paused_until: int | None = None, **fields: Any
    ) -> None:
        def decide(present: Job, now_at: int) -> JobEdit:
            stays = present.state is JobState.PAUSED if paused is None else paused
            new = msgspec.structs.replace(present.spec, **fields)
            return JobEdit(spec=new, paused=stays, paused_until=paused_until if stays else None)

        await self._store.change_job(job.tenant, job.id, decide)

    def _any_timing(self) -> Timing:
        draw = self._random
        if draw.random() < 0.2:
            return once(self._now + draw.randint(-5, 40) * SECOND_US)
        return every(draw.choice([1, 2, 5, 13]), draw.choice([0, 0, 500_000, 1]))

    def _any_spec(self) -> JobSpec:
        draw = self._random
        now_s = self._now // SECOND_US
        return spec(
            self._any_timing(),
            priority=draw.choice(list(Priority)),
            pool=draw.choice(POOLS),
            concurrency=draw.choice([1, 1, 2, 3, None]),
            overlap=draw.choice(list(Overlap)),
            misfire=Misfire(
                policy=draw.choice(list(MisfirePolicy)), grace_us=draw.choice([0, 5, 60]) * SECOND_US, limit=3
            ),
            jitter_us=draw.choice([0, 0, 3 * SECOND_US]),
            delivery=draw.choice([Delivery.AT_LEAST_ONCE] * 3 + [Delivery.AT_MOST_ONCE]),
            max_runs=draw.choice([None, None, None, 1, 30]),
            starts_at=draw.choice([None, None, None, (now_s + 10) * SECOND_US]),
            ends_at=draw.choice([None, None, None, (now_s + 40) * SECOND_US]),
        )
