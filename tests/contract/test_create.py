"""Creating jobs: what is stored comes back, ids and keys are taken once, near times are planned at once."""

import msgspec
import pytest

from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    FOREVER,
    CronTiming,
    Delivery,
    Durability,
    HttpTarget,
    Job,
    JobSpec,
    JobState,
    Misfire,
    MisfirePolicy,
    Overlap,
    Priority,
    Retry,
)
from hourhand.ports.store import Refusal
from tests.contract.builders import cron, draft, every, once, spec
from tests.contract.scene import Scene

FULL = JobSpec(
    timing=CronTiming(expression="30 9 * * mon-fri", tz="Europe/Berlin", gap="skip", fold="both"),
    target=HttpTarget(
        url="https://example.org/hook", method="PUT", headers={"X-One": "1", "X-Zwei": "ß"}, timeout_us=7
    ),
    name='daily "report" — Übersicht',
    key="billing/daily",
    shard_key="eu",
    tags=("billing", "ünïcode"),
    starts_at=1_794_819_600_000_000 + DAY_US,
    ends_at=1_794_819_600_000_000 + 30 * DAY_US,
    max_runs=7,
    payload=msgspec.Raw(b'{"a":[1,2.50,{"b":null}],"text":"\xc3\xa4 \\" \\\\ \\u0000"}'),
    priority=Priority.LOW,
    durability=Durability.FIRE_AND_FORGET,
    pool="gpu",
    timeout_us=9 * SECOND_US,
    delivery=Delivery.AT_MOST_ONCE,
    retry=Retry(max=5, first_us=2, factor=1.5, max_delay_us=99),
    concurrency=None,
    overlap=Overlap.CANCEL_RUNNING,
    misfire=Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=3, limit=11),
    jitter_us=4 * SECOND_US,
)


async def test_every_field_of_a_job_comes_back(scene: Scene) -> None:
    [made] = await scene.store.create_jobs(
        [draft(FULL, tenant="acme", paused=True, note="not yet", paused_until=scene.now + DAY_US)]
    )
    assert isinstance(made, Job)
    found = await scene.store.get_job("acme", made.id)
    assert found is not None
    assert found.spec == FULL
    assert bytes(found.spec.payload) == bytes(FULL.payload)
    assert (found.tenant, found.version, found.state) == ("acme", 1, JobState.PAUSED)
    assert (found.note, found.paused_until) == ("not yet", scene.now + DAY_US)
    assert (found.created_at, found.updated_at) == (scene.now, scene.now)
    assert found == made


async def test_a_claimed_run_carries_the_job_as_it_was_stored(scene: Scene) -> None:
    special = msgspec.structs.replace(
        FULL, timing=once(scene.now), starts_at=None, ends_at=None, max_runs=None, pool="default", jitter_us=0
    )
    job = await scene.create(special, tenant='ten"ant\\ ü')
    [run] = await scene.take(await scene.worker())
    assert (run.job_id, run.tenant, run.version) == (job.id, 'ten"ant\\ ü', 1)
    assert run.spec == special
    assert bytes(run.spec.payload) == bytes(FULL.payload)


async def test_an_id_that_is_taken_is_refused(scene: Scene) -> None:
    first = await scene.create(spec(name="first"))
    answers = await scene.store.create_jobs([draft(id=first.id), draft(id=77), draft(id=77)])
    assert answers[0] is Refusal.ID_TAKEN
    assert isinstance(answers[1], Job)
    assert answers[2] is Refusal.ID_TAKEN
    assert (await scene.get(first)).spec.name == "first"


async def test_the_id_of_a_job_that_is_gone_stays_taken(scene: Scene) -> None:
    """Its versions and its runs' identities outlive it."""
    gone = await scene.create()
    await scene.delete(gone)
    assert await scene.store.create_jobs([draft(id=gone.id)]) == [Refusal.ID_TAKEN]


async def test_a_key_is_one_jobs_within_a_tenant(scene: Scene) -> None:
    keyed = spec(key="k")
    answers = await scene.store.create_jobs(
        [draft(keyed), draft(keyed), draft(keyed, tenant="other"), draft()]
    )
    assert [answer if isinstance(answer, Refusal) else None for answer in answers] == [
        None,
        Refusal.KEY_TAKEN,
        None,
        None,
    ]
    assert await scene.store.create_jobs([draft(keyed)]) == [Refusal.KEY_TAKEN]


