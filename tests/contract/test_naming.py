"""Claims by name: the same judgement as a claim over lanes, of these runs and no others."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import Delivery, Job, Misfire, MisfirePolicy, Overlap
from hourhand.ports.store import Claim, ClaimRequest, LeaseLost
from tests.contract.builders import draft, every, once, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import LEAD_US, START_AT
from tests.contract.scene import Scene, reason

LATE_US = -SECOND_US


def at(seconds: float) -> int:
    return START_AT + round(seconds * SECOND_US)


async def name(
    scene: Scene,
    node_id: int,
    *keys: RunKey,
    room: int = 100,
    pools: tuple[str, ...] = ("default",),
    lead_us: int = LEAD_US,
) -> Claim:
    return await scene.store.claim(
        ClaimRequest(node_id=node_id, pools=pools, room=room, lead_us=lead_us, named=keys)
    )


async def at_once(scene: Scene, count: int, due_s: float = 0, **fields: object) -> list[RunKey]:
    drafts = [draft(spec(once(at(due_s)), **fields)) for _ in range(count)]
    made = await scene.store.create_jobs(drafts)
    return [RunKey(job.id, at(due_s)) for job in made if isinstance(job, Job)]


def left(claim: Claim) -> list[tuple[RunKey, int]]:
    return sorted((one.key, one.due_at) for one in claim.left)


async def test_the_named_runs_are_taken_and_no_others(scene: Scene) -> None:
    keys = await at_once(scene, 5)
    node = await scene.worker()
    claim = await name(scene, node, *keys[1:4])
    assert {run.key for run in claim.runs} == set(keys[1:4])
    assert (claim.progressed, claim.left, claim.now_at) == (True, (), scene.now)
    assert {run.key for run in await scene.take(node)} == {keys[0], keys[4]}


async def test_a_named_run_says_all_a_worker_needs(scene: Scene) -> None:
    job = await scene.create(spec(every(1), timeout_us=7 * SECOND_US), tenant="acme")
    await scene.plan()
    [run] = (await name(scene, await scene.worker(), RunKey(job.id, at(1)))).runs
    assert (run.job_id, run.scheduled_at, run.due_at, run.fence) == (job.id, at(1), at(1), 1)
    assert (run.version, run.tenant, run.spec) == (1, "acme", job.spec)
    assert run.deadline_at == at(1) + 7 * SECOND_US


async def test_a_claim_by_name_needs_a_live_lease(scene: Scene) -> None:
    keys = await at_once(scene, 1)
    with pytest.raises(LeaseLost):
        await name(scene, 999, *keys)
    assert len((await scene.tables()).planned) == 1


async def test_named_twice_or_again_it_is_taken_once(scene: Scene) -> None:
    [key] = await at_once(scene, 1)
    first = await name(scene, await scene.worker(), key, key, key)
    assert [run.key for run in first.runs] == [key]
    for _ in range(2):
        again = await name(scene, await scene.worker(), key)
        assert (again.runs, again.left, again.progressed) == ([], (), False)


async def test_names_of_nothing_are_left_alone(scene: Scene) -> None:
    [key] = await at_once(scene, 1)
    strangers = [RunKey(key.job_id, at(1)), RunKey(1, at(0)), RunKey((1 << 63) - 1, (1 << 63) - 1)]
    claim = await name(scene, await scene.worker(), *strangers)
    assert (claim.runs, claim.left, claim.progressed) == ([], (), False)


async def test_no_more_than_there_is_room_for(scene: Scene) -> None:
    keys = await at_once(scene, 5)
    claim = await name(scene, await scene.worker(), *keys, room=2)
    assert [run.key for run in claim.runs] == keys[:2]


async def test_other_pools_stay_others(scene: Scene) -> None:
    [key] = await at_once(scene, 1, pool="gpu")
    node = await scene.worker()
    claim = await name(scene, node, key)
    assert (claim.runs, claim.left) == ([], ())
    assert len((await name(scene, node, key, pools=("default", "gpu"))).runs) == 1


async def test_what_is_not_yet_within_the_lead_is_left(scene: Scene) -> None:
    [key] = await at_once(scene, 1, due_s=10)
    node = await scene.worker()
    scene.go_to(at(8) - 1)
    claim = await name(scene, node, key)
    assert (claim.runs, left(claim), claim.progressed) == ([], [(key, at(10))], False)
    scene.go_to(at(8))
    assert len((await name(scene, node, key)).runs) == 1


async def test_at_most_once_is_left_until_it_is_due(scene: Scene) -> None:
    [key] = await at_once(scene, 1, due_s=1, delivery=Delivery.AT_MOST_ONCE)
    node = await scene.worker()
    assert left(await name(scene, node, key)) == [(key, at(1))]
    scene.go_to(at(1))
    [run] = (await name(scene, node, key)).runs
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(3))
    claim = await name(scene, node, key)
    assert (claim.runs, left(claim)) == ([], [(key, at(3))])
    scene.go_to(at(3))
    assert len((await name(scene, node, key)).runs) == 1


async def test_a_run_waits_for_the_one_before_it(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    first, second = RunKey(job.id, at(1)), RunKey(job.id, at(2))
    node = await scene.worker()
    claim = await name(scene, node, second)
    assert (claim.runs, left(claim)) == ([], [(second, at(2))])
    claim = await name(scene, node, first, second)
    assert ([run.key for run in claim.runs], left(claim)) == ([first], [(second, at(2))])
    await scene.finish(claim.runs)
    assert [run.key for run in (await name(scene, node, second)).runs] == [second]


async def test_one_job_named_twice_keeps_its_order_and_its_limit(scene: Scene) -> None:
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE))
    await scene.plan()
    scene.go_to(at(2))
    first, second = RunKey(job.id, at(1)), RunKey(job.id, at(2))
    claim = await name(scene, await scene.worker(), second, first)
    assert [run.key for run in claim.runs] == [first]
    tables = await scene.tables()
    assert [row.scheduled_at for row in tables.blocked if row.job_id == job.id] == [at(2)]
    assert claim.left == ()  # decided: the slot is handed to it
    assert_sound(await scene.tables())


@pytest.mark.parametrize("slots", [2, 3])
async def test_several_slots_are_given_to_the_oldest(scene: Scene, slots: int) -> None:
    job = await scene.create(spec(every(1), concurrency=slots, overlap=Overlap.QUEUE))
    await scene.plan()
    scene.go_to(at(5))
    keys = [RunKey(job.id, at(n)) for n in range(1, 6)]
    claim = await name(scene, await scene.worker(), *reversed(keys))
    assert sorted(run.key for run in claim.runs) == keys[:slots]
    assert sorted(run.slot for run in claim.runs) == list(range(slots))
    assert_sound(await scene.tables())


async def test_without_a_limit_all_are_taken(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=None))
    await scene.plan()
    scene.go_to(at(5))
    keys = [RunKey(job.id, at(n)) for n in range(1, 6)]
    node = await scene.worker()
    claim = await name(scene, node, *keys)
    assert sorted(run.key for run in claim.runs) == keys
    await scene.finish(claim.runs, Event.RETRY, tries=1, due_at=at(6))
    again = await name(scene, node, *keys)
    assert sorted((run.key, run.fence) for run in again.runs) == [(key, 2) for key in keys]


async def test_ahead_of_its_time_a_held_slot_is_waited_for(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    await scene.plan(120 * SECOND_US)
    node = await scene.worker()
    await scene.run_now(job)
    [manual] = await scene.take(node)
    scene.go_to(at(59))
    key = RunKey(job.id, at(60))
    assert left(await name(scene, node, key)) == [(key, at(60))]
    scene.go_to(at(60))
    claim = await name(scene, node, key)
    assert (claim.runs, claim.left, claim.progressed) == ([], (), True)
    assert [row.scheduled_at for row in (await scene.tables()).blocked] == [at(60)]
    await scene.finish(manual)
    [run] = (await name(scene, node, key)).runs  # the slot was handed to it
    assert run.key == key
    assert_sound(await scene.tables())


async def test_overlap_is_judged(scene: Scene) -> None:
    job = await scene.create(spec(every(1), overlap=Overlap.SKIP))
    await scene.plan()
    scene.go_to(at(1))
    node = await scene.worker()
    assert len((await name(scene, node, RunKey(job.id, at(1)))).runs) == 1
    scene.go_to(at(2))
    claim = await name(scene, node, RunKey(job.id, at(2)))
    assert (claim.runs, claim.left, claim.progressed) == ([], (), True)
    view = await scene.view(job, at(2))
    assert (view.state, reason(view)) == (State.SKIPPED, "overlap")


async def test_lateness_is_judged(scene: Scene) -> None:
    keeper = await scene.create(spec(every(3600, phase_at=at(1)), misfire=Misfire(grace_us=HOUR_US)))
    skipper = await scene.create(
        spec(every(3600, phase_at=at(1)), misfire=Misfire(policy=MisfirePolicy.SKIP, grace_us=5 * SECOND_US))
    )
    await scene.plan()
    scene.go_to(at(30))
    claim = await name(scene, await scene.worker(), RunKey(keeper.id, at(1)), RunKey(skipper.id, at(1)))
    assert [run.job_id for run in claim.runs] == [keeper.id]
    assert claim.left == ()
    assert reason(await scene.view(skipper, at(1))) == "misfire"


async def test_retries_are_taken_by_their_key(scene: Scene) -> None:
    [key] = await at_once(scene, 1)
    node = await scene.worker()
    [run] = (await name(scene, node, key)).runs
    assert (await name(scene, node, key)).left == ()  # somebody has it
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(10))
    assert left(await name(scene, node, key)) == [(key, at(10))]
    scene.go_to(at(8))
    [again] = (await name(scene, node, key)).runs
    assert (again.fence, again.tries, again.due_at) == (2, 1, at(10))


async def test_runs_of_deleted_jobs_end(scene: Scene) -> None:
    job = await scene.create(spec(once(at(0))))
    node = await scene.worker()
    [run] = (await name(scene, node, RunKey(job.id, at(0)))).runs
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(1))
    await scene.delete(job)
    claim = await name(scene, node, run.key)
    assert (claim.runs, claim.left) == ([], ())
    tables = await scene.tables()
    assert (tables.planned, tables.running) == ([], [])


async def test_skipped_times_are_never_taken(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    await scene.plan(120 * SECOND_US)
    await scene.store.skip_time(job.tenant, job.id, at(60), None)
    scene.go_to(at(60))
    claim = await name(scene, await scene.worker(), RunKey(job.id, at(60)))
    assert (claim.runs, claim.left) == ([], ())


async def test_with_a_lead_below_zero_only_what_is_late_is_claimed(scene: Scene) -> None:
    [late] = await at_once(scene, 1, due_s=0)
    [other] = await at_once(scene, 1, due_s=0.5)
    node = await scene.worker()
    claim = await scene.claim(node, lead_us=LATE_US)
    assert (claim.runs, claim.next_at) == ([], at(1))
    scene.go_to(at(1) - 1)
    assert (await scene.claim(node, lead_us=LATE_US)).runs == []
    scene.go_to(at(1))
    assert [run.key for run in (await scene.claim(node, lead_us=LATE_US)).runs] == [late]
    claim = await scene.claim(node, lead_us=LATE_US)
    assert (claim.runs, claim.next_at) == ([], at(1.5))
    scene.go_to(at(1.5))
    assert [run.key for run in (await scene.claim(node, lead_us=LATE_US)).runs] == [other]


async def test_late_retries_are_claimed_with_a_lead_below_zero(scene: Scene) -> None:
    [key] = await at_once(scene, 1)
    node = await scene.worker()
    [run] = await scene.take(node)
    await scene.finish(run, Event.RETRY, tries=1, due_at=at(5))
    scene.go_to(at(6) - 1)
    assert (await scene.claim(node, lead_us=LATE_US)).runs == []
    scene.go_to(at(6))
    assert [again.key for again in (await scene.claim(node, lead_us=LATE_US)).runs] == [key]
