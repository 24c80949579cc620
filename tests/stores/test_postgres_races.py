"""Many processes on one PostgreSQL: whatever the order, runs are in one place, slots and fences hold, nothing is lost.

Some races are let happen often, with several stores on one database; those with a narrow window are walked
step by step: an operation stops before or after a named statement until the other one has passed.
"""

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import cycle
from typing import Any

import asyncpg
import msgspec
import pytest

from hourhand.clock import ManualClock
from hourhand.core.identity import segment_of
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event, Phase, State
from hourhand.core.model import Job, JobSpec, Overlap
from hourhand.core.plan import plan_clock
from hourhand.core.run import ClaimedRun
from hourhand.core.schedule import parse_key
from hourhand.ports.store import ClaimRequest, Cursor, JobEdit, Refusal
from hourhand.stores.postgres import PostgresStore, claims, settling
from hourhand.stores.relational import letters, nodes
from hourhand.stores.relational.tx import Operation, Tx
from tests.contract.builders import draft, every, once, outcome, spec
from tests.contract.checker import assert_covered, assert_sound
from tests.contract.harness import KEEP_US, LEAD_US, START_AT, Tables
from tests.contract.postgres_harness import PostgresHarness, _tables
from tests.contract.scene import Scene, plan_due
from tests.contract.storm import Storm
from tests.servers.postgres_databases import PostgresDatabases, database_of

STORES = 3
DEADLINE_S = 60.0
LEASE_US = 3 * SECOND_US


