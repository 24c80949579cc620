"""Reading: jobs and runs are found wherever they are, newest first, page by page, and never another tenant's."""

from typing import Any

import msgspec
import pytest

from hourhand.core.identity import RunKey, tenant_lane
from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.core.lifecycle import FINAL, Event, State
from hourhand.core.model import AfterTiming, Job, JobState, Overlap, Trigger
from hourhand.core.run import RunView
from hourhand.errors import Invalid
from hourhand.ports.reading import JobQuery, RunQuery
from hourhand.ports.store import JobEdit
from tests.contract.builders import draft, every, once, outcome, spec
from tests.contract.harness import START_AT, at
from tests.contract.paging import all_jobs, all_runs
from tests.contract.scene import Scene

# --- jobs


async def listed(scene: Scene, tenant: str = "default", **query: Any) -> list[Job]:
    return await all_jobs(scene.store, JobQuery(**query), tenant)


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
async def test_jobs_come_newest_first_page_by_page(scene: Scene, limit: int) -> None:
    made = await scene.store.create_jobs([draft(id=n) for n in (5, 2**62 + 5, 1, 9, 3)])
    await scene.store.create_jobs([draft(id=n, tenant="other") for n in (2, 4)])
    assert [job.id for job in await listed(scene, limit=limit)] == [2**62 + 5, 9, 5, 3, 1]
    assert {job.id: job for job in await listed(scene)} == {
        job.id: job for job in made if isinstance(job, Job)
    }
    assert len(await listed(scene, "other", limit=limit)) == 2
    assert await listed(scene, "nobody", limit=limit) == []


async def test_a_number_that_no_column_holds_is_the_callers_mistake_and_no_outage(scene: Scene) -> None:
    [job] = await scene.store.create_jobs([draft(id=1)])
    with pytest.raises(Invalid, match="64 bits"):
        await scene.store.get_job("default", 2**63)
    with pytest.raises(Invalid, match="64 bits"):
        await scene.store.create_jobs([draft(id=2**63)])
    assert await listed(scene) == [job]


async def test_a_set_is_listed_page_by_page_as_it_is_now(scene: Scene) -> None:
    drafts = [draft(spec(set_name="a" if n % 2 else "b"), id=n) for n in range(1, 8)]
    await scene.store.create_jobs([*drafts, draft(spec(), id=8), draft(spec(set_name="a"), id=9, tenant="x")])
    assert [job.id for job in await listed(scene, limit=2, set_name="a")] == [7, 5, 3, 1]
    assert await listed(scene, "nobody", set_name="a") == []
    await scene.store.change_job("default", 3, lambda job, now_at: JobEdit(spec=spec(), paused=False))
    await scene.store.change_job(
        "default", 8, lambda job, now_at: JobEdit(spec=spec(set_name="a"), paused=False)
    )
    await scene.store.delete_job("default", 5, False)
    assert [job.id for job in await listed(scene, limit=2, set_name="a")] == [8, 7, 1]


