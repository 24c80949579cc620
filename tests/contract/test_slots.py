"""Slots: a job's concurrency limit holds always, and the overlap policy says what happens when they are taken."""

import pytest

from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import Event, Phase, State
from hourhand.core.model import MAX_QUEUED, Misfire, MisfirePolicy, Overlap, Trigger
from hourhand.core.run import ClaimedRun
from tests.contract.builders import every, once, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import START_AT, at
from tests.contract.scene import Scene, reason


def times(runs: list[ClaimedRun]) -> list[int]:
    return sorted(round((run.scheduled_at - START_AT) / SECOND_US) for run in runs)


@pytest.mark.parametrize(("limit", "taken"), [(1, 1), (2, 2), (3, 3), (1_000, 10), (None, 10)])
async def test_no_more_run_at_once_than_the_limit(scene: Scene, limit: int | None, taken: int) -> None:
    job = await scene.create(spec(every(1), concurrency=limit, overlap=Overlap.QUEUE))
    await scene.plan(20 * SECOND_US)
    scene.go_to(at(10))
    runs = await scene.take(await scene.worker(), lead_us=0)
    assert times(runs) == list(range(1, taken + 1))
    assert len({run.slot for run in runs}) == taken
    assert_sound(await scene.tables(), {job.id: limit})


async def test_a_slot_is_held_from_the_claim_to_the_end_retries_included(scene: Scene) -> None:
    job, node, run = await scene.busy(spec(every(1), overlap=Overlap.QUEUE))
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(5))
    scene.go_to(at(3))
    assert await scene.take(node, lead_us=0) == []
    scene.go_to(at(5))
    [again] = await scene.take(node, lead_us=0)
    assert (again.key, again.slot, again.fence) == (run.key, run.slot, 2)
    await scene.finish(again, Event.RELEASE)
    [third] = await scene.take(node, lead_us=0)
    assert (third.key, third.fence) == (run.key, 3)
    await scene.finish(third)
    assert times(await scene.take(node, lead_us=0)) == [2]
    assert_sound(await scene.tables(), {job.id: 1})


async def test_a_run_within_the_lead_waits_for_its_slot_without_a_verdict(scene: Scene) -> None:
    """Only when it is due is a job full; until then the one before it may end."""
    job = await scene.create(spec(every(1), overlap=Overlap.SKIP))
    await scene.plan()
    node = await scene.worker()
    scene.go_to(at(1))
    [run] = await scene.take(node)
    scene.go_to(at(2) - 1)
    assert await scene.take(node) == []
    assert await scene.state(job, at(2)) is State.PENDING
    await scene.finish(run)
    assert times(await scene.take(node)) == [2]


async def test_a_slot_goes_to_the_oldest_that_waits(scene: Scene) -> None:
    job, node, run = await scene.busy(spec(every(1), overlap=Overlap.QUEUE))
    scene.go_to(at(4))
    assert await scene.take(node, lead_us=0) == []
    assert sorted(row.scheduled_at for row in (await scene.tables()).blocked) == [at(2), at(3), at(4)]
    assert (await scene.view(job, at(2))).waits_for_slot
    order = []
    for _ in range(3):
        await scene.finish(run)
        [row] = (await scene.tables()).running
        assert (row.phase, row.node_id) == (Phase.READY, None)
        [run] = await scene.take(node, lead_us=0)
        order.append(run.scheduled_at)
    assert order == [at(2), at(3), at(4)]


async def test_scheduled_runs_go_before_manual_ones(scene: Scene) -> None:
    job = await scene.create(spec(every(2), overlap=Overlap.QUEUE))
    await scene.plan()
    node = await scene.worker()
    scene.go_to(at(2))
    [run] = await scene.take(node, lead_us=0)
    scene.go_to(at(3))
    manual = await scene.run_now(job)
    scene.go_to(at(4))
    assert await scene.take(node, lead_us=0) == []
    order = []
    for _ in range(2):
        await scene.finish(run)
        [run] = await scene.take(node, lead_us=0)
        order.append((run.scheduled_at, run.trigger))
    assert order == [(at(4), Trigger.SCHEDULED), (manual.scheduled_at, Trigger.MANUAL)]


# --- a limit that changes


async def test_a_lowered_limit_drains(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=3, overlap=Overlap.QUEUE))
    await scene.plan()
    node = await scene.worker()
    scene.go_to(at(3))
    runs = sorted(await scene.take(node, lead_us=0), key=lambda run: run.slot)
    assert len(runs) == 3
    await scene.change(job, concurrency=1)
    scene.go_to(at(5))
    await scene.finish(runs[0])  # the lowest slot is free, but two are still held
    assert await scene.take(node, lead_us=0) == []
    await scene.finish(runs[1])
    assert await scene.take(node, lead_us=0) == []
    assert len((await scene.tables()).running) == 1
    await scene.finish(runs[2])
    assert times(await scene.take(node, lead_us=0)) == [4]
    assert_sound(await scene.tables(), {job.id: 1})


