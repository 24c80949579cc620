"""Audits: whatever people and faults did, a sound store adds up, and what is taken away behind its back is named."""

from collections.abc import Iterable

import pytest

from hourhand.core.audit import LAG_BUDGET_US, AuditReport, Kind, Tally
from hourhand.core.backfill import BackfillSpec, new_backfill
from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US, parse_instant
from hourhand.core.lifecycle import Event
from hourhand.core.model import AfterTiming, Job, Misfire, MisfirePolicy
from hourhand.ports.audit import AuditQuery
from hourhand.services import audit_pass
from hourhand.stores.relational import audits as module
from tests.contract.auditing import assert_clean, audit, execute
from tests.contract.builders import cron, every, once, spec
from tests.contract.graph_storm import GraphStorm
from tests.contract.harness import KEEP_US, START_AT, Harness
from tests.contract.scene import Scene
from tests.contract.storm import Storm

MINUTELY = every(60, phase_at=START_AT)
TOLERANT = Misfire(grace_us=DAY_US)


async def work(scene: Scene, minutes: int, event: Event = Event.SUCCEED) -> None:
    """Minutes go by, and whatever is due runs and ends so."""
    node = await scene.worker()
    for _ in range(minutes):
        scene.pass_time(60)
        await scene.plan()
        await scene.store.end_skips(100)
        await scene.tend()
        await work_off(scene, node, event)


async def work_off(scene: Scene, node: int, event: Event = Event.SUCCEED) -> None:
    while runs := await scene.take(node, lead_us=0):
        await scene.finish(runs, event)
        while await scene.store.descend(100):
            pass


async def tally(scene: Scene, job: Job | None = None, **fields: int) -> Tally:
    """The equation of a sound store; a time in the future is none of it."""
    report = await audit(scene.harness, job_id=None if job is None else job.id, **fields)
    assert_clean(report)
    return report.tally


def named(report: AuditReport) -> list[tuple[Kind, int, int]]:
    return [(one.kind, one.job_id, one.scheduled_at) for one in report.findings]


def minutes(first: int, last: int) -> Iterable[int]:
    return [START_AT + n * MINUTE_US for n in range(first, last + 1)]


async def later(scene: Scene) -> None:
    """So much later that what is nowhere by then is lost."""
    scene.pass_time((LAG_BUDGET_US + 60 * SECOND_US) // SECOND_US + 1)
    await scene.plan()


# --- a sound store adds up


async def test_runs_that_succeed_fail_and_wait(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY, misfire=TOLERANT))
    await work(scene, 5)
    await work(scene, 2, Event.EXHAUST)
    scene.pass_time(61)
    await scene.plan()
    found = await tally(scene, job)
    assert found == Tally(expected=8, succeeded=5, failed=2, waiting=1)


