"""What a clock missed in an outage is one row of the clock, read together with each job's versions."""

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.model import Misfire, MisfirePolicy
from tests.contract.builders import every, spec
from tests.contract.scene import Scene

OUTAGE_S = 605
INTERVAL_S = 10
MISSED = OUTAGE_S // INTERVAL_S


@pytest.mark.parametrize(
    ("policy", "ran"),
    [(MisfirePolicy.RUN_ONCE, 1), (MisfirePolicy.SKIP, 3), (MisfirePolicy.CATCH_UP, 7)],
)
async def test_says_how_many_times_passed_and_how_many_ran(
    scene: Scene, policy: MisfirePolicy, ran: int
) -> None:
    misfire = Misfire(policy=policy, grace_us=30 * SECOND_US, limit=7)
    job = await scene.create(spec(every(INTERVAL_S, phase_at=scene.now), misfire=misfire))
    began_at = scene.now
    scene.pass_time(OUTAGE_S)
    await scene.plan()
    [gap] = await scene.store.missed(job.tenant, job.id)
    assert (gap.missed, gap.ran, gap.policy, gap.version) == (MISSED, ran, policy, 1)
    assert began_at < gap.from_at <= gap.to_at <= scene.now
    late = [at for at in await scene.nominals(job) if at <= gap.to_at]
    assert len(late) == ran


async def test_is_each_jobs_own_although_the_row_is_the_clocks(scene: Scene) -> None:
    timing = every(INTERVAL_S, phase_at=scene.now)
    old = await scene.create(spec(timing))
    scene.pass_time(OUTAGE_S - 5)
    young = await scene.twin(old)
    scene.pass_time(5)
    await scene.plan()
    [gap] = await scene.store.missed(old.tenant, old.id)
    assert gap.missed == MISSED
    assert sum(one.missed for one in await scene.store.missed(young.tenant, young.id)) <= 1


async def test_nothing_where_nothing_was_missed_or_for_another_tenant(scene: Scene) -> None:
    job = await scene.create(spec(every(INTERVAL_S, phase_at=scene.now)))
    await scene.plan()
    assert await scene.store.missed(job.tenant, job.id) == []
    scene.pass_time(OUTAGE_S)
    await scene.plan()
    assert await scene.store.missed("another", job.id) == []