@pytest.mark.parametrize("limit", [1, 2])
async def test_a_limit_after_none_counts_what_runs(scene: Scene, limit: int) -> None:
    job = await scene.create(spec(every(1), concurrency=None, overlap=Overlap.QUEUE))
    await scene.plan()
    node = await scene.worker()
    scene.go_to(at(3))
    runs = await scene.take(node, lead_us=0)
    await scene.change(job, concurrency=limit)
    scene.go_to(at(6))
    assert await scene.take(node, lead_us=0) == []
    await scene.finish(runs[:2])
    assert len(await scene.take(node, lead_us=0)) == limit - 1
    await scene.finish(runs[2])
    assert len(await scene.take(node, lead_us=0)) == 1
    assert_sound(await scene.tables(), {job.id: limit})


@pytest.mark.parametrize("limit", [3, None])
async def test_a_raised_limit_lets_those_that_wait_go(scene: Scene, limit: int | None) -> None:
    job = await scene.create(spec(every(1), concurrency=1, overlap=Overlap.QUEUE))
    await scene.plan()
    node = await scene.worker()
    scene.go_to(at(1))
    await scene.take(node, lead_us=0)
    scene.go_to(at(5))
    assert await scene.take(node, lead_us=0) == []
    await scene.change(job, concurrency=limit)
    assert await scene.store.hand_on_slots(100) == (4 if limit is None else 2)
    assert times(await scene.take(node, lead_us=0)) == ([2, 3, 4, 5] if limit is None else [2, 3])
    assert await scene.store.hand_on_slots(100) == 0


# --- overlap


async def test_queue_one_keeps_the_newest(scene: Scene) -> None:
    job, node, run = await scene.busy(spec(every(1)))
    scene.go_to(at(2))
    assert await scene.take(node, lead_us=0) == []
    scene.go_to(at(4))
    assert await scene.take(node, lead_us=0) == []
    for seconds in (2, 3):
        view = await scene.view(job, at(seconds))
        assert (view.state, reason(view)) == (State.SKIPPED, "overlap")
    assert (await scene.view(job, at(4))).waits_for_slot
    await scene.finish(run)
    assert times(await scene.take(node, lead_us=0)) == [4]


async def test_queue_keeps_all_up_to_a_hundred(scene: Scene) -> None:
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE, misfire=Misfire(grace_us=HOUR_US)))
    await scene.plan(200 * SECOND_US)
    node = await scene.worker()
    scene.go_to(at(150))
    assert times(await scene.take(node, lead_us=0)) == [1]
    assert len((await scene.tables()).blocked) == MAX_QUEUED == 100
    assert (await scene.view(job, at(101))).waits_for_slot
    view = await scene.view(job, at(102))
    assert (view.state, reason(view)) == (State.SKIPPED, "overlap")


async def test_a_run_that_lost_its_slot_to_another_of_its_job_has_not_been_claimed(scene: Scene) -> None:
    await scene.create(spec(every(1), overlap=Overlap.QUEUE))
    await scene.plan()
    node = await scene.worker()
    scene.go_to(at(3))
    [first] = await scene.take(node, lead_us=0)  # all three were looked at together
    assert [row.fence for row in (await scene.tables()).blocked] == [0, 0]
    await scene.finish(first)
    [second] = await scene.take(node, lead_us=0)
    assert (first.fence, second.fence) == (1, 1)


async def test_skip_keeps_none(scene: Scene) -> None:
    job, node, run = await scene.busy(spec(every(1), overlap=Overlap.SKIP))
    scene.go_to(at(3))
    assert await scene.take(node, lead_us=0) == []
    assert [await scene.state(job, at(n)) for n in (2, 3)] == [State.SKIPPED] * 2
    await scene.finish(run)
    scene.go_to(at(4))
    assert times(await scene.take(node, lead_us=0)) == [4]


async def test_cancel_running_asks_the_worker_and_waits_for_it(scene: Scene) -> None:
    job, node, run = await scene.busy(spec(every(1), overlap=Overlap.CANCEL_RUNNING))
    scene.go_to(at(3))
    assert await scene.take(node, lead_us=0) == []
    [asked] = await scene.store.cancel_asked(node)
    assert (asked.scheduled_at, asked.fence) == (run.scheduled_at, run.fence)
    assert await scene.state(job, at(2)) is State.SKIPPED
    await scene.finish(run, Event.CANCEL)
    assert times(await scene.take(node, lead_us=0)) == [3]
    assert await scene.store.cancel_asked(node) == []