class ManyStores(PostgresHarness):
    """Several stores on one database, taken in turn: each verb may meet the others' connections."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = ManualClock(START_AT)
        self.stores: list[PostgresStore] = []

    async def open(self) -> "ManyStores":
        self.stores = [
            await PostgresStore.open(
                self.url, clock=self.clock, lead_us=LEAD_US, keep_us=KEEP_US, pool_size=4
            )
            for _ in range(STORES)
        ]
        self._turns = cycle(self.stores)
        return self

    @property
    def store(self) -> PostgresStore:  # type: ignore[override]
        return next(self._turns)

    async def tables(self) -> Tables:
        return await self.stores[0]._engine.on_connection(_tables, bare=True)

    async def close(self) -> None:
        for store in self.stores:
            await store.close()


@pytest.fixture
async def many(migrated_url: str) -> AsyncIterator[ManyStores]:
    harness = await ManyStores(migrated_url).open()
    yield harness
    await harness.close()


@pytest.fixture
def scene(many: ManyStores) -> Scene:
    return Scene(many)


def deadlocks(server: PostgresDatabases, url: str) -> int:
    [row] = server.query("SELECT deadlocks FROM pg_stat_database WHERE datname = $1", database_of(url))
    return int(row[0])


# --- everybody at once


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_storm_over_several_stores(
    many: ManyStores, seed: int, postgres_server: PostgresDatabases
) -> None:
    storm = Storm(many, seed)
    await storm.rage(steps=40)
    await storm.calm()
    await storm.check()
    await many.close()  # which is when the server counts
    assert deadlocks(postgres_server, many.url) <= 2


async def test_several_processes_run_each_run_once(
    migrated_url: str, postgres_server: PostgresDatabases
) -> None:
    store = await PostgresStore.open(migrated_url)
    now_at = await store.now()
    singles = [draft(spec(once(now_at), concurrency=limit)) for limit in (1, 2, None) for _ in range(100)]
    shared = [draft(spec(every(3_600), concurrency=limit)) for limit in (1, 3)]
    made = await store.create_jobs([*singles, *shared])
    jobs = [job for job in made if isinstance(job, Job)]
    for job in jobs[-2:]:
        for _ in range(40):
            await store.add_run(job.tenant, job.id, None)
    workers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.stores.postgres_racer", migrated_url, str(number)
        )
        for number in (1, 2, 3)
    ]
    async with asyncio.timeout(DEADLINE_S):
        assert [await worker.wait() for worker in workers] == [0, 0, 0]
    tables = await store._engine.on_connection(_tables, bare=True)
    await store.close()
    assert_sound(tables)
    assert not tables.running
    assert not tables.blocked
    ended = Counter((line.job_id, line.scheduled_at) for line in tables.history)
    assert len(ended) == 300 + 80
    assert set(ended.values()) == {1}
    assert {line.state for line in tables.history} == {State.SUCCEEDED}
    assert deadlocks(postgres_server, migrated_url) <= 2


# --- slots


async def test_two_finishes_at_once_hand_on_both_slots(scene: Scene, many: ManyStores) -> None:
    node = await scene.worker()
    for _ in range(15):
        job = await scene.create(spec(every(3_600), concurrency=2))
        for _ in range(5):
            await scene.run_now(job)
        runs = await scene.take(node)
        assert len(runs) == 2
        tables = await scene.tables()
        assert len([row for row in tables.blocked if row.job_id == job.id]) == 3
        await asyncio.gather(*(scene.finish(run) for run in runs))
        tables = await scene.tables()
        ready = [row for row in tables.running if row.job_id == job.id]
        assert [row.phase for row in ready] == [Phase.READY] * 2
        assert len({row.slot for row in ready}) == 2
        await scene.delete(job)


@pytest.mark.parametrize("limit", [1, 2])
async def test_a_claim_that_finds_a_job_full_while_its_last_run_finishes(
    scene: Scene, many: ManyStores, limit: int
) -> None:
    """Whoever comes first: the next run is taken, ready, still planned, or blocked behind one that is there."""
    first, second = await scene.worker(), await scene.worker()
    job = await scene.create(spec(every(1), concurrency=limit, overlap=Overlap.QUEUE_ONE))
    await scene.plan(120 * SECOND_US)
    hand: list[ClaimedRun] = []
    ran = 0
    for _ in range(40):
        scene.pass_time(1)
        one, other, *_ = await asyncio.gather(
            scene.claim(second, 5), scene.claim(first, 5), *(scene.finish(run) for run in hand)
        )
        hand = [*one.runs, *other.runs]
        ran += len(hand)
        tables = await scene.tables()
        running = [row for row in tables.running if row.job_id == job.id]
        assert len(running) <= limit
        assert running or not tables.blocked, "a run waits for a slot that nobody holds"
    assert ran > 10
    assert_sound(await scene.tables(), {job.id: limit})


async def test_contended_slots_do_not_deadlock(
    scene: Scene, many: ManyStores, postgres_server: PostgresDatabases
) -> None:
    """Claims and finishes of the same jobs, in batches of any order."""
    limits = [1, 2, 3, None] * 2
    jobs = [await scene.create(spec(every(3_600), concurrency=limit)) for limit in limits]
    for job in jobs:
        for _ in range(15):
            await scene.run_now(job)
    left = {(row.job_id, row.scheduled_at) for row in (await scene.tables()).planned}
    assert len(left) == 15 * len(jobs)

    async def work(node: int) -> None:
        draw = random.Random(node)
        store = many.stores[node % STORES]
        while left:
            claim = await store.claim(request(node))
            settlements = []
            for run in draw.sample(claim.runs, len(claim.runs)):
                event = draw.choice([Event.SUCCEED, Event.SUCCEED, Event.RETRY, Event.RELEASE])
                settlements.append(outcome(run, event, now_at=claim.now_at, due_at=claim.now_at))
            assert await store.settle("w", settlements) == []
            done = (s for s in settlements if s.event is Event.SUCCEED)
            left.difference_update((s.job_id, s.scheduled_at) for s in done)

    workers = [await scene.worker() for _ in range(6)]
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*map(work, workers))
    tables = await scene.tables()
    assert_sound(tables)
    assert not tables.planned
    assert not tables.blocked
    assert not tables.running
    await many.close()  # which is when the server counts
    assert deadlocks(postgres_server, many.url) == 0


# --- step by step


class Stepping:
    """A transaction that stops at named statements."""

    def __init__(self, tx: Tx, stops: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
        self._tx = tx
        self._stops = dict(stops)

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._tx, name)
        if name not in ("run", "one", "all", "insert"):
            return verb

        async def step(statement: str, *arguments: Any) -> Any:
            if stop := self._stops.pop(f"before {statement}", None):
                await stop()
            answer = await verb(statement, *arguments)
            if stop := self._stops.pop(f"after {statement}", None):
                await stop()
            return answer

        return step


def stepping(operation: Operation[Any], **stops: Callable[[], Awaitable[None]]) -> Operation[Any]:
    """An operation whose first try stops at `before_…` and `after_…` statements."""
    named = {name.replace("_", " ", 1): stop for name, stop in stops.items()}

    async def do(tx: Tx) -> Any:
        own = dict(named)
        named.clear()
        return await operation(Stepping(tx, own))  # type: ignore[arg-type]

    return do


async def full_job(scene: Scene, **fields: Any) -> tuple[Job, int, Any]:
    """A job with one slot, a run in it, and a worker that holds it."""
    node = await scene.worker()
    job = await scene.create(spec(every(3_600), concurrency=1, **fields))
    await scene.run_now(job)
    [run] = await scene.take(node)
    return job, node, run


def request(node: int) -> ClaimRequest:
    return ClaimRequest(node_id=node, pools=("default",), room=10, lead_us=LEAD_US)


async def test_a_slot_that_changes_hands_while_a_claim_looks_strands_nobody(
    scene: Scene, many: ManyStores
) -> None:
    """It is handed on before the claim reads it, and free again before the claim commits what it read."""
    job, node, run = await full_job(scene)
    await scene.run_now(job)
    assert await scene.take(node) == []  # it waits in blocked
    later = await scene.run_now(job)

    freed, commit = asyncio.Event(), asyncio.Event()

    async def finish(tx: Tx) -> None:
        await settling.settle(tx, "w", [outcome(run, now_at=scene.now)])  # hands the slot to the blocked run
        freed.set()
        await commit.wait()

    async def slot_is_being_freed() -> None:
        nonlocal finishing
        finishing = asyncio.create_task(many.stores[1]._engine.write(finish))
        await freed.wait()

    async def slot_is_handed_on() -> None:
        assert finishing is not None
        commit.set()
        await finishing

    async def slot_is_free_again() -> None:
        [next_run] = (await many.stores[2].claim(request(node))).runs
        await many.stores[2].settle("w", [outcome(next_run, now_at=scene.now)])

    finishing: asyncio.Task[None] | None = None
    first = many.stores[0]._engine.write(
        stepping(
            lambda tx: claims.claim(tx, request(node)),
            before_hold_free_slots=slot_is_being_freed,
            after_hold_free_slots=slot_is_handed_on,
            after_slots_of=slot_is_free_again,
        )
    )
    claim = await asyncio.wait_for(first, DEADLINE_S)
    assert finishing is not None
    tables = await scene.tables()
    assert tables.running or not tables.blocked, "a run waits for a slot that nobody holds"
    runs = claim.runs or await scene.take(node)
    assert [one.key for one in runs] == [later]


@pytest.mark.parametrize("limit", [1, 2])
async def test_a_lock_on_an_earlier_run_does_not_let_a_later_one_go_ahead_of_it(
    scene: Scene, many: ManyStores, limit: int
) -> None:
    """A claim that walks ahead locks a page of runs and takes as many as it has room for."""
    node = await scene.worker()
    other = await scene.create(spec(once(START_AT + SECOND_US // 2)))
    job = await scene.create(spec(every(1), concurrency=limit))
    await scene.plan()
    [lane] = {row.lane for row in (await scene.tables()).planned}
    looks, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        looks.set()
        await go_on.wait()

    little = ClaimRequest(
        node_id=node,
        pools=("default",),
        room=1,
        lead_us=SECOND_US,  # so that it locks the first run of the job and not the second
        cursors={lane: Cursor(START_AT, 0, 0)},
    )
    claiming = asyncio.create_task(
        many.stores[0]._engine.write(stepping(lambda tx: claims.claim(tx, little), after_take_planned=wait))
    )
    await asyncio.wait_for(looks.wait(), DEADLINE_S)
    beside = await many.stores[1].claim(request(node))
    go_on.set()
    first = await asyncio.wait_for(claiming, DEADLINE_S)
    assert [run.job_id for run in first.runs] == [other.id]
    assert beside.runs == [], "a later run was taken ahead of one that is locked"
    runs = await scene.take(node)
    assert {run.job_id for run in runs} == {job.id}
    assert [run.scheduled_at for run in runs] == [START_AT + n * SECOND_US for n in (1, 2)][:limit]


async def test_a_job_that_is_deleted_while_a_claim_blocks_its_run_leaves_nothing_waiting(
    scene: Scene, many: ManyStores
) -> None:
    job, node, _ = await full_job(scene)
    manual = await scene.run_now(job)
    blocked, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        blocked.set()
        await go_on.wait()

    claiming = asyncio.create_task(
        many.stores[0]._engine.write(
            stepping(lambda tx: claims.claim(tx, request(node)), after_add_blocked=wait)
        )
    )
    await asyncio.wait_for(blocked.wait(), DEADLINE_S)
    deleting = asyncio.create_task(many.stores[1].delete_job(job.tenant, job.id, cancel_running=False))
    await asyncio.wait([deleting], timeout=0.3)  # as far as it gets
    go_on.set()
    await asyncio.wait_for(asyncio.gather(claiming, deleting), DEADLINE_S)
    tables = await scene.tables()
    assert tables.blocked == []
    assert [(line.scheduled_at, line.state) for line in tables.history if line.state is State.CANCELLED] == [
        (manual.scheduled_at, State.CANCELLED)
    ]


async def test_a_cancel_is_not_lost_between_two_attempts(scene: Scene, many: ManyStores) -> None:
    job, _, run = await full_job(scene)

    async def attempt_fails() -> None:
        await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now + SECOND_US)

    cancelling = many.stores[0]._engine.write(
        stepping(lambda tx: letters.cancel_run(tx, job.tenant, run.key), before_ask_cancel_run=attempt_fails)
    )
    view = await asyncio.wait_for(cancelling, DEADLINE_S)
    assert view.state is State.CANCELLED
    assert (await scene.tables()).running == []


async def test_a_lease_that_is_renewed_at_its_last_moment_keeps_its_segments_to_itself(
    scene: Scene, many: ManyStores
) -> None:
    await many.stores[0].hold_segments(1, "scheduler", "late", LEASE_US)
    renewed, go_on = asyncio.Event(), asyncio.Event()

    async def renew(tx: Tx) -> Mapping[int, int]:
        held = await nodes.hold_segments(tx, 64, 1, "scheduler", "late", LEASE_US)
        renewed.set()
        await go_on.wait()
        return held

    scene.harness.advance(LEASE_US - 1)
    late = asyncio.create_task(many.stores[0]._engine.write(renew))
    await asyncio.wait_for(renewed.wait(), DEADLINE_S)
    scene.harness.advance(1)  # for everybody else the lease is over: the renewal is not committed
    other = await asyncio.wait_for(
        many.stores[1].hold_segments(2, "scheduler", "other", LEASE_US), DEADLINE_S
    )
    go_on.set()
    assert not set(await late) & set(other)


# --- edits, clocks, keys


@pytest.mark.parametrize("change", ["pause", "delete", "rule", "end"])
async def test_nothing_after_the_effective_time_of_a_change_runs(
    scene: Scene, many: ManyStores, change: str
) -> None:
    node = await scene.worker()
    for number in range(8):
        job = await scene.create(spec(every(1), concurrency=None))
        await scene.plan()
        scene.harness.advance(700_000 + number * 37_000)
        changing: dict[str, Callable[[], Awaitable[Any]]] = {
            "pause": lambda job=job: scene.pause(job),  # type: ignore[misc]
            "delete": lambda job=job: scene.delete(job),  # type: ignore[misc]
            "rule": lambda job=job: scene.change(job, timing=every(7)),  # type: ignore[misc]
            "end": lambda job=job: scene.change(job, ends_at=scene.now + SECOND_US),  # type: ignore[misc]
        }
        changed, *claims_made = await asyncio.gather(
            changing[change](), *(scene.claim(node, 3) for _ in range(4))
        )
        await scene.plan()
        runs = [run for claim in claims_made for run in claim.runs]
        assert [run for run in runs if run.scheduled_at > changed.effective_from] == []
        versions = await scene.store.versions(job.tenant, job.id)
        tables = await scene.tables()
        assert_covered(tables, job.id, versions, scene.now + 10 * SECOND_US)
        assert_sound(tables)
        if change != "delete":
            await scene.delete(job)
        await scene.finish(run for run in runs if run.job_id == job.id)


async def test_jobs_that_join_a_clock_while_it_is_planned_miss_nothing_and_get_nothing_twice(
    scene: Scene, many: ManyStores
) -> None:
    first = await scene.create(spec(every(1)))
    segment = segment_of(first.id)
    ids = [n for n in range(first.id + 1, first.id + 10_000) if segment_of(n) == segment][:40]
    joined: list[Job] = [first]

    async def join(few: list[int]) -> None:
        for one in few:
            joined.append(await scene.create(first.spec, id=one))
            scene.harness.advance(130_000)

    async def plan() -> None:
        for _ in range(12):
            await plan_due(scene.store, scene.now, scene.now + 20 * SECOND_US, segments=[segment])
            await asyncio.sleep(0)

    await asyncio.gather(*(join(ids[part::4]) for part in range(4)), plan(), plan())
    await scene.plan()
    tables = await scene.tables()
    places = Counter((row.job_id, row.scheduled_at) for row in tables.planned)
    assert set(places.values()) == {1}
    for job in joined:
        versions = await scene.store.versions(job.tenant, job.id)
        assert_covered(tables, job.id, versions, scene.now + 60 * SECOND_US)


async def test_of_creators_with_the_same_key_one_wins(many: ManyStores) -> None:
    for number in range(5):
        key = f"key-{number}"
        answers = await asyncio.gather(
            *(
                store.create_jobs([draft(spec(every(5), key=key)), draft(spec(every(6 + number)))])
                for store in many.stores * 2
            )
        )
        first = [answer[0] for answer in answers]
        assert sum(isinstance(answer, Job) for answer in first) == 1
        assert first.count(Refusal.KEY_TAKEN) == len(first) - 1
        assert all(isinstance(answer[1], Job) for answer in answers)


async def test_two_owners_plan_the_same_clocks_once(scene: Scene, many: ManyStores) -> None:
    jobs = [await scene.create(spec(every(seconds))) for seconds in (1, 2, 3, 5)]
    horizon_at = scene.now + 60 * SECOND_US
    clocks = await scene.store.due_clocks(list(range(64)), horizon_at, 100)
    plans = [
        plan_clock(clock.id, parse_key(clock.rule_key), clock.next_at, scene.now, horizon_at, ())
        for clock in clocks
    ]
    counts = await asyncio.gather(
        *(store.plan(order) for store in many.stores for order in (plans, plans[::-1]))
    )
    assert sum(count > 0 for count in counts) >= 1
    tables = await scene.tables()
    places = Counter((row.job_id, row.scheduled_at) for row in tables.planned)
    assert set(places.values()) == {1}
    assert len(places) == sum(counts)  # a new clock begins with its first time, which nobody has planned
    for job in jobs:
        assert_covered(tables, job.id, await scene.store.versions(job.tenant, job.id), horizon_at - SECOND_US)


async def test_a_dead_letter_is_requeued_or_discarded_by_one(scene: Scene, many: ManyStores) -> None:
    node = await scene.worker()
    for _ in range(6):
        job = await scene.create(spec(every(3_600)))
        await scene.run_now(job)
        [run] = await scene.take(node)
        key = await scene.kill(run)
        answers = await asyncio.gather(
            *(store.requeue(job.tenant, [key]) for store in many.stores),
            *(store.discard(job.tenant, [key]) for store in many.stores),
        )
        assert sum(map(len, answers)) == 1
        assert_sound(await scene.tables())
        await scene.delete(job)


def edit(spec_: JobSpec) -> JobEdit:
    return JobEdit(spec=spec_, paused=False)


async def test_edits_at_once_make_a_version_each(scene: Scene, many: ManyStores) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    began_s = time.monotonic()
    await asyncio.gather(
        *(
            store.change_job(
                job.tenant,
                job.id,
                lambda present, _, seconds=seconds: edit(  # type: ignore[misc]
                    msgspec.structs.replace(present.spec, timing=every(seconds))
                ),
            )
            for seconds, store in zip((2, 3, 4, 5, 6, 7), many.stores * 2, strict=True)
        )
    )
    assert time.monotonic() - began_s < DEADLINE_S
    versions = await scene.store.versions(job.tenant, job.id)
    assert [version.version for version in versions] == [1, 2, 3, 4, 5, 6, 7]
    await scene.plan()
    assert_covered(await scene.tables(), job.id, versions, scene.now + 50 * SECOND_US)


async def test_a_run_that_is_edited_while_a_claim_takes_it_is_in_one_place(
    scene: Scene, many: ManyStores
) -> None:
    """What a claim locks may be newer than what its statement sees, and must leave the plan all the same.

    The edit is committed a little later in each round, so that some find the claim between the two.
    """
    node = await scene.worker()
    editor: Any = await asyncpg.connect(many.url)
    took_in_hand = 0
    for round_ in range(16):
        await scene.store.create_jobs(
            [draft(spec(once(START_AT)), id=10_000 * (round_ + 1) + n) for n in range(3_000)]
        )
        await editor.execute("BEGIN; UPDATE planned SET tries = 0 WHERE job_id % 10000 >= 100")
        commit = f"SELECT pg_sleep({round_} * 0.0003); COMMIT"
        committing: asyncio.Task[None] | None = None

        async def let_go(commit: str = commit) -> None:
            nonlocal committing
            committing = asyncio.create_task(editor.execute(commit))

        claiming = stepping(
            lambda tx: claims.claim(tx, msgspec.structs.replace(request(node), room=3_000)),
            before_take_planned=let_go,
        )
        claim = await many.stores[0]._engine.write(claiming)
        assert committing is not None
        await committing
        tables = await scene.tables()
        planned = {(row.job_id, row.scheduled_at) for row in tables.planned}
        twice = [run for run in tables.running if (run.job_id, run.scheduled_at) in planned]
        assert not twice, "a run that was taken is still planned"
        took_in_hand += len(claim.runs) > 100
        await scene.finish(claim.runs)
        await scene.finish(await scene.take(node, 3_000))
    await editor.close()
    assert took_in_hand, "no edit came in time to be taken"
