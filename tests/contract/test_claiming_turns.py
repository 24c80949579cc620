"""Whose turn a claim is: the shares of the classes, tenants in turn, also where they share a lane."""

import pytest

from hourhand.core.identity import BACKGROUND, class_of_lane, tenant_lane
from hourhand.core.instant import HOUR_US
from hourhand.core.lanes import BRIEF_LEAD_US
from hourhand.core.model import Misfire, MisfirePolicy, Priority, Trigger
from hourhand.core.run import ClaimedRun
from tests.contract.builders import draft, every, once, spec
from tests.contract.harness import at
from tests.contract.scene import Scene


async def _background(scene: Scene, count: int) -> None:
    """So many runs that catch up."""
    before = scene.now
    catch_up = Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=0, limit=count)
    scene.go_to(before - HOUR_US)
    await scene.create(spec(every(60), misfire=catch_up, concurrency=None))
    scene.go_to(before)
    await scene.plan(0)
    rows = [row for row in (await scene.tables()).planned if class_of_lane(row.lane) == BACKGROUND]
    assert len(rows) == count


def _classes(runs: list[ClaimedRun]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for run in runs:
        which = BACKGROUND if run.trigger is Trigger.CATCH_UP else int(run.spec.priority)
        counts[which] = counts.get(which, 0) + 1
    return counts


def _different_lanes() -> tuple[str, str]:
    names = ["acme", *(f"tenant-{n}" for n in range(50))]
    other = next(name for name in names if tenant_lane(name) != tenant_lane("acme"))
    return "acme", other


async def test_of_twenty_claims_with_everything_waiting_two_are_medium_and_one_is_low(scene: Scene) -> None:
    for priority in Priority:
        await scene.many(60, priority=priority)
    await _background(scene, 10)
    node = await scene.worker()
    taken = await scene.take(node, 20)
    assert _classes(taken) == {0: 17, 1: 2, 2: 1}


@pytest.mark.parametrize("room", [1, 3, 7, 20, 50])
async def test_the_shares_hold_over_many_small_claims(scene: Scene, room: int) -> None:
    for priority in Priority:
        for tenant in ("a", "b"):
            await scene.many(110, priority=priority, tenant=tenant)
    await _background(scene, 10)
    node = await scene.worker()
    taken: list[ClaimedRun] = []
    while len(taken) < 200:
        claim = await scene.claim(node, min(room, 200 - len(taken)), taken_before=len(taken))
        assert claim.runs
        taken += claim.runs
    counts = _classes(taken)
    assert counts == {0: 168, 1: 20, 2: 10, 3: 2}


async def test_the_shares_hold_where_one_tenant_has_nearly_all_of_a_class(scene: Scene) -> None:
    await scene.many(200, priority=Priority.HIGH, tenant="flood")
    for n in range(12):
        await scene.many(1, priority=Priority.HIGH, tenant=f"tenant-{n}")
    await scene.many(200, priority=Priority.MEDIUM)
    claim = await scene.claim(await scene.worker(), 100)
    assert _classes(claim.runs) == {0: 90, 1: 10}


async def test_left_over_room_goes_down_the_classes(scene: Scene) -> None:
    await scene.many(2, priority=Priority.HIGH)
    await scene.many(2, priority=Priority.LOW)
    await _background(scene, 5)
    node = await scene.worker()
    assert _classes(await scene.take(node, 3)) == {0: 2, 2: 1}
    assert _classes(await scene.take(node, 3)) == {2: 1, 3: 2}


async def test_tenants_take_turns(scene: Scene) -> None:
    """A flood of one tenant does not delay another's few."""
    flood, few = _different_lanes()
    await scene.many(200, tenant=flood)
    scene.pass_time(1)
    await scene.many(5, due_s=1, tenant=few)
    taken = await scene.take(await scene.worker(), 20)
    assert sum(run.tenant == few for run in taken) == 5


@pytest.mark.parametrize("room", [1, 2, 3])
async def test_tenants_take_turns_where_there_is_room_for_less_than_all_of_them(
    scene: Scene, room: int
) -> None:
    """A worker that frees one place at a time; whose runs are older does not matter."""
    flood, few = _different_lanes()
    await scene.many(200, tenant=flood)
    scene.pass_time(1)
    await scene.many(5, due_s=1, tenant=few)
    node = await scene.worker()
    taken: list[str] = []
    while len(taken) < 14:
        claim = await scene.claim(node, room, taken_before=len(taken))
        taken += [run.tenant for run in claim.runs]
    assert taken.count(few) == 5


async def test_a_tenant_alone_gets_all_the_room(scene: Scene) -> None:
    flood, few = _different_lanes()
    await scene.many(200, tenant=flood)
    await scene.many(1, tenant=few)
    assert len(await scene.take(await scene.worker(), 100)) == 100


async def test_what_one_tenant_left_lying_does_not_stand_before_all_of_another(scene: Scene) -> None:
    """Their names have the same hash; one has far more due than there is room for."""
    other = next(name for n in range(1_000) if tenant_lane(name := f"flood-{n}") == tenant_lane("steady"))
    node = await scene.worker()
    flood = [draft(spec(once(at(1) + n)), tenant=other) for n in range(200)]
    await scene.store.create_jobs(flood)
    scene.pass_time(30)
    later = [draft(spec(once(scene.now + n)), tenant="steady") for n in range(5)]
    await scene.store.create_jobs(later)
    scene.pass_time(1)
    taken = await scene.take(node, 40)
    assert len(taken) == 40
    assert sum(run.tenant == "steady" for run in taken) == 5
    assert {run.job_id for run in taken if run.tenant == other} >= {one.id for one in flood[:25]}, (
        "most of the room is still for what has waited longest"
    )
    rest = 0
    while runs := await scene.take(node, 100):
        rest += len(runs)
    assert rest == 165, "nothing is taken twice, nothing is forgotten"


async def test_what_is_due_next_is_in_hand_before_its_time_also_in_a_lane_that_is_behind(
    scene: Scene,
) -> None:
    other = next(name for n in range(1_000) if tenant_lane(name := f"flood-{n}") == tenant_lane("steady"))
    node = await scene.worker()
    await scene.store.create_jobs([draft(spec(once(at(1) + n)), tenant=other) for n in range(200)])
    scene.pass_time(30)
    soon = [draft(spec(once(scene.now + BRIEF_LEAD_US - n)), tenant="steady") for n in range(5)]
    later = draft(spec(once(scene.now + BRIEF_LEAD_US + 1)), tenant="steady")
    await scene.store.create_jobs([*soon, later])
    taken = await scene.take(node, 40)
    assert len(taken) == 40
    assert {run.job_id for run in taken if run.tenant == "steady"} == {one.id for one in soon}