@pytest.mark.parametrize("event", [Event.RETRY, Event.REPORT_LATER])
async def test_cancel_running_ends_at_once_what_no_worker_executes(scene: Scene, event: Event) -> None:
    job, node, run = await scene.busy(spec(every(1), overlap=Overlap.CANCEL_RUNNING))
    await scene.finish(run, event, tries=1, due_at=at(1) + HOUR_US)
    scene.go_to(at(2))
    assert times(await scene.take(node, lead_us=0)) == [2]
    view = await scene.view(job, at(1))
    assert (view.state, reason(view)) == (State.CANCELLED, "overlap")
    assert_sound(await scene.tables(), {job.id: 1})


@pytest.mark.parametrize("overlap", list(Overlap))
async def test_what_is_not_scheduled_waits_and_is_never_skipped(scene: Scene, overlap: Overlap) -> None:
    job = await scene.create(spec(every(3_600), overlap=overlap))
    node = await scene.worker()
    manual = []
    for _ in range(4):
        manual.append(await scene.run_now(job))
        scene.pass_time(0.1)
    [run] = await scene.take(node)
    assert await scene.store.cancel_asked(node) == []
    assert len((await scene.tables()).blocked) == 3
    order = [run.key]
    for _ in range(3):
        await scene.finish(run)
        [run] = await scene.take(node)
        order.append(run.key)
    assert order == manual


@pytest.mark.parametrize("claims_apart", [1, 5])
async def test_of_missed_runs_that_wait_the_newest_are_made_up_for(scene: Scene, claims_apart: int) -> None:
    misfire = Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=0, limit=3)
    job, node, run = await scene.busy(spec(every(1), misfire=misfire))
    last = 11
    for second in range(2, last + 1):
        scene.go_to(at(second) + 500_000)
        await scene.plan()
        if second % claims_apart == 1 % claims_apart:
            for _ in range(2):  # late first, and then in the background
                assert await scene.take(node, lead_us=0) == []
    waiting = [row.scheduled_at for row in (await scene.tables()).blocked]
    assert sorted(waiting) == [at(9), at(10), at(11)]
    for second in range(2, 9):
        view = await scene.view(job, at(second))
        assert (view.state, reason(view)) == (State.SKIPPED, "misfire")
    order = []
    for _ in range(3):
        await scene.finish(run)
        [run] = await scene.take(node, lead_us=0)
        order += times([run])
    assert order == [9, 10, 11]
    assert_sound(await scene.tables(), {job.id: 1})


@pytest.mark.parametrize("overlap", list(Overlap))
@pytest.mark.parametrize("limit", [1, 2])
async def test_a_herd_of_one_job_in_one_claim_is_judged_in_order(
    scene: Scene, overlap: Overlap, limit: int
) -> None:
    job = await scene.create(
        spec(every(1), overlap=overlap, concurrency=limit, misfire=Misfire(grace_us=HOUR_US))
    )
    await scene.plan()
    scene.go_to(at(10))
    assert times(await scene.take(await scene.worker(), lead_us=0)) == list(range(1, limit + 1))
    tables = await scene.tables()
    assert_sound(tables, {job.id: limit})
    waiting = [round((row.scheduled_at - START_AT) / SECOND_US) for row in tables.blocked]
    assert (
        sorted(waiting)
        == {
            Overlap.SKIP: [],
            Overlap.QUEUE: list(range(limit + 1, 11)),
            Overlap.QUEUE_ONE: [10],
            Overlap.CANCEL_RUNNING: [10],
        }[overlap]
    )
    assert len(tables.history) == 10 - limit - len(waiting)


# --- misfire at the claim