@pytest.mark.parametrize("most", [1, 2, 3, 100_000])
async def test_names_that_few_or_many_begin_with(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("hourhand.stores.relational.reading.WIDE_PREFIX", most)
    names = ("report-a", "repair", "report-b", "other", "report-c")
    jobs = {name: (await scene.create(spec(name=name))).id for name in names}
    await scene.create(spec(name="report-d"), tenant="other")
    for prefix in ("re", "report-", "report-b", "o", "p"):
        expected = [jobs[name] for name in reversed(names) if name.startswith(prefix)]
        for limit in (1, 2, 50):
            found = await listed(scene, limit=limit, name_prefix=prefix)
            assert [job.id for job in found] == expected, (prefix, limit)


async def test_jobs_are_filtered(scene: Scene) -> None:
    plain = await scene.create(spec(name="report-daily", tags=("billing",), set_name="files"))
    paused = await scene.create(spec(name="report-weekly", tags=("billing", "slow")), paused=True)
    other = await scene.create(spec(name="repair"))
    done = await scene.create(spec(once(START_AT - 1), name="éclair"))
    failed = await scene.create(spec(once(START_AT), name="fails"))
    retrying = await scene.create(spec(once(START_AT), name="retries"))
    node = await scene.worker()
    for run in await scene.take(node):
        if run.job_id == failed.id:
            await scene.kill(run)
        elif run.job_id == retrying.id:
            await scene.finish(run, Event.RETRY, tries=1, due_at=at(100))
        else:
            await scene.finish(run)

    async def ids(**query: object) -> set[int]:
        one_by_one = [job.id for job in await listed(scene, limit=1, **query)]
        assert one_by_one == sorted(one_by_one, reverse=True)
        assert one_by_one == [job.id for job in await listed(scene, limit=50, **query)]
        return set(one_by_one)

    assert await ids(state=JobState.PAUSED) == {paused.id}
    assert await ids(state=JobState.ACTIVE) == {plain.id, other.id, retrying.id}
    assert await ids(state=JobState.COMPLETED) == {done.id, failed.id}
    assert await ids(tag="billing") == {plain.id, paused.id}
    assert await ids(tag="bill") == set()
    assert await ids(set_name="files") == {plain.id}
    assert await ids(set_name="files", tag="slow") == set()
    assert await ids(set_name="file") == set()
    assert await ids(name_prefix="rep") == {plain.id, paused.id, other.id}
    assert await ids(name_prefix="report-") == {plain.id, paused.id}
    assert await ids(name_prefix="é") == {done.id}
    assert await ids(name_prefix="%") == set()
    assert await ids(name_prefix="\ud7ff") == set()
    assert await ids(name_prefix="\U0010ffff") == set()
    assert await ids(failing=True) == {failed.id, retrying.id}
    assert await ids(name_prefix="report-", tag="billing", state=JobState.PAUSED) == {paused.id}
    assert await ids(failing=True, name_prefix="f") == {failed.id}


async def test_a_job_is_found_by_key_or_name(scene: Scene) -> None:
    keyed = await scene.create(spec(key="daily", name="one"))
    named = [await scene.create(spec(name="daily")) for _ in range(3)]
    await scene.create(spec(name="daily"), tenant="other")
    assert [job.id for job in await scene.store.find_jobs("default", "daily", 10)] == [keyed.id]
    assert await scene.store.find_jobs("default", "one", 10) == [keyed]
    await scene.change(keyed, key=None)
    found = await scene.store.find_jobs("default", "daily", 10)
    assert {job.id for job in found} == {job.id for job in named}
    assert len(await scene.store.find_jobs("default", "daily", 2)) == 2
    assert await scene.store.find_jobs("default", "dail", 10) == []


async def test_a_job_is_completed_when_its_last_run_has_ended(scene: Scene) -> None:
    job = await scene.create(spec(once(at(10))))
    assert (await scene.get(job)).state is JobState.ACTIVE
    scene.go_to(at(10))
    assert (await scene.get(job)).state is JobState.ACTIVE
    [run] = await scene.take(await scene.worker())
    assert (await scene.get(job)).state is JobState.ACTIVE
    await scene.finish(run)
    assert (await scene.get(job)).state is JobState.COMPLETED


# --- a job's runs


async def test_a_jobs_runs_come_newest_first_wherever_they_are(scene: Scene) -> None:
    job = await scene.create(spec(every(1), concurrency=2, overlap=Overlap.QUEUE))
    await scene.plan(7 * SECOND_US)
    node = await scene.worker()
    scene.go_to(at(1))
    await scene.finish(await scene.take(node, lead_us=0))
    scene.go_to(at(2))
    await scene.kill((await scene.take(node, lead_us=0))[0])
    scene.go_to(at(3))
    [retried] = await scene.take(node, lead_us=0)
    await scene.finish(retried, Event.RETRY, tries=1, due_at=at(100))
    scene.go_to(at(5.5))
    [executing] = await scene.take(node, lead_us=0)
    manual = await scene.run_now(job)
    runs = await scene.runs(job)
    assert [(run.scheduled_at, run.state) for run in runs] == [
        (at(7), State.PENDING),
        (at(6), State.PENDING),
        (manual.scheduled_at, State.PENDING),
        (at(5), State.PENDING),
        (at(4), State.RUNNING),
        (at(3), State.RETRYING),
        (at(2), State.FAILED),
        (at(1), State.SUCCEEDED),
    ]
    assert executing.scheduled_at == at(4)
    assert [run.waits_for_slot for run in runs] == [False] * 3 + [True] + [False] * 4
    assert runs[4].worker == f"worker-{node}"
    assert (runs[5].tries, runs[5].due_at) == (1, at(100))
    assert [run.trigger for run in runs[:3]] == [Trigger.SCHEDULED] * 2 + [Trigger.MANUAL]
    assert [len(run.attempts) for run in runs] == [0, 0, 0, 0, 0, 1, 1, 1]
    for run in runs:
        assert await scene.store.get_run("default", RunKey(job.id, run.scheduled_at)) == run
    paged: list[RunView] = []
    before: int | None = None
    while page := await scene.runs(job, before, 3):
        paged += page
        before = page[-1].scheduled_at
    assert paged == runs


async def test_other_tenants_see_no_runs(scene: Scene) -> None:
    job = await scene.create(spec(once(START_AT)))
    await scene.finish(await scene.take(await scene.worker()))
    assert await scene.store.job_runs("other", job.id, [START_AT], None, 10) == []
    assert await scene.store.get_run("other", RunKey(job.id, START_AT)) is None
    window = RunQuery(from_at=0, to_at=scene.now + HOUR_US)
    assert (await scene.store.list_runs("other", window)).runs == ()
    assert len((await scene.store.list_runs("default", window)).runs) == 1


async def test_a_run_that_is_nowhere_is_not_found(scene: Scene) -> None:
    job = await scene.create(spec(every(60)))
    assert await scene.store.get_run("default", RunKey(job.id, at(60))) is None
    assert await scene.store.get_run("default", RunKey(1, at(60))) is None
    assert await scene.store.job_runs("default", 1, [], None, 10) == []


# --- runs across jobs


async def window(scene: Scene, from_s: float, to_s: float, limit: int = 50, **query: Any) -> list[RunView]:
    asked = RunQuery(from_at=at(from_s), to_at=at(to_s), limit=limit, **query)
    return await all_runs(scene.store, asked)


@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_finished_runs_are_listed_by_when_they_finished(scene: Scene, limit: int) -> None:
    node = await scene.worker()
    jobs = []
    for n in range(10):
        jobs.append(await scene.create(spec(once(START_AT - n))))
        [run] = await scene.take(node)
        scene.pass_time(1)
        await scene.finish(run, [Event.SUCCEED, Event.SKIP, Event.CANCEL, Event.EXHAUST][n % 4])
    finished = [job.id for job in jobs]

    async def ids(from_s: float, to_s: float, **query: object) -> list[int]:
        return [run.job_id for run in await window(scene, from_s, to_s, limit, **query)]

    assert await ids(0, 100) == finished[::-1]
    assert await ids(3, 6) == finished[2:6][::-1]
    assert await ids(3.5, 3.9) == []
    assert await ids(-100, -1) == await ids(100, 200) == []
    assert await ids(0, 100, states=("SKIPPED",)) == [finished[n] for n in (9, 5, 1)]
    assert await ids(0, 100, states=("FAILED", "CANCELLED")) == [finished[n] for n in (7, 6, 3, 2)]
    assert await ids(0, 100, job_id=finished[4]) == [finished[4]]
    assert await ids(6, 100, job_id=finished[4]) == []


async def test_outcomes_that_were_committed_late_are_in_the_window_they_finished_in(scene: Scene) -> None:
    node = await scene.worker()
    await scene.store.create_jobs([draft(spec(once(START_AT))) for _ in range(6)])
    runs = await scene.take(node)
    scene.pass_time(10)
    for run, finished_s in zip(runs, (3, 1, 5, 2, 6, 4), strict=True):
        assert await scene.settle(outcome(run, now_at=at(finished_s))) == []
    found = await window(scene, 2, 4)
    assert sorted(run.attempts[-1].finished_at for run in found) == [at(2), at(3), at(4)]


@pytest.mark.parametrize("limit", [1, 50])
async def test_a_run_that_was_sent_back_is_listed_once_as_what_it_is_now(scene: Scene, limit: int) -> None:
    job = await scene.create(spec(once(START_AT)))
    node = await scene.worker()
    [run] = await scene.take(node)
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now)
    [run] = await scene.take(node)
    await scene.kill(run)
    assert [view.state for view in await window(scene, 0, 100, limit)] == [State.FAILED]
    scene.pass_time(1)
    await scene.store.requeue("default", [run.key])
    assert await window(scene, 0, 100, limit) == []
    [run] = await scene.take(node)
    scene.pass_time(1)
    await scene.finish(run)
    [view] = await window(scene, 0, 100, limit)
    assert (view.job_id, view.state, len(view.attempts)) == (job.id, State.SUCCEEDED, 3)
    assert await window(scene, 0, 100, limit, states=("FAILED",)) == []
    assert await window(scene, 0, 100, limit, job_id=job.id, states=("FAILED",)) == []
    assert await window(scene, 0, 1, limit) == []


