"""Claims: who gets which runs, when, in which order; and when it pays to ask again. Whose turn it is: test_claiming_turns.py."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import FOREVER, Delivery, Job, Misfire, MisfirePolicy, Priority, Trigger
from hourhand.core.run import ClaimedRun
from hourhand.ports.store import Cursor, Hint, LeaseLost
from tests.contract.builders import every, once, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import LEAD_US, at
from tests.contract.scene import Scene

# --- who


async def test_a_claim_needs_a_live_lease(scene: Scene) -> None:
    await scene.many(1)
    with pytest.raises(LeaseLost):
        await scene.claim(999)
    node = await scene.worker(lease_us=10 * SECOND_US)
    scene.pass_time(10)
    with pytest.raises(LeaseLost):
        await scene.claim(node)
    ended = await scene.worker()
    await scene.store.end_node(ended)
    with pytest.raises(LeaseLost):
        await scene.claim(ended)
    assert len((await scene.tables()).planned) == 1
    live = await scene.worker(lease_us=10 * SECOND_US)
    scene.pass_time(9.999999)
    assert len(await scene.take(live)) == 1


async def test_a_run_is_claimed_once(scene: Scene) -> None:
    await scene.many(5)
    first = await scene.take(await scene.worker(), 3)
    second = await scene.take(await scene.worker(), 100)
    assert (len(first), len(second)) == (3, 2)
    assert not {run.key for run in first} & {run.key for run in second}
    assert await scene.take(await scene.worker()) == []


async def test_a_claimed_run_says_all_a_worker_needs(scene: Scene) -> None:
    job = await scene.create(spec(every(1), timeout_us=7 * SECOND_US), tenant="acme")
    await scene.plan()
    node = await scene.worker()
    claim = await scene.claim(node)
    [run] = claim.runs
    assert claim.now_at == scene.now
    assert (run.job_id, run.scheduled_at, run.due_at) == (job.id, at(1), at(1))
    assert (run.fence, run.tries, run.trigger) == (1, 0, Trigger.SCHEDULED)
    assert (run.version, run.tenant, run.spec) == (1, "acme", job.spec)
    assert run.deadline_at == at(1) + 7 * SECOND_US
    [held] = await scene.store.held_runs(node)
    assert (held.job_id, held.slot, held.scheduled_at, held.fence, held.cancel_asked) == (
        job.id,
        run.slot,
        run.scheduled_at,
        1,
        False,
    )


async def test_the_deadline_of_a_late_run_counts_from_its_claim(scene: Scene) -> None:
    await scene.create(spec(once(at(0)), timeout_us=7 * SECOND_US))
    scene.pass_time(30)
    [run] = await scene.take(await scene.worker())
    assert run.deadline_at == scene.now + 7 * SECOND_US


async def test_workers_serve_their_pools_only(scene: Scene) -> None:
    await scene.many(2, pool="gpu")
    await scene.many(3)
    node = await scene.worker()
    assert await scene.take(node, pools=("nobody",)) == []
    assert len(await scene.take(node, pools=("gpu", "unheard of"))) == 2
    assert len(await scene.take(node, pools=("gpu", "default"))) == 3


# --- when


@pytest.mark.parametrize("lead_s", [0, 2, 5])
async def test_nothing_is_claimed_before_its_lead(scene: Scene, lead_s: int) -> None:
    await scene.create(spec(once(at(10))))
    node = await scene.worker()
    scene.go_to(at(10 - lead_s) - 1)
    assert await scene.take(node, lead_us=lead_s * SECOND_US) == []
    scene.go_to(at(10 - lead_s))
    assert len(await scene.take(node, lead_us=lead_s * SECOND_US)) == 1


async def test_at_most_once_is_claimed_only_when_due(scene: Scene) -> None:
    await scene.create(spec(once(at(10)), delivery=Delivery.AT_MOST_ONCE))
    node = await scene.worker()
    scene.go_to(at(10) - 1)
    claim = await scene.claim(node)
    assert (claim.runs, claim.next_at) == ([], at(10))
    scene.go_to(at(10))
    [run] = await scene.take(node)
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(20))
    scene.go_to(at(20) - 1)
    claim = await scene.claim(node)
    assert (claim.runs, claim.next_at) == ([], at(20))
    scene.go_to(at(20))
    assert len(await scene.take(node)) == 1


async def test_jitter_delays_the_claim_not_the_name(scene: Scene) -> None:
    job = await scene.create(spec(every(60), jitter_us=30 * SECOND_US))
    await scene.plan(120 * SECOND_US)
    [row] = [row for row in (await scene.tables()).planned if row.scheduled_at == at(60)]
    assert row.due_at > at(60)
    scene.go_to(row.due_at - LEAD_US - 1)
    node = await scene.worker()
    assert await scene.take(node) == []
    scene.pass_time(0.000001)
    [run] = await scene.take(node)
    assert (run.scheduled_at, run.due_at, run.job_id) == (at(60), row.due_at, job.id)


async def test_retries_are_claimed_ahead_of_time_too(scene: Scene) -> None:
    await scene.many(1)
    node = await scene.worker()
    [run] = await scene.take(node)
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(10))
    scene.go_to(at(8) - 1)
    assert await scene.take(node) == []
    scene.go_to(at(8))
    [again] = await scene.take(node)
    assert (again.scheduled_at, again.due_at, again.fence, again.tries) == (at(0), at(10), 2, 1)
    assert again.deadline_at == at(10) + again.spec.timeout_us


# --- how many, in which order


@pytest.mark.parametrize("room", [1, 2, 7, 100])
async def test_no_more_is_claimed_than_there_is_room_for(scene: Scene, room: int) -> None:
    for tenant in ("a", "b", "c"):
        await scene.many(10, tenant=tenant)
    await scene.many(10, priority=Priority.HIGH)
    node = await scene.worker()
    claim = await scene.claim(node, room)
    assert len(claim.runs) <= room
    assert len(claim.runs) + len(await scene.take(node, room - len(claim.runs))) == min(room, 40)
    assert len((await scene.tables()).running) == min(room, 40)


async def test_the_longest_due_come_first(scene: Scene) -> None:
    jobs = {}
    for delay in (4, 1, 5, 3, 2):
        job = await scene.create(spec(every(100, at(delay))))
        jobs[job.id] = delay
    await scene.plan()
    scene.go_to(at(6))
    node = await scene.worker()
    order = [jobs[(await scene.take(node, 1))[0].job_id] for _ in range(5)]
    assert order == [1, 2, 3, 4, 5]


async def test_what_is_due_goes_before_what_is_not(scene: Scene) -> None:
    scene.go_to(at(-2))
    for seconds in (1.5, 0.5, -1, 1):
        await scene.create(spec(every(100, at(seconds))))
    await scene.plan()
    scene.go_to(at(0))
    node = await scene.worker()
    [first] = await scene.take(node, 1)
    assert first.due_at == at(-1)
    [second] = await scene.take(node, 1)
    assert second.due_at == at(0.5)


# --- runs that cannot be taken yet hide nothing


@pytest.mark.parametrize("room", [1, 2, 5, 20])
@pytest.mark.parametrize("stuck", ["slot", "slots", "at_most_once"])
async def test_runs_stuck_ahead_of_time_do_not_hide_those_behind_them(
    scene: Scene, room: int, stuck: str
) -> None:
    fields = {
        "slot": {"concurrency": 1},
        "slots": {"concurrency": 2},
        "at_most_once": {"delivery": Delivery.AT_MOST_ONCE},
    }[stuck]
    holders = 0
    for _ in range(80):
        job = await scene.create(spec(every(10), priority=Priority.HIGH, **fields))
        if stuck != "at_most_once":
            for _ in range(2 if stuck == "slots" else 1):
                await scene.run_now(job)
                holders += 1
    node = await scene.worker()
    assert len(await scene.take(node, 200)) == holders
    await scene.plan()
    scene.go_to(at(8.5))
    free = await scene.create(spec(every(10, at(0.1)), priority=Priority.HIGH))
    await scene.plan()
    assert [run.job_id for run in await scene.take(node, room)] == [free.id]


@pytest.mark.parametrize("room", [1, 2, 3, 8])
async def test_runs_stuck_ahead_of_time_do_not_keep_room_from_what_is_due(scene: Scene, room: int) -> None:
    """Several lanes, none of them full of stuck runs, may together be as large as the room."""
    node = await scene.worker()
    for tenant in ("a", "b", "c", "d", "e", "f", "g", "h"):
        job = await scene.create(spec(every(10), priority=Priority.HIGH), tenant=tenant)
        await scene.run_now(job)
    assert len(await scene.take(node)) == 8
    await scene.plan()
    scene.go_to(at(9))
    due = await scene.many(room, due_s=9, priority=Priority.LOW)
    taken = await scene.take(node, room)
    assert {run.job_id for run in taken} == {job.id for job in due}


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_run_that_waits_for_one_of_a_lower_class_does_not_keep_its_room_from_that_one(
    scene: Scene, concurrency: int
) -> None:
    """Else the worker asks again and again, and takes neither."""
    misfire = Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=0)
    job = await scene.create(spec(every(1), concurrency=concurrency, misfire=misfire))
    scene.go_to(at(20.95))
    await scene.plan()  # all until 20 late, in the background; 21 comes after them
    claim = await scene.claim(await scene.worker(), 1)
    assert [(run.job_id, run.scheduled_at) for run in claim.runs] == [(job.id, at(1))]


async def test_a_walk_ahead_goes_on_where_it_stopped_and_comes_to_an_end(scene: Scene) -> None:
    node = await scene.worker()
    for _ in range(100):
        await scene.run_now(await scene.create(spec(every(10))))
    await scene.take(node)
    await scene.plan()
    scene.go_to(at(9))
    cursors: dict[int, Cursor] = {}
    seen = []
    for _ in range(100):
        claim = await scene.claim(node, 4, cursors=cursors)
        assert claim.runs == []
        seen += list(claim.cursors.values())
        cursors = claim.cursors
        if not claim.progressed:
            break
    else:
        raise AssertionError("the walk does not end")
    assert cursors == {}
    assert len(seen) > 1
    assert seen == sorted(set(seen), key=lambda cursor: (cursor.due_at, cursor.scheduled_at, cursor.job_id))
    assert claim.next_at == at(10)


# --- runs of a job in their order


async def _dense(scene: Scene, written: str, concurrency: int) -> Job:
    """A job every second, whose coming runs were written in one of the ways there are."""
    dense = spec(every(1), concurrency=concurrency, priority=Priority.HIGH)
    match written:
        case "planned":
            job = await scene.create(dense)
        case "planned in two steps":
            job = await scene.create(dense)
            await scene.plan(SECOND_US)
        case "planned when it joined":
            other = await scene.create(msgspec.structs.replace(dense, delivery=Delivery.AT_MOST_ONCE))
            await scene.plan()
            job = await scene.twin(other, delivery=Delivery.AT_LEAST_ONCE)
        case "planned when it left":
            job = await scene.create(dense)
            await scene.change(job, timing=every(3_600))
        case _:
            raise AssertionError(written)
    await scene.plan()
    return job


@pytest.mark.parametrize(("concurrency", "room"), [(1, 1), (1, 5), (2, 2)])
@pytest.mark.parametrize(
    "written", ["planned", "planned in two steps", "planned when it joined", "planned when it left"]
)
async def test_a_later_run_is_not_taken_ahead_of_an_earlier_one_that_the_walk_has_passed(
    scene: Scene, concurrency: int, room: int, written: str
) -> None:
    """A slot comes free while a claim walks past stuck runs: whoever is next to have it lies before the cursor."""
    node = await scene.worker()
    await scene.many(80, due_s=9.5, priority=Priority.HIGH, delivery=Delivery.AT_MOST_ONCE)
    scene.go_to(at(8.5))
    job = await _dense(scene, written, concurrency)  # at 9, 10, ..., and the stuck ones at 9.5
    for _ in range(concurrency):
        await scene.run_now(job)
    held = await scene.take(node)
    assert [(run.job_id, run.due_at) for run in held] == [(job.id, at(8.5))] * concurrency
    claim = await scene.claim(node, room)
    assert claim.cursors, "it does not walk"
    await scene.finish(held)
    taken: list[int] = []
    for _ in range(200):
        claim = await scene.claim(node, room, cursors=claim.cursors)
        taken += [run.scheduled_at for run in claim.runs if run.job_id == job.id]
        waiting = [row.scheduled_at for row in (await scene.tables()).planned if row.job_id == job.id]
        assert all(early < min(waiting, default=FOREVER) for early in taken), "ahead of an earlier one"
        if not claim.progressed:
            if scene.now >= at(9):
                break
            assert claim.next_at is not None
            scene.go_to(claim.next_at)
    assert scene.now == at(9), "it is told to ask again too late"
    assert taken == [at(9), at(10)][:concurrency]


async def test_several_slots_are_filled_by_one_claim_all_the_same(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=3))
    await scene.plan()
    scene.go_to(at(1))
    claim = await scene.claim(await scene.worker())
    assert sorted(run.scheduled_at for run in claim.runs) == [at(1), at(2), at(3)]
    assert_sound(await scene.tables(), {job.id: 3})


async def test_a_job_s_runs_are_taken_in_their_order_also_from_the_newest_end(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=None))
    node = await scene.worker()
    await scene.plan()
    scene.pass_time(50)
    seen: list[int] = []
    while runs := await scene.take(node, 8):
        seen += sorted(run.scheduled_at for run in runs)
        if len(seen) >= 40:
            break
    assert seen == sorted(seen)
    assert job.tenant == "default"


# --- when to ask again


async def test_nothing_waits(scene: Scene) -> None:
    claim = await scene.claim(await scene.worker())
    assert (claim.runs, claim.next_at, claim.progressed) == ([], None, False)


async def test_it_pays_to_ask_again_a_lead_before_the_next_is_due(scene: Scene) -> None:
    await scene.create(spec(once(at(100))))
    await scene.create(spec(once(at(50))))
    claim = await scene.claim(await scene.worker())
    assert (claim.next_at, claim.progressed) == (at(50) - LEAD_US, False)


async def test_a_stuck_run_does_not_take_the_lead_from_the_next_one(scene: Scene) -> None:
    node = await scene.worker()
    job = await scene.create(spec(every(10)))
    await scene.run_now(job)
    await scene.take(node)
    await scene.create(spec(once(at(10.5))))
    await scene.plan()
    scene.go_to(at(8.2))
    claim = await scene.claim(node)
    assert (claim.runs, claim.next_at) == ([], at(8.5))
    scene.go_to(at(8.5))
    claim = await scene.claim(node)
    assert [run.due_at for run in claim.runs] == [at(10.5)]


async def _assert_in_order(scene: Scene, taken: list[ClaimedRun]) -> None:
    """Of jobs with a limit, nothing was taken ahead of its time while an earlier run is planned."""
    planned = (await scene.tables()).planned
    for run in taken:
        if run.due_at > scene.now and run.spec.concurrency is not None:
            earlier = [row for row in planned if row.job_id == run.job_id]
            assert all(row.scheduled_at > run.scheduled_at for row in earlier)


@given(st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_worker_that_sleeps_until_told_or_hinted_is_never_late(
    scene: Scene, data: st.DataObject
) -> None:
    """It claims every run by its due time, though it asks only at `next_at`, after a hint, or with room again."""
    woken: list[Hint] = []
    scene.store.subscribe(woken.append)
    start = scene.now
    node = await scene.worker()
    jobs = [
        await scene.create(
            spec(
                every(data.draw(st.sampled_from([1, 2, 3, 10])), data.draw(st.integers(0, 10)) * 100_000),
                priority=data.draw(st.sampled_from(Priority)),
                concurrency=data.draw(st.sampled_from([1, 2, None])),
                delivery=data.draw(st.sampled_from(Delivery)),
                jitter_us=data.draw(st.sampled_from([0, 900_000])),
            ),
            tenant=data.draw(st.sampled_from(["a", "b"])),
        )
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    holding_us = data.draw(st.sampled_from([1, 300_000, 2_500_000]))
    in_hand: list[ClaimedRun] = []
    cursors: dict[int, Cursor] = {}
    plan_at = start
    ask_at: int | None = start
    while scene.now < start + 12 * SECOND_US:
        if scene.now >= plan_at:
            await scene.plan(5 * SECOND_US)
            plan_at += SECOND_US
        done = [run for run in in_hand if max(run.due_at, start) + holding_us <= scene.now]
        if done:
            await scene.finish(done)
            in_hand = [run for run in in_hand if run not in done]
            woken.append(Hint.RUNS)
        await scene.harness.settled()
        asked = 0
        while woken or (ask_at is not None and ask_at <= scene.now):
            asked += 1
            assert asked < 1_000, "it is told to ask again for ever"
            woken.clear()
            claim = await scene.claim(node, 50, cursors=cursors)
            in_hand += claim.runs
            await _assert_in_order(scene, claim.runs)
            cursors = claim.cursors
            ask_at = scene.now if claim.progressed else claim.next_at
            await scene.harness.settled()
        for row in (await scene.tables()).planned:
            assert row.due_at > scene.now, f"nobody took {row}"
        moments = [max(run.due_at, start) + holding_us for run in in_hand]
        moments += [plan_at] + ([] if ask_at is None else [ask_at])
        scene.go_to(max(min(moments), scene.now + 1))
    for run in in_hand:
        await scene.finish(run)
    for job in jobs:
        await scene.delete(job)
    scene.pass_time(60)
    await scene.take(node)
    assert_sound(await scene.tables())


# --- runs of jobs that are gone


async def test_runs_of_a_deleted_job_are_met_and_ended(scene: Scene) -> None:
    jobs = await scene.many(10)
    for job in jobs:
        await scene.delete(job)
    keeper = await scene.create(spec(once(at(0))))
    taken = await scene.take(await scene.worker(), 3)
    assert [run.job_id for run in taken] == [keeper.id]
    assert len((await scene.tables()).history) == 10