@pytest.mark.parametrize(
    ("policy", "runs", "skipped"),
    [
        (MisfirePolicy.RUN_ONCE, [4, 5, 6], [1, 2, 3]),  # within the grace of 2.5 minutes: 4, 5, 6
        (MisfirePolicy.SKIP, [4, 5, 6], [1, 2, 3]),
        (MisfirePolicy.CATCH_UP, [2, 3, 4, 5, 6], [1]),
    ],
)
@pytest.mark.parametrize("by", ["claim", "sweeper"])
async def test_what_nobody_claimed_within_the_grace_is_for_the_policy(
    scene: Scene, policy: MisfirePolicy, runs: list[int], skipped: list[int], by: str
) -> None:
    misfire = Misfire(policy=policy, grace_us=150 * SECOND_US, limit=5)
    job = await scene.create(spec(every(60), misfire=misfire, concurrency=None))
    await scene.plan(600 * SECOND_US)
    scene.go_to(at(6.25 * 60))
    if by == "sweeper":
        assert (await scene.store.judge_late({}, 100)).cursors == {}
    taken = await scene.take(await scene.worker(), lead_us=0)
    assert [n // 60 for n in times(taken)] == runs
    for minute in skipped:
        view = await scene.view(job, at(60 * minute))
        assert (view.state, reason(view)) == (State.SKIPPED, "misfire")
    caught_up = [n // 60 for n in times([run for run in taken if run.trigger is Trigger.CATCH_UP])]
    assert caught_up == ([2, 3] if policy is MisfirePolicy.CATCH_UP else [])


async def test_run_once_runs_the_newest_however_late(scene: Scene) -> None:
    job = await scene.create(spec(every(3_600), misfire=Misfire(grace_us=SECOND_US)))
    await scene.plan(2 * HOUR_US + 1)
    scene.go_to(at(2 * 3_600 + 3_000))
    await scene.store.judge_late({}, 100)
    [run] = await scene.take(await scene.worker())
    assert run.scheduled_at == at(2 * 3_600)
    assert await scene.state(job, at(3_600)) is State.SKIPPED


@pytest.mark.parametrize("change", ["rule", "pause"])
async def test_late_runs_of_an_earlier_version_are_judged_by_that_version(scene: Scene, change: str) -> None:
    """The rule they came from no longer says what came after them."""
    job = await scene.create(spec(every(60), misfire=Misfire(grace_us=SECOND_US), concurrency=None))
    await scene.plan(180 * SECOND_US)
    scene.go_to(at(130))
    if change == "rule":
        await scene.change(job, timing=every(1))
    else:
        await scene.pause(job)
    scene.go_to(at(131.5))
    runs = await scene.take(await scene.worker(), lead_us=0)
    assert times(runs) == [120]
    assert await scene.state(job, at(60)) is State.SKIPPED


async def test_a_skipped_one_time_job_is_not_run_late(scene: Scene) -> None:
    skip = Misfire(policy=MisfirePolicy.SKIP, grace_us=10 * SECOND_US)
    job = await scene.create(spec(once(at(5)), misfire=skip))
    kept = await scene.create(spec(once(at(5))))
    scene.go_to(at(500))
    [run] = await scene.take(await scene.worker())
    assert run.job_id == kept.id
    assert await scene.state(job, at(5)) is State.SKIPPED


async def test_waiting_for_a_slot_is_not_a_misfire(scene: Scene) -> None:
    job = await scene.create(spec(every(60), misfire=Misfire(policy=MisfirePolicy.SKIP, grace_us=SECOND_US)))
    await scene.plan(130 * SECOND_US)
    node = await scene.worker()
    scene.go_to(at(60))
    [run] = await scene.take(node)
    scene.go_to(at(120))
    assert await scene.take(node) == []
    scene.go_to(at(600))
    await scene.store.judge_late({}, 100)
    assert (await scene.view(job, at(120))).waits_for_slot
    await scene.finish(run)
    assert times(await scene.take(node)) == [120]


async def test_manual_and_requeued_runs_are_never_too_late(scene: Scene) -> None:
    job = await scene.create(spec(every(3_600), misfire=Misfire(policy=MisfirePolicy.SKIP, grace_us=0)))
    manual = await scene.run_now(job)
    scene.pass_time(1_000)
    await scene.store.judge_late({}, 100)
    node = await scene.worker()
    [run] = await scene.take(node)
    assert run.key == manual
    await scene.kill(run)
    await scene.store.requeue("default", [manual])
    scene.pass_time(1_000)
    await scene.store.judge_late({}, 100)
    [again] = await scene.take(node)
    assert (again.key, again.trigger) == (manual, Trigger.REQUEUED)


async def test_the_sweeper_goes_on_page_by_page(scene: Scene) -> None:
    skip = Misfire(policy=MisfirePolicy.SKIP, grace_us=SECOND_US)
    for tenant in ("a", "b"):
        job = await scene.create(spec(every(1), misfire=skip), tenant=tenant)
    keeper = await scene.create(spec(every(1), misfire=Misfire(grace_us=HOUR_US)), tenant="a")
    await scene.plan(59 * SECOND_US)
    scene.go_to(at(50))
    cursors = (await scene.store.judge_late({}, 20)).cursors
    assert cursors
    pages = 1
    while cursors:
        cursors = (await scene.store.judge_late(cursors, 20)).cursors
        pages += 1
    assert pages >= 5
    left = (await scene.tables()).planned
    assert {row.job_id for row in left if row.due_at < at(49)} == {keeper.id}
    assert sum(row.job_id == job.id for row in left) == 11