async def test_runs_that_hold_a_slot_are_listed_when_asked_for(scene: Scene) -> None:
    executing, retrying = await scene.create(spec(once(START_AT))), await scene.create(spec(once(START_AT)))
    await scene.create(spec(once(START_AT)), tenant="other")
    for run in await scene.take(await scene.worker()):
        if run.job_id == retrying.id:
            await scene.finish(run, Event.RETRY, tries=1, due_at=at(50))
    [one] = await window(scene, 0, 100, states=("RUNNING",))
    [other] = await window(scene, 0, 100, states=("RETRYING",))
    assert (one.job_id, other.job_id) == (executing.id, retrying.id)
    assert one.state not in FINAL


async def test_a_long_history_of_others_does_not_hide_a_tenants_runs(scene: Scene) -> None:
    node = await scene.worker()
    mine = await scene.create(spec(once(START_AT)))
    await scene.finish(await scene.take(node))
    await scene.store.create_jobs([draft(spec(once(START_AT)), tenant="other") for _ in range(6_000)])
    while runs := await scene.take(node, 2_000):
        await scene.finish(runs)
    assert [run.job_id for run in await window(scene, 0, 10)] == [mine.id]
    page = await scene.store.list_runs("default", RunQuery(from_at=0, to_at=scene.now, limit=1))
    assert len(page.runs) == 1 or page.next_before is not None