async def test_a_refused_draft_leaves_nothing_behind(scene: Scene) -> None:
    await scene.create(spec(every(1), key="k"))
    refused = draft(spec(every(1), key="k"))
    await scene.store.create_jobs([refused])
    await scene.plan()
    assert await scene.store.get_job("default", refused.id) is None
    assert all(row.job_id != refused.id for row in (await scene.tables()).planned)


async def test_nothing_to_create_is_no_error(scene: Scene) -> None:
    assert await scene.store.create_jobs([]) == []


async def test_a_key_is_free_again_after_its_job_is_gone(scene: Scene) -> None:
    await scene.delete(await scene.create(spec(key="k")))
    await scene.create(spec(key="k"))


async def test_joining_a_planned_clock_plans_the_near_times_at_once(scene: Scene) -> None:
    """Everything before a clock's `next_at` is planned: also for those who come later."""
    first = await scene.create(spec(every(10)), id=1)
    await scene.plan()
    scene.pass_time(12)
    second = await scene.twin(first)
    coming = [at for at in await scene.planned(first) if at > scene.now]
    assert len(coming) == 5
    assert await scene.planned(second) == coming
    await scene.plan()
    assert await scene.planned(second) == [at for at in await scene.planned(first) if at > second.created_at]


async def test_no_time_is_lost_between_creation_and_the_first_planning(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    scene.pass_time(3)
    await scene.plan(5 * SECOND_US)
    assert await scene.planned(job) == [job.created_at + n * SECOND_US for n in range(1, 9)]


async def test_nothing_is_planned_at_or_before_the_creation(scene: Scene) -> None:
    job = await scene.create(spec(every(1)))
    await scene.plan()
    assert min(await scene.planned(job)) == scene.now + SECOND_US


@pytest.mark.parametrize("delay_s", [-100, 0, 100])
async def test_a_one_time_job_is_planned_at_once_and_in_the_past_it_fires_now(
    scene: Scene, delay_s: int
) -> None:
    at = scene.now + delay_s * SECOND_US
    job = await scene.create(spec(once(at)))
    [row] = (await scene.tables()).planned
    assert (row.job_id, row.scheduled_at, row.due_at) == (job.id, at, max(at, scene.now))
    assert await scene.state(job, at) is State.PENDING
    claim = await scene.claim(await scene.worker())
    assert len(claim.runs) == (delay_s <= 0)
    assert await scene.store.next_clock_at(range(64)) is None


async def test_a_job_created_paused_makes_nothing(scene: Scene) -> None:
    recurring = await scene.create(spec(every(1)), paused=True)
    single = await scene.create(spec(once(scene.now + 5 * SECOND_US)), paused=True)
    await scene.plan()
    assert (await scene.tables()).planned == []
    assert (await scene.get(recurring)).state is JobState.PAUSED
    assert (await scene.get(single)).state is JobState.PAUSED


async def test_bounds_of_a_job_bound_its_times(scene: Scene) -> None:
    start, end = scene.now + 20 * SECOND_US, scene.now + 40 * SECOND_US
    job = await scene.create(spec(every(10), starts_at=start, ends_at=end))
    await scene.plan()
    assert await scene.planned(job) == [start, start + 10 * SECOND_US, end]


async def test_max_runs_bounds_the_number_of_times(scene: Scene) -> None:
    job = await scene.create(spec(every(10), max_runs=2))
    unbounded = await scene.create(spec(every(10)))
    await scene.plan()
    assert await scene.planned(job) == [scene.now + 10 * SECOND_US, scene.now + 20 * SECOND_US]
    assert job.until == scene.now + 20 * SECOND_US
    assert unbounded.until == FOREVER


async def test_a_job_that_is_over_before_it_begins_is_completed(scene: Scene) -> None:
    job = await scene.create(spec(every(10), ends_at=scene.now - SECOND_US))
    await scene.plan()
    assert await scene.planned(job) == []
    assert (await scene.get(job)).state is JobState.COMPLETED


async def test_jobs_of_a_thousand_rules_are_created_at_once(scene: Scene) -> None:
    drafts = [draft(spec(cron(f"{n % 60} {n // 60} * * *"))) for n in range(1_000)]
    answers = await scene.store.create_jobs(drafts)
    assert [answer.id for answer in answers if isinstance(answer, Job)] == [one.id for one in drafts]
    found = [await scene.store.get_job("default", one.id) for one in drafts[::100]]
    assert [job and job.spec for job in found] == [one.spec for one in drafts[::100]]