async def test_a_window_takes_its_first_instant_and_leaves_its_last(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    await work(scene, 6)
    found = await tally(scene, job, from_at=START_AT + 2 * MINUTE_US, to_at=START_AT + 5 * MINUTE_US)
    assert found == Tally(expected=3, succeeded=3)


@pytest.mark.parametrize(
    ("policy", "ran"),
    [(MisfirePolicy.RUN_ONCE, 1), (MisfirePolicy.SKIP, 1), (MisfirePolicy.CATCH_UP, 7)],
)
async def test_an_outage_is_accounted_for(scene: Scene, policy: MisfirePolicy, ran: int) -> None:
    await scene.create(spec(MINUTELY, misfire=Misfire(policy=policy, limit=7), overlap="queue"))
    await work(scene, 3)
    scene.pass_time(30 * 60 - 30)
    node = await scene.worker()
    await scene.plan()
    await work_off(scene, node)
    await scene.store.judge_late({}, 100)
    found = await tally(scene)
    assert found.expected == 32
    assert found.succeeded == 3 + ran
    assert found.missed == found.skipped - 1 > 0  # one was planned before


async def test_edits_pauses_and_deletes(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    gone = await scene.create(spec(MINUTELY))
    await work(scene, 3)
    await scene.change(job, timing=every(30, phase_at=START_AT))
    await scene.delete(gone)
    await work(scene, 3)
    await scene.pause(job)
    await work(scene, 3)
    await scene.resume(job)
    await work(scene, 3)
    report = await audit(scene.harness)
    assert_clean(report)
    assert report.jobs_checked == 2
    assert report.tally.succeeded + report.tally.skipped + report.tally.cancelled > 12
    assert report.tally.waiting == 0


async def test_only_jobs_that_were_there_in_the_window_are_looked_at(scene: Scene) -> None:
    gone = await scene.create(spec(MINUTELY))
    await work(scene, 2)
    await scene.delete(gone)
    await work(scene, 10)
    assert (await audit(scene.harness)).jobs_checked == 1
    assert (await audit(scene.harness, from_at=START_AT + 8 * MINUTE_US)).jobs_checked == 0


async def test_one_time_jobs_also_of_the_past_and_of_paused_ones(scene: Scene) -> None:
    await scene.create(spec(once(START_AT + MINUTE_US)))
    await scene.create(spec(once(START_AT - MINUTE_US)))
    asleep = await scene.create(spec(once(START_AT + 2 * MINUTE_US)))
    await scene.pause(asleep)
    moved = await scene.create(spec(once(START_AT + 20 * MINUTE_US)))
    await scene.change(moved, timing=once(START_AT + 3 * MINUTE_US))
    await work(scene, 5)
    assert await tally(scene) == Tally(expected=4, succeeded=3, skipped=1)


async def test_a_paused_one_time_job_that_is_edited_before_anybody_ends_its_time(scene: Scene) -> None:
    """Its time lies in the version before; the one in force still owes the end."""
    asleep = await scene.create(spec(once(START_AT + MINUTE_US)))
    await scene.pause(asleep)
    scene.pass_time(70)
    await scene.change(asleep, name="edited")
    scene.pass_time(10 * 60)
    report = await audit(scene.harness)
    assert named(report) == [(Kind.UNPLANNED, asleep.id, START_AT + MINUTE_US)]
    assert report.tally == Tally(expected=1, waiting=1)
    await scene.tend()
    assert await tally(scene) == Tally(expected=1, skipped=1)


async def test_a_paused_one_time_job_is_ended_although_the_clock_is_set_back_after_its_edit(
    scene: Scene,
) -> None:
    asleep = await scene.create(spec(once(START_AT + MINUTE_US)))
    await scene.pause(asleep)
    scene.pass_time(3_600)
    await scene.change(asleep, name="edited")  # by a clock that is an hour ahead, before anybody has looked
    scene.pass_time(-3_000)
    await scene.tend()
    assert await tally(scene) == Tally(expected=1, skipped=1)


async def test_max_runs_starts_and_ends(scene: Scene) -> None:
    await scene.create(spec(MINUTELY, max_runs=3))
    await scene.create(spec(MINUTELY, starts_at=START_AT + 2 * MINUTE_US, ends_at=START_AT + 4 * MINUTE_US))
    await work(scene, 8)
    assert await tally(scene) == Tally(expected=6, succeeded=6)


async def test_days_on_which_clocks_change(scene: Scene) -> None:
    scene.go_to(parse_instant("2026-10-24T22:30:00Z"))
    await scene.create(spec(cron("30 2 * * *", tz="Europe/Berlin"), misfire=TOLERANT))
    await scene.create(spec(cron("*/15 * * * *", tz="Europe/Berlin"), misfire=TOLERANT, overlap="queue"))
    node = await scene.worker()
    for _ in range(20):
        scene.pass_time(15 * 60)
        await scene.plan()
        await work_off(scene, node)
    found = await tally(scene)
    assert found == Tally(expected=21, succeeded=21)


async def test_skipped_times_requeues_reruns_manual_runs_and_backfills(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY, overlap="queue"))
    await scene.store.skip_time(job.tenant, job.id, START_AT + 2 * MINUTE_US, None)
    await work(scene, 3)
    await work(scene, 1, Event.EXHAUST)
    key = RunKey(job.id, START_AT + 4 * MINUTE_US)
    assert (await tally(scene)).failed == 1
    assert await scene.store.requeue(job.tenant, [key]) == [key]
    assert await tally(scene) == Tally(expected=4, succeeded=2, skipped=1, waiting=1)
    await scene.run_now(job)
    await work(scene, 1)
    assert await scene.store.rerun(job.tenant, RunKey(job.id, START_AT + MINUTE_US), None) is not None
    wanted = BackfillSpec(from_at=START_AT - 2 * MINUTE_US, to_at=START_AT + 5 * MINUTE_US)
    await scene.store.add_backfill(
        job.tenant, job.id, lambda present, now_at: new_backfill(1, present, wanted, now_at, KEEP_US)
    )
    await scene.store.feed_backfill(1)
    await work(scene, 1)
    assert await tally(scene) == Tally(expected=6, succeeded=5, skipped=1, beside=5)


async def test_jobs_that_follow_others(scene: Scene) -> None:
    root = await scene.create(spec(MINUTELY, overlap="queue"))
    child = await scene.create(spec(AfterTiming(parents=(root.id,)), overlap="queue"))
    await scene.create(spec(AfterTiming(parents=(child.id, root.id)), overlap="queue"))
    await work(scene, 3)
    await work(scene, 1, Event.EXHAUST)
    found = await tally(scene)
    assert found == Tally(expected=12, succeeded=9, failed=1, skipped=2)
    await scene.store.add_run(root.tenant, root.id, None, downstream=True)
    await work(scene, 1)
    found = await tally(scene)
    assert found == Tally(expected=15, succeeded=12, failed=1, skipped=2, beside=3)


async def test_a_parent_that_runs_lets_its_children_wait(scene: Scene) -> None:
    root = await scene.create(spec(MINUTELY))
    child = await scene.create(spec(AfterTiming(parents=(root.id,))))
    node = await scene.worker()
    scene.pass_time(60)
    await scene.plan()
    [run] = await scene.take(node)
    scene.pass_time(1)
    assert await tally(scene, child) == Tally(expected=1, waiting=1)
    await scene.finish(run)
    assert await tally(scene, child) == Tally(expected=1, waiting=1)
    await scene.store.descend(10)
    await work_off(scene, node)
    assert await tally(scene, child) == Tally(expected=1, succeeded=1)


async def test_a_child_that_nobody_tells_waits_and_is_named_in_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ended long ago is not lost while the store remembers that somebody is to hear of it."""
    root = await scene.create(spec(MINUTELY, overlap="queue", misfire=TOLERANT))
    child = await scene.create(spec(AfterTiming(parents=(root.id,)), overlap="queue"))
    await scene.create(spec(AfterTiming(parents=(child.id,)), overlap="queue"))
    node = await scene.worker()
    count, looked_up = 8, 4
    monkeypatch.setattr(audit_pass, "_MOST_UNTOLD", looked_up)
    for _ in range(count):
        scene.pass_time(60)
        await scene.plan()
        await scene.finish(await scene.take(node, lead_us=0))
    report = await audit(scene.harness, job_id=child.id)
    assert report.tally == Tally(expected=count, waiting=count)
    assert named(report) == [(Kind.UNPLANNED, child.id, at) for at in minutes(1, looked_up)]
    report = await audit(scene.harness, job_id=child.id, from_at=scene.now - LAG_BUDGET_US)
    assert_clean(report)  # that was short ago
    assert report.tally.waiting == report.tally.expected == 1 + LAG_BUDGET_US // MINUTE_US
    while await scene.store.descend(100):
        pass
    await work_off(scene, node)
    found = await tally(scene)
    assert found.succeeded == found.expected == 3 * count


async def test_a_clock_that_is_behind_is_named_but_loses_nothing(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    await work(scene, 2)
    scene.pass_time(600)
    report = await audit(scene.harness)
    assert set(report.kinds) == {Kind.UNPLANNED}
    assert report.tally.lost == 0
    assert report.tally.expected == report.tally.accounted
    assert report.by_job[0].job_id == job.id
    await scene.plan()
    assert_clean(await audit(scene.harness))


async def test_an_edit_while_the_clock_is_behind_loses_nothing_either(scene: Scene) -> None:
    """What the version before promised is still to be planned: the clock does so for the version in force."""
    job = await scene.create(spec(MINUTELY))
    await work(scene, 2)
    scene.pass_time(600)
    await scene.change(job, name="edited")
    assert set((await audit(scene.harness)).kinds) == {Kind.UNPLANNED}
    await scene.plan()
    assert_clean(await audit(scene.harness))


# --- what is taken away is found


async def test_a_line_of_history_that_is_gone(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    other = await scene.create(spec(MINUTELY))
    await work(scene, 4)
    at = START_AT + 2 * MINUTE_US
    await execute(scene.harness, f"DELETE FROM history WHERE job_id = {job.id} AND scheduled_at = {at}")
    await later(scene)
    report = await audit(scene.harness)
    assert named(report) == [(Kind.LOST, job.id, at)]
    assert report.tally.expected == report.tally.accounted + 1
    assert [one.job_id for one in report.by_job] == [job.id]
    assert_clean(await audit(scene.harness, job_id=other.id))


async def test_a_planned_run_that_is_gone(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY, misfire=Misfire(grace_us=SECOND_US)))
    await work(scene, 1)
    at = START_AT + 2 * MINUTE_US
    await execute(scene.harness, f"DELETE FROM planned WHERE job_id = {job.id}")
    scene.go_to(at + SECOND_US)
    young = await audit(scene.harness)  # it may still come
    assert_clean(young)
    assert young.tally.waiting == 1
    scene.go_to(at + LAG_BUDGET_US + 2 * SECOND_US)
    assert (Kind.LOST, job.id, at) in named(await audit(scene.harness))


async def test_a_run_between_two_attempts_that_is_gone(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    node = await scene.worker()
    scene.pass_time(60)
    await scene.plan()
    [run] = await scene.take(node)
    await scene.finish(run, Event.RETRY, due_at=scene.now + HOUR_US)
    scene.pass_time(1)
    assert (await tally(scene)).waiting == 1
    await execute(scene.harness, "DELETE FROM running")
    report = await audit(scene.harness)
    assert named(report) == [(Kind.LOST, job.id, run.scheduled_at)]


async def test_a_run_that_nothing_promised(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    await work(scene, 3)
    at = START_AT + MINUTE_US
    await execute(
        scene.harness,
        f"UPDATE history SET scheduled_at = scheduled_at + 1 WHERE job_id = {job.id} AND scheduled_at = {at}",
    )
    await later(scene)
    report = await audit(scene.harness)
    assert set(named(report)) == {(Kind.LOST, job.id, at), (Kind.PHANTOM, job.id, at + 1)}


async def test_a_run_that_ended_twice(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    await work(scene, 2)
    at = START_AT + MINUTE_US
    columns = "job_id, scheduled_at, due_at, started_at, finished_at, version, state, trigger, tries, worker, detail"
    if scene.harness.whole_days:
        columns += ", bucket"
    await execute(
        scene.harness,
        f"INSERT INTO history (attempt, {columns}) SELECT attempt + 1, {columns} FROM history"
        f" WHERE job_id = {job.id} AND scheduled_at = {at}",
    )
    report = await audit(scene.harness)
    assert named(report) == [(Kind.DOUBLE, job.id, at)]
    assert report.tally == Tally(expected=2, succeeded=2)


async def test_a_dead_letter_without_its_history(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    await work(scene, 1, Event.EXHAUST)
    await execute(scene.harness, "DELETE FROM history")
    report = await audit(scene.harness)
    assert named(report) == [(Kind.BROKEN, job.id, START_AT + MINUTE_US)]


async def test_a_dead_letter_with_the_attempts_before_its_failure(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    node = await scene.worker()
    scene.pass_time(60)
    await scene.plan()
    [run] = await scene.take(node)
    await scene.finish(run, Event.RETRY, due_at=scene.now + SECOND_US)
    scene.pass_time(2)
    [run] = await scene.take(node)
    await scene.finish(run, Event.EXHAUST)
    assert (await tally(scene)).failed == 1
    await execute(scene.harness, f"DELETE FROM history WHERE attempt = {run.fence}")
    report = await audit(scene.harness)
    assert named(report) == [(Kind.BROKEN, job.id, run.scheduled_at)]
    assert report.tally == Tally(expected=1, failed=1)


async def test_a_dead_letter_beside_the_schedule_without_its_history(scene: Scene) -> None:
    job = await scene.create(spec(MINUTELY))
    await work(scene, 1, Event.EXHAUST)  # of a job without failures, that has all its lines, no more is read
    await scene.run_now(job)
    [run] = await scene.take(await scene.worker())
    await scene.finish(run, Event.EXHAUST)
    scene.pass_time(1)
    assert (await tally(scene)).beside == 1
    await execute(scene.harness, f"DELETE FROM history WHERE scheduled_at = {run.scheduled_at}")
    assert named(await audit(scene.harness)) == [(Kind.BROKEN, job.id, run.scheduled_at)]


async def test_a_run_that_a_parent_brought_about_and_that_is_gone(scene: Scene) -> None:
    root = await scene.create(spec(MINUTELY))
    child = await scene.create(spec(AfterTiming(parents=(root.id,))))
    await work(scene, 3)
    at = START_AT + 2 * MINUTE_US
    await execute(scene.harness, f"DELETE FROM history WHERE job_id = {child.id} AND scheduled_at = {at}")
    await later(scene)
    report = await audit(scene.harness)
    assert (Kind.LOST, child.id, at) in named(report)
    assert {one.job_id for one in report.findings} == {child.id}


async def test_a_run_without_the_parent_that_brought_it_about(scene: Scene) -> None:
    root = await scene.create(spec(MINUTELY))
    child = await scene.create(spec(AfterTiming(parents=(root.id,))))
    await work(scene, 3)
    at = START_AT + 2 * MINUTE_US
    await execute(scene.harness, f"DELETE FROM history WHERE job_id = {root.id} AND scheduled_at = {at}")
    await later(scene)
    assert set(named(await audit(scene.harness))) == {(Kind.LOST, root.id, at), (Kind.PHANTOM, child.id, at)}


async def test_of_very_many_findings_the_first_are_listed_and_all_are_counted(scene: Scene) -> None:
    job = await scene.create(spec(every(1, phase_at=START_AT), misfire=TOLERANT, overlap="queue"))
    scene.pass_time(1_200)
    await scene.plan()
    await execute(scene.harness, f"DELETE FROM planned WHERE job_id = {job.id}")
    scene.pass_time(2 * DAY_US // SECOND_US)
    report = await audit(scene.harness, from_at=START_AT, to_at=START_AT + 1_200 * SECOND_US, unit_times=100)
    assert len(report.findings) == 1_000
    assert report.kinds == {Kind.LOST: 1_199}
    assert report.tally.lost == 1_199


async def test_it_matters_not_how_many_jobs_are_compared_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"overlap": "queue", "misfire": TOLERANT}
    jobs = [await scene.create(spec(every(60 * (1 + n % 2), phase_at=START_AT), **fields)) for n in range(7)]
    await scene.create(spec(AfterTiming(parents=(jobs[5].id,))))
    await work(scene, 4)
    await scene.delete(jobs[6])
    await execute(scene.harness, f"DELETE FROM history WHERE job_id = {jobs[1].id}")
    await execute(
        scene.harness, f"UPDATE history SET scheduled_at = 1 + scheduled_at WHERE job_id = {jobs[4].id}"
    )
    scene.pass_time(3 * DAY_US // SECOND_US)
    seen = {"from_at": START_AT, "to_at": START_AT + 4 * MINUTE_US + 2, "page_jobs": 100, "unit_times": 1_000}
    reports = []
    for at_once in (1, 2, 3, 100):
        monkeypatch.setattr(module, "_AT_ONCE", at_once)
        reports.append(await audit(scene.harness, **seen))
    assert [one == reports[0] for one in reports] == [True] * 4
    assert reports[0].kinds == {Kind.LOST: 2 + 4, Kind.PHANTOM: 4}
    assert (reports[0].jobs_checked, reports[0].tally.expected) == (8, 4 * 4 + 3 * 2 + 2)


# --- pages


async def test_pages_meet_each_job_once(scene: Scene) -> None:
    jobs = [await scene.create(spec(MINUTELY)) for _ in range(7)]
    for job in jobs[::2]:
        await scene.change(job, name="edited")
    for job in jobs[1::3]:
        await scene.delete(job)
    found: list[int] = []
    query = AuditQuery(from_at=START_AT, limit=2)
    for _ in range(10):
        page = await scene.store.audited_jobs(query)
        found += [job.id for job in page.jobs]
        if page.next_after is None:
            break
        query = AuditQuery(from_at=START_AT, limit=2, after=page.next_after)
    assert found == sorted(job.id for job in jobs)


async def test_a_page_ends_before_the_job_whose_versions_are_too_many(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_VERSIONS", 3)
    plain, edited, last = [await scene.create(spec(MINUTELY)) for _ in range(3)]
    for _ in range(3):
        await scene.change(edited, name=f"at {scene.now}")
        scene.pass_time(1)
    await scene.change(last, name="once")
    first = await scene.store.audited_jobs(AuditQuery(from_at=START_AT))
    assert [job.id for job in first.jobs] == [plain.id, edited.id]
    second = await scene.store.audited_jobs(AuditQuery(from_at=START_AT, after=first.next_after))
    assert [job.id for job in second.jobs] == [last.id]
    await scene.change(edited, name="too often")
    report = await audit(scene.harness)
    assert (report.unread, report.complete, report.jobs_checked) == ((edited.id,), False, 2)


async def test_another_tenants_jobs_are_left_out(scene: Scene) -> None:
    await scene.create(spec(MINUTELY))
    theirs = await scene.create(spec(MINUTELY), tenant="another")
    await scene.delete(theirs)
    page = await scene.store.audited_jobs(AuditQuery(tenant="default", from_at=START_AT))
    assert len(page.jobs) == 1
    page = await scene.store.audited_jobs(AuditQuery(tenant="another", from_at=START_AT))
    assert [job.id for job in page.jobs] == [theirs.id]


async def test_a_large_payload_is_not_read(scene: Scene) -> None:
    import msgspec

    payload = msgspec.Raw(msgspec.json.encode({"text": "x" * 100_000, "timing": {"type": "none"}}))
    job = await scene.create(
        spec(MINUTELY, payload=payload, name="large", starts_at=START_AT + 90 * SECOND_US)
    )
    await scene.change(job, name="larger")
    [found] = (await scene.store.audited_jobs(AuditQuery(from_at=START_AT))).jobs
    assert [span.schedule.name for span in found.spans] == ["large", "larger"]
    assert {span.schedule.starts_at for span in found.spans} == {START_AT + 90 * SECOND_US}
    assert {span.schedule.timing for span in found.spans} == {MINUTELY}


# --- storms


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("clock_jumps", [False, True])
async def test_a_storm_adds_up(store_harness: Harness, seed: int, clock_jumps: bool) -> None:
    if store_harness.threaded and seed:
        pytest.skip("one seed is enough where each write goes to the disk")
    storm = Storm(store_harness, 500 + seed, clock_jumps)
    await storm.rage(steps=60)
    await storm.calm()
    # Over hours of seconds there are thousands of small units, each of which takes a server some round trips.
    report = await audit(store_harness, unit_times=500 if store_harness.threaded else 50)
    assert_clean(report)
    assert report.tally.expected > 100


@pytest.mark.parametrize("seed", [2001, 2002])
async def test_graphs_in_a_storm_add_up(scene: Scene, seed: int) -> None:
    storm = GraphStorm(scene, seed)
    await storm.run(120)
    assert_clean(await audit(scene.harness))
