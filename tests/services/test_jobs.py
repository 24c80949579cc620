"""The use cases of jobs: many at once with mixed faults, edits by version, upserts, pauses, deletes, run now."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from hourhand.core.identity import format_job_id
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import DEFAULT_TENANT, Job, JobSpec, JobState, Misfire
from hourhand.errors import Ambiguous, Conflict, Invalid, NotFound, Outdated, Overloaded
from hourhand.services.jobs import NewJob
from tests.services.world import LEAD_US, START_AT, Gate, World, cron, every, key_of, once, spec

TENANT = DEFAULT_TENANT


def new(timing: Any = None, paused: bool = False, note: str | None = None, **fields: Any) -> NewJob:
    return NewJob(spec=spec(timing, **fields), paused=paused, note=note)


def with_fields(**fields: Any) -> Callable[[Job, int], NewJob]:
    """An edit that keeps everything else, the pause too."""

    def change(job: Job, now_at: int) -> NewJob:
        return NewJob(
            spec=msgspec.structs.replace(job.spec, **fields),
            paused=job.state is JobState.PAUSED,
            note=job.note,
        )

    return change


async def count(world: World) -> int:
    return (await world.real.backlog()).jobs


class FixedIds:
    """Hands out the ids that a test wants."""

    def __init__(self, *ids: int) -> None:
        self.ids = list(ids)

    def job_id(self, shard: int = 0) -> int:
        return self.ids.pop(0)


# --- creating


async def test_each_of_many_gets_its_job_or_its_error_in_order(world: World) -> None:
    await world.jobs.create(TENANT, new(key="taken"))
    answers = await world.jobs.create_many(
        TENANT,
        [
            new(name="first"),
            new(every(0.1)),
            new(key="taken"),
            new(key="twice"),
            new(key="twice"),
            new(max_runs=0),
            new(misfire=Misfire(limit=0), name="x" * 500),
            new(name="last"),
        ],
    )
    kinds = [type(answer).__name__ for answer in answers]
    assert kinds == ["Job", "Invalid", "Conflict", "Job", "Conflict", "Invalid", "Invalid", "Job"]
    assert [answer.spec.name for answer in answers if isinstance(answer, Job)] == ["first", "", "last"]
    assert isinstance(answers[1], Invalid)
    assert [fault.pointer for fault in answers[1].faults] == ["/every"]
    assert isinstance(answers[6], Invalid)
    assert {fault.pointer for fault in answers[6].faults} == {"/name", "/misfire/limit"}
    assert await count(world) == 4


async def test_nothing_is_stored_of_many_that_are_all_wrong(world: World) -> None:
    answers = await world.jobs.create_many(TENANT, [new(max_runs=0)] * 3)
    assert all(isinstance(answer, Invalid) for answer in answers)
    assert world.store.calls["create_jobs"] == 0


async def test_a_key_belongs_to_a_tenant(world: World) -> None:
    await world.jobs.create("ann", new(key="report"))
    await world.jobs.create("bob", new(key="report"))
    with pytest.raises(Conflict, match="report"):
        await world.jobs.create("ann", new(key="report"))


async def test_an_id_that_clashes_is_drawn_again(world: World) -> None:
    taken = await world.jobs.create(TENANT, new())
    world.jobs._ids = FixedIds(taken.id, 70, 71, 71, 72)  # type: ignore[assignment]
    answers = await world.jobs.create_many(TENANT, [new(name="a"), new(name="b"), new(name="c")])
    # The first clashes with a job that is there, then with the third of the same batch.
    assert [(job.spec.name, job.id) for job in answers if isinstance(job, Job)] == [
        ("a", 72),
        ("b", 70),
        ("c", 71),
    ]
    assert await count(world) == 4


async def test_ids_that_always_clash_are_a_conflict(world: World) -> None:
    taken = await world.jobs.create(TENANT, new())
    world.jobs._ids = FixedIds(*[taken.id] * 10)  # type: ignore[assignment]
    with pytest.raises(Conflict, match="try again"):
        await world.jobs.create(TENANT, new())


async def test_a_job_can_be_made_paused(world: World) -> None:
    job = await world.jobs.create(TENANT, new(paused=True, note="later"))
    assert (job.state, job.note) == (JobState.PAUSED, "later")
    await world.plan()
    assert await world.planned() == []


async def test_a_dry_run_answers_the_same_and_stores_nothing(world: World) -> None:
    await world.jobs.create(TENANT, new(key="taken"))
    news = [new(key="taken"), new(key="a"), new(key="a"), new(max_runs=0), new(cron("0 9 * * *"), max_runs=3)]
    would = await world.jobs.create_many(TENANT, news, dry_run=True)
    assert await count(world) == 1
    did = await world.jobs.create_many(TENANT, news)
    assert [type(answer) for answer in would] == [type(answer) for answer in did]
    forecast, fact = would[-1], did[-1]
    assert isinstance(forecast, Job)
    assert isinstance(fact, Job)
    assert (forecast.since, forecast.until) == (fact.since, fact.until)
    assert world.jobs.next_times(forecast, 9) == world.jobs.next_times(fact, 9)


# --- finding


async def test_a_job_is_found_by_id_key_or_unambiguous_name(world: World) -> None:
    one = await world.jobs.create(TENANT, new(key="k", name="n"))
    two = await world.jobs.create(TENANT, new(name="twin"))
    await world.jobs.create(TENANT, new(name="twin"))
    assert (await world.jobs.resolve(TENANT, format_job_id(two.id))).id == two.id
    assert (await world.jobs.resolve(TENANT, "k")).id == one.id
    assert (await world.jobs.resolve(TENANT, "n")).id == one.id
    with pytest.raises(Ambiguous):
        await world.jobs.resolve(TENANT, "twin")
    with pytest.raises(NotFound):
        await world.jobs.resolve(TENANT, "nobody")
    with pytest.raises(NotFound):
        await world.jobs.resolve("somebody-else", "k")
    with pytest.raises(NotFound):
        await world.jobs.resolve("somebody-else", format_job_id(one.id))


# --- changing


async def test_an_edit_makes_a_version_and_refuses_an_outdated_one(world: World) -> None:
    job = await world.jobs.create(TENANT, new(name="a"))
    changed = await world.jobs.update(TENANT, job.id, with_fields(name="b"), expected_version=1)
    assert (changed.job.version, changed.job.spec.name) == (2, "b")
    with pytest.raises(Outdated, match="version 2"):
        await world.jobs.update(TENANT, job.id, with_fields(name="c"), expected_version=1)
    assert (await world.jobs.get(TENANT, job.id)).spec.name == "b"
    assert [version.spec.name for version in await world.jobs.versions(TENANT, job.id)] == ["a", "b"]


async def test_what_an_edit_may_not_do(world: World) -> None:
    await world.jobs.create(TENANT, new(key="taken"))
    job = await world.jobs.create(TENANT, new(shard_key="s"))
    with pytest.raises(Invalid) as wrong:
        await world.jobs.update(TENANT, job.id, with_fields(shard_key="t"))
    assert wrong.value.faults[0].pointer == "/shard_key"
    with pytest.raises(Invalid):
        await world.jobs.update(TENANT, job.id, with_fields(max_runs=0))
    with pytest.raises(Conflict):
        await world.jobs.update(TENANT, job.id, with_fields(key="taken"))
    with pytest.raises(NotFound):
        await world.jobs.update("somebody-else", job.id, with_fields(name="mine"))
    assert (await world.jobs.get(TENANT, job.id)).version == 1


async def test_an_edit_keeps_a_pause_with_its_end(world: World) -> None:
    job = await world.jobs.create(TENANT, new())
    until_at = START_AT + DAY_US
    await world.jobs.pause(TENANT, job.id, note="INC-42", until_at=until_at)
    changed = await world.jobs.update(TENANT, job.id, with_fields(name="b"))
    assert (changed.job.state, changed.job.paused_until) == (JobState.PAUSED, until_at)


async def test_an_edit_of_the_rule_holds_from_the_lead_on(world: World) -> None:
    job = await world.jobs.create(TENANT, new(every(10)))
    await world.plan()
    changed = await world.jobs.update(TENANT, job.id, with_fields(timing=every(7)))
    assert changed.effective_from == START_AT + LEAD_US
    await world.plan()
    times = [at for at, _ in await world.planned()]
    assert times == [START_AT + n * 7 * SECOND_US for n in range(1, 9)]


async def test_a_dry_run_of_an_edit_changes_nothing(world: World) -> None:
    job = await world.jobs.create(TENANT, new(name="a"))
    changed = await world.jobs.update(TENANT, job.id, with_fields(name="b"), dry_run=True)
    assert (changed.job.spec.name, changed.job.version) == ("b", 2)
    assert (await world.jobs.get(TENANT, job.id)).version == 1
    with pytest.raises(Outdated):
        await world.jobs.update(TENANT, job.id, with_fields(name="b"), expected_version=9, dry_run=True)
    await world.jobs.create(TENANT, new(key="taken"))
    with pytest.raises(Conflict):
        await world.jobs.update(TENANT, job.id, with_fields(key="taken"), dry_run=True)


# --- upserting


def as_document(one: JobSpec) -> Callable[[Job | None, int], NewJob]:
    """What a document without a word about pausing means."""

    def change(job: Job | None, now_at: int) -> NewJob:
        paused = job is not None and job.state is JobState.PAUSED
        return NewJob(spec=one, paused=paused, note=job.note if job else None)

    return change


async def test_an_upsert_creates_then_changes_and_repeats_without_a_version(world: World) -> None:
    first = spec(key="k", name="a")
    made, created = await world.jobs.upsert(TENANT, "k", as_document(first))
    assert created
    again, created = await world.jobs.upsert(TENANT, "k", as_document(first))
    assert (created, again.job.version, again.job.id) == (False, 1, made.job.id)
    changed, created = await world.jobs.upsert(TENANT, "k", as_document(spec(key="k", name="b")))
    assert (created, changed.job.version, changed.job.spec.name) == (False, 2, "b")
    assert await count(world) == 1


async def test_an_upsert_does_not_end_a_pause(world: World) -> None:
    made, _ = await world.jobs.upsert(TENANT, "k", as_document(spec(key="k")))
    await world.jobs.pause(TENANT, made.job.id, note="INC-42")
    changed, _ = await world.jobs.upsert(TENANT, "k", as_document(spec(key="k", name="new")))
    assert (changed.job.state, changed.job.note) == (JobState.PAUSED, "INC-42")


async def test_an_upsert_with_a_version_expects_that_version(world: World) -> None:
    with pytest.raises(Outdated):
        await world.jobs.upsert(TENANT, "k", as_document(spec(key="k")), expected_version=1)
    await world.jobs.upsert(TENANT, "k", as_document(spec(key="k")))
    with pytest.raises(Outdated):
        await world.jobs.upsert(TENANT, "k", as_document(spec(key="k", name="b")), expected_version=7)
    changed, _ = await world.jobs.upsert(
        TENANT, "k", as_document(spec(key="k", name="b")), expected_version=1
    )
    assert changed.job.version == 2


async def test_an_upsert_that_loses_the_race_to_create_changes_what_the_other_made(world: World) -> None:
    rival_made = False

    def change(job: Job | None, now_at: int) -> NewJob:
        return NewJob(spec=spec(key="k", name="mine"))

    real = world.real.create_jobs

    async def create_after_a_rival(drafts: Any) -> Any:
        nonlocal rival_made
        if not rival_made:
            rival_made = True
            await world.create(key="k", name="theirs")
        return await real(drafts)

    world.store.create_jobs = create_after_a_rival
    changed, created = await world.jobs.upsert(TENANT, "k", change)
    assert (created, changed.job.spec.name, changed.job.version) == (False, "mine", 2)


async def test_a_name_that_is_another_jobs_key_is_not_that_job(world: World) -> None:
    named = await world.jobs.create(TENANT, new(name="k"))
    made, created = await world.jobs.upsert(TENANT, "k", as_document(spec(key="k")))
    assert created
    assert made.job.id != named.id


# --- pausing


async def test_a_paused_job_makes_no_runs_and_goes_on_when_resumed(world: World) -> None:
    job = await world.jobs.create(TENANT, new(every(10)))
    await world.plan()
    paused = await world.jobs.pause(TENANT, job.id, note="INC-42")
    assert paused.effective_from == START_AT + LEAD_US
    assert await world.planned() == []
    hand = await world.worker()
    await hand.go(START_AT + 35 * SECOND_US)
    resumed = await world.jobs.resume(TENANT, job.id)
    assert (resumed.job.state, resumed.job.note) == (JobState.ACTIVE, None)
    await world.plan()
    await hand.go(START_AT + 65 * SECOND_US)
    assert world.target.called(job) == [START_AT + n * 10 * SECOND_US for n in (4, 5, 6)]


async def test_a_pause_until_the_past_is_refused(world: World) -> None:
    job = await world.jobs.create(TENANT, new())
    for until_at in (START_AT - 1, START_AT):
        for dry_run in (False, True):
            with pytest.raises(Invalid) as wrong:
                await world.jobs.pause(TENANT, job.id, until_at=until_at, dry_run=dry_run)
            assert wrong.value.faults[0].pointer == "/until"
    assert (await world.jobs.get(TENANT, job.id)).state is JobState.ACTIVE


async def test_pausing_again_changes_note_and_end(world: World) -> None:
    job = await world.jobs.create(TENANT, new(every(10)))
    await world.jobs.pause(TENANT, job.id, note="a", until_at=START_AT + 60 * SECOND_US)
    again = await world.jobs.pause(TENANT, job.id, note="b")
    assert (again.job.note, again.job.paused_until) == ("b", None)
    world.go_to(START_AT + 61 * SECOND_US)
    await world.sweep()
    assert (await world.jobs.get(TENANT, job.id)).state is JobState.PAUSED


async def test_pause_resume_and_delete_of_nobody(world: World) -> None:
    for verb in (
        world.jobs.pause,
        world.jobs.resume,
        world.jobs.delete,
        world.jobs.run_now,
        world.jobs.versions,
    ):
        with pytest.raises(NotFound):
            await verb(TENANT, 12345)


# --- deleting


async def test_a_deleted_job_is_gone_and_its_running_run_ends(world: World) -> None:
    world.target.act = gate = Gate()
    job = await world.jobs.create(TENANT, new(every(10)))
    await world.plan()
    hand = await world.worker()
    await hand.go(START_AT + 10 * SECOND_US)
    dry = await world.jobs.delete(TENANT, job.id, dry_run=True)
    assert dry.job.id == job.id
    await world.jobs.delete(TENANT, job.id)
    with pytest.raises(NotFound):
        await world.jobs.delete(TENANT, job.id)
    gate.opened.set()
    await hand.go(START_AT + 60 * SECOND_US)
    assert len(world.target.calls) == gate.ended == 1
    assert hand.in_hand == 0
    assert (await world.real.backlog()).running == 0


async def test_a_delete_can_cancel_what_runs(world: World) -> None:
    world.target.act = Gate()
    job = await world.jobs.create(TENANT, new(once(START_AT)))
    hand = await world.worker()
    await hand.claim()
    await world.jobs.delete(TENANT, job.id, cancel_running=True)
    await hand.cancels()
    await hand.settle()
    assert world.target.cancelled == [key_of(job, START_AT)]
    assert hand.in_hand == 0


# --- run now


async def test_run_now_is_idempotent_by_its_key_and_bounded(world: World) -> None:
    job = await world.jobs.create(TENANT, new(every(3_600)))
    first = await world.jobs.run_now(TENANT, job.id, request_key="a")
    assert await world.jobs.run_now(TENANT, job.id, request_key="a") == first
    second = await world.jobs.run_now(TENANT, job.id, request_key="b")
    assert second != first
    assert all(key.scheduled_at % SECOND_US for key in (first, second))
    for _ in range(98):
        await world.jobs.run_now(TENANT, job.id)
    with pytest.raises(Overloaded):
        await world.jobs.run_now(TENANT, job.id)


async def test_run_now_works_on_a_paused_job(world: World) -> None:
    job = await world.jobs.create(TENANT, new(paused=True))
    key = await world.jobs.run_now(TENANT, job.id)
    hand = await world.worker()
    await hand.work()
    assert await world.state(job, key.scheduled_at) is State.SUCCEEDED


# --- coming times


async def test_coming_times_respect_bounds_and_state(world: World) -> None:
    job = await world.jobs.create(TENANT, new(every(10), max_runs=3))
    times = [START_AT + n * 10 * SECOND_US for n in (1, 2, 3)]
    assert world.jobs.next_times(job, 10) == times
    assert world.jobs.next_at(job) == times[0]
    world.go_to(times[1])
    assert world.jobs.next_times(job, 10) == times[2:]
    paused = (await world.jobs.pause(TENANT, job.id)).job
    assert world.jobs.next_times(paused, 10) == []
    assert world.jobs.next_at(paused) is None


async def test_a_one_time_job_in_the_past_fires_when_it_is_made(world: World) -> None:
    job = await world.jobs.create(TENANT, new(once(START_AT - DAY_US)))
    assert world.jobs.next_at(job) == START_AT
    future = await world.jobs.create(TENANT, new(once(START_AT + DAY_US)))
    assert world.jobs.next_at(future) == START_AT + DAY_US