# --- sizes


async def test_the_backlog_is_counted(scene: Scene) -> None:
    empty = await scene.store.backlog()
    assert (empty.jobs, empty.planned, empty.running, empty.blocked, empty.dead) == (0, 0, 0, 0, 0)
    assert empty.oldest_due_at is None
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE))
    await scene.create(spec(once(START_AT)))
    await scene.plan(9 * SECOND_US)
    node = await scene.worker()
    for run in await scene.take(node, lead_us=0):
        await scene.kill(run)
    scene.go_to(at(3))
    await scene.take(node, lead_us=0)
    found = await scene.store.backlog()
    assert (found.jobs, found.planned, found.running, found.blocked, found.dead) == (2, 6, 1, 2, 1)
    assert found.oldest_due_at == at(4)
    assert isinstance(job, Job)


async def test_the_backlog_of_a_tenant_is_its_own(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = tenant_lane("acme")
    twin = next(f"t{n}" for n in range(10_000) if tenant_lane(f"t{n}") == slot)  # waits in the same lanes
    for tenant, count in (("acme", 1), (twin, 3)):
        for _ in range(count):
            await scene.create(spec(every(1), overlap=Overlap.QUEUE), tenant=tenant)
            await scene.create(spec(once(START_AT)), tenant=tenant)
            parent = await scene.create(spec(once(START_AT)), tenant=tenant)
            await scene.create(spec(AfterTiming(parents=(parent.id,))), tenant=tenant)
            await scene.store.add_run(tenant, parent.id, None, downstream=True)
    await scene.plan(9 * SECOND_US)
    node = await scene.worker()
    for run in await scene.take(node, lead_us=0):
        await scene.kill(run)
    scene.go_to(at(3))
    await scene.take(node, lead_us=0)
    own, others = await scene.store.backlog("acme"), await scene.store.backlog(twin)
    assert (own.jobs, own.planned, own.running, own.blocked, own.dead, own.waiting) == (4, 6, 2, 2, 2, 1)
    assert (own.oldest_due_at, own.complete) == (at(4), True)
    assert (others.jobs, others.planned, others.running, others.dead) == (12, 18, 6, 6)
    nobodys = await scene.store.backlog("nobody")
    assert (nobodys.jobs, nobodys.planned, nobodys.running, nobodys.oldest_due_at) == (0, 0, 0, None)
    whole = await scene.store.backlog()
    assert (whole.jobs, whole.planned) == (16, 24)
    monkeypatch.setattr("hourhand.stores.relational.sizes.MOST_LOOKED_AT", 10)
    some = await scene.store.backlog(twin)
    assert not some.complete
    assert some.planned <= 10


async def test_a_ping_is_answered(scene: Scene) -> None:
    await scene.store.ping()
    assert await scene.store.now() == scene.now


@pytest.mark.parametrize("sought", [JobQuery(tag='a"b'), JobQuery(name_prefix="report-")])
async def test_what_is_looked_for_is_found_by_pages_that_look_at_a_bounded_number(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, sought: JobQuery
) -> None:
    monkeypatch.setattr("hourhand.stores.relational.reading._LOOK", 4)
    monkeypatch.setattr("hourhand.stores.relational.reading.WIDE_PREFIX", 3)
    fitting, other = spec(tags=('a"b',), name="report-7"), spec(tags=("ab",), name="repair")
    made = [await scene.create(fitting if n % 3 == 0 else other) for n in range(20)]
    await scene.create(fitting, tenant="other")
    found: list[int] = []
    query, pages = msgspec.structs.replace(sought, limit=2), 0
    while True:
        page = await scene.store.list_jobs("default", query)
        found += [job.id for job in page.jobs]
        pages += 1
        if page.next_before_id is None:
            break
        query = msgspec.structs.replace(query, before_id=page.next_before_id)
    assert found == [job.id for job in reversed(made[::3])]
    assert pages >= 5


async def test_counting_by_index_up_to_a_bound(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(5):
        await scene.create(spec(name=f"n-{n}", set_name="files" if n else None), paused=n == 0)
    await scene.create(spec(name="n-x"), tenant="other")
    counted = [
        await scene.store.count_jobs("default", query)
        for query in (
            JobQuery(),
            JobQuery(name_prefix="n-1"),
            JobQuery(set_name="files"),
            JobQuery(state=JobState.PAUSED),
        )
    ]
    assert [(one.count, one.or_more) for one in counted] == [(5, False), (1, False), (4, False), (1, False)]
    monkeypatch.setattr("hourhand.stores.relational.reading.MOST_COUNTED", 3)
    assert (await scene.store.count_jobs("default", JobQuery())).or_more


async def test_one_time_jobs_in_a_list_are_seen_as_each_alone(scene: Scene) -> None:
    """Over, still waiting, running, paused in time and paused too late."""
    jobs = [
        await scene.create(spec(once(START_AT + at_s * SECOND_US)), paused=paused)
        for at_s, paused in ((1, False), (600, False), (2, True), (600, True), (3, False))
    ]
    node = await scene.worker()
    scene.pass_time(5)
    runs = await scene.take(node)
    await scene.finish([run for run in runs if run.job_id == jobs[0].id])
    listed = {job.id: job.state for job in (await scene.store.list_jobs("default", JobQuery())).jobs}
    assert listed == {job.id: (await scene.get(job)).state for job in jobs}
    assert len(set(listed.values())) == 3
