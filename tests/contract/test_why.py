"""Why a time ran, waits, was skipped, is none or was lost: every verdict from what each store keeps."""

from collections.abc import Sequence
from typing import Any

import pytest

from hourhand.core.identity import RunKey, format_job_id, format_run_id
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US, format_instant, parse_instant
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import (
    AfterTiming,
    CronTiming,
    Job,
    Misfire,
    MisfirePolicy,
    Overlap,
    Priority,
    ShellTarget,
)
from hourhand.core.serving import Serves
from hourhand.core.why import Cause, Verdict, Word
from hourhand.errors import Invalid, NotFound
from hourhand.ports.store import JobEdit
from hourhand.services.why import Which, Why
from tests.contract.builders import every, once, spec
from tests.contract.harness import KEEP_US, Harness
from tests.contract.scene import HORIZON_US, Scene

INTERVAL = 60 * SECOND_US
AHEAD = INTERVAL + SECOND_US  # so that the next time is planned


class SceneClock:
    """The store's time as a clock."""

    def __init__(self, scene: Scene) -> None:
        self.now = scene.harness.now


def why_of(scene: Scene) -> Why:
    return Why(store=scene.store, clock=SceneClock(scene), horizon_us=HORIZON_US)  # type: ignore[arg-type]


async def ask(scene: Scene, job: Job, at: int) -> Verdict:
    return (await why_of(scene).explain(job.tenant, job.id, at)).verdict


def said(verdict: Verdict) -> tuple[Word, Cause]:
    assert verdict.change, "every verdict names what would change it"
    assert verdict.evidence
    return verdict.word, verdict.cause


def told(verdict: Verdict) -> str:
    return "\n".join([verdict.summary, *(one.text for one in verdict.evidence), *verdict.change])


async def due_job(scene: Scene, **fields: Any) -> tuple[Job, int]:
    """A job that fires every minute, at the moment of its first time, which is planned."""
    job = await scene.create(spec(every(60, phase_at=scene.now), **fields))
    at = scene.now + INTERVAL
    await scene.plan(AHEAD)
    scene.go_to(at)
    return job, at


LIVE_TABLES = ("planned", "running", "blocked", "waiting")


async def forget(
    harness: Harness,
    job_id: int,
    at: int,
    tables: Sequence[str] = (*LIVE_TABLES, "dead", "history"),
    where: str = "",
) -> None:
    """Remove every trace of a run, or some, as no verb does."""
    engine: Any = harness.store._engine  # type: ignore[attr-defined]
    for table in tables:
        text = f"DELETE FROM {table} WHERE job_id = {job_id} AND scheduled_at = {at} {where}"

        if harness.shared:

            async def on_server(connection: Any, text: str = text) -> None:
                await connection.execute(text)

            await engine.on_connection(on_server, bare=True)
        else:

            async def on_file(tx: Any, text: str = text) -> None:
                tx._connection.execute(text)

            await engine.write(on_file)


# --- ran


async def test_a_run_that_succeeded_on_time(scene: Scene) -> None:
    job, at = await due_job(scene)
    [run] = await scene.take(await scene.worker())
    await scene.finish(run)
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.RAN, Cause.SUCCEEDED)
    assert (verdict.state, verdict.version, verdict.decided_by) == (State.SUCCEEDED, 1, "worker")
    assert verdict.decided_at == scene.now
    assert verdict.lateness is not None
    assert verdict.lateness.total_us == 0


async def test_a_run_that_failed_names_its_error_and_how_to_send_it_back(scene: Scene) -> None:
    job, at = await due_job(scene)
    [run] = await scene.take(await scene.worker())
    await scene.kill(run, "no disk")
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.RAN, Cause.FAILED)
    assert "no disk" in verdict.summary
    assert f"dlq requeue {format_run_id(job.id, at)}" in told(verdict)


async def test_lateness_that_an_earlier_run_caused_is_told_apart(scene: Scene) -> None:
    job, at = await due_job(scene)
    node = await scene.worker()
    [first] = await scene.take(node)
    await scene.plan(AHEAD)
    scene.go_to(at + INTERVAL)
    await scene.take(node)  # the second finds the job full, and waits
    scene.pass_time(30)
    await scene.finish(first, started_at=at)
    scene.pass_time(5)
    [second] = await scene.take(node)
    scene.pass_time(1)
    taken_at = scene.now - SECOND_US
    await scene.finish(second, detail={"claimed_at": format_instant(taken_at)})
    verdict = await ask(scene, job, at + INTERVAL)
    late = verdict.lateness
    assert late is not None
    assert (late.planning_us, late.slot_us, late.queue_us, late.worker_us) == (
        0,
        30 * SECOND_US,
        5 * SECOND_US,
        SECOND_US,
    )
    assert late.total_us == 36 * SECOND_US
    assert format_run_id(job.id, at) in told(verdict)
    assert "concurrency" in told(verdict)


async def test_lateness_of_an_outage_is_planning(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))
    scene.pass_time(600)
    newest = scene.now
    scene.pass_time(40)
    await scene.plan(AHEAD)
    [run, *_] = await scene.take(await scene.worker())
    await scene.finish(run, detail={"claimed_at": format_instant(scene.now)})
    verdict = await ask(scene, job, newest)
    assert verdict.lateness is not None
    assert verdict.lateness.planning_us == verdict.lateness.total_us == 40 * SECOND_US


# --- skipped


async def test_what_an_outage_swallowed_names_the_policy_and_the_outage(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))
    first = scene.now + INTERVAL
    scene.pass_time(605)
    decided_at = scene.now
    await scene.plan(AHEAD)
    verdict = await ask(scene, job, first)
    assert said(verdict) == (Word.SKIPPED, Cause.MISFIRE)
    assert verdict.decided_at == decided_at
    assert "run_once" in verdict.summary
    assert "catch_up" in told(verdict)


async def test_a_policy_that_changed_while_nobody_planned_still_explains_it(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))
    first = scene.now + INTERVAL
    scene.pass_time(305)
    await scene.change(job, misfire=Misfire(policy=MisfirePolicy.SKIP))
    scene.pass_time(300)
    await scene.plan(AHEAD)
    verdict = await ask(scene, job, first)
    assert said(verdict) == (Word.SKIPPED, Cause.MISFIRE)
    assert "skip" in verdict.summary


async def test_what_nobody_took_in_time(scene: Scene) -> None:
    job, at = await due_job(scene, misfire=Misfire(policy=MisfirePolicy.SKIP))
    scene.pass_time(61)
    await scene.store.judge_late({}, 100)
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.SKIPPED, Cause.MISFIRE)
    assert "grace of 1m" in verdict.summary


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE])
async def test_an_overlap_names_who_held_the_slot(scene: Scene, overlap: Overlap) -> None:
    job, at = await due_job(scene, overlap=overlap)
    node = await scene.worker()
    await scene.take(node)
    for _ in range(2):
        await scene.plan(AHEAD)
        scene.pass_time(60)
        await scene.take(node)
    verdict = await ask(scene, job, at + INTERVAL)
    assert said(verdict) == (Word.SKIPPED, Cause.OVERLAP)
    assert verdict.blocked_by[0] == format_run_id(job.id, at)
    if overlap is Overlap.QUEUE_ONE:
        assert verdict.blocked_by[1] == format_run_id(job.id, at + 2 * INTERVAL)
    assert overlap.value in verdict.summary


async def test_a_time_that_somebody_skipped_before_and_after(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))
    at = scene.now + 10 * INTERVAL
    await scene.store.skip_time(job.tenant, job.id, at, "holiday")
    before = await ask(scene, job, at)
    assert said(before) == (Word.WAITING, Cause.ASKED)
    assert "holiday" in before.summary
    scene.go_to(at)
    await scene.plan(AHEAD)
    await scene.store.end_skips(100)
    after = await ask(scene, job, at)
    assert said(after) == (Word.SKIPPED, Cause.ASKED)
    assert "holiday" in after.summary


async def test_a_run_that_was_cancelled(scene: Scene) -> None:
    job, at = await due_job(scene)
    await scene.store.cancel_run(job.tenant, RunKey(job.id, at))
    assert said(await ask(scene, job, at)) == (Word.CANCELLED, Cause.ASKED)


# --- waiting


async def test_a_coming_time_says_when_it_will_be_planned(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))
    await scene.plan(AHEAD)
    at = scene.now + 100 * INTERVAL
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.WAITING, Cause.NOT_DUE)
    assert at - HORIZON_US in [one.at for one in verdict.evidence]
    assert "no worker lives" in told(verdict)


async def test_a_planned_run_before_its_time(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))
    await scene.plan(AHEAD)
    await scene.worker()
    verdict = await ask(scene, job, scene.now + INTERVAL)
    assert said(verdict) == (Word.WAITING, Cause.NOT_DUE)
    assert verdict.state is State.PENDING


async def test_a_time_that_no_scheduler_has_come_to(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))
    at = scene.now + INTERVAL
    scene.pass_time(90)
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.WAITING, Cause.NOT_PLANNED)
    assert "hourhand scheduler" in told(verdict)


async def test_an_edit_of_other_fields_takes_no_time_that_is_yet_to_be_planned(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))
    at = scene.now + INTERVAL
    scene.pass_time(90)
    await scene.change(job, priority=Priority.HIGH)
    scene.pass_time(10)
    assert said(await ask(scene, job, at)) == (Word.WAITING, Cause.NOT_PLANNED)


async def test_a_due_run_and_nobody_to_take_it(scene: Scene) -> None:
    job, at = await due_job(scene)
    scene.pass_time(5)
    assert said(await ask(scene, job, at)) == (Word.WAITING, Cause.NO_WORKER)
    node = await scene.worker()
    assert said(await ask(scene, job, at)) == (Word.WAITING, Cause.QUEUE)
    await scene.store.tell_served(node, Serves(pools=("reports",)))
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.WAITING, Cause.NO_WORKER)
    assert "no live worker serves the pool default; they serve reports" in verdict.summary


async def test_a_function_or_a_command_that_no_worker_runs(scene: Scene) -> None:
    job, at = await due_job(scene)
    shell = await scene.create(spec(once(at), target=ShellTarget(argv=("true",))))
    node = await scene.worker()
    await scene.store.tell_served(node, Serves(pools=("default",), functions=("other:thing",)))
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.WAITING, Cause.UNSERVED)
    assert "tests:noop" in verdict.summary
    verdict = await ask(scene, shell, at)
    assert said(verdict) == (Word.WAITING, Cause.UNSERVED)
    assert "--allow-shell" in told(verdict)


async def test_a_run_that_workers_gave_back(scene: Scene) -> None:
    job, at = await due_job(scene)
    node = await scene.worker()
    await scene.store.tell_served(node, Serves(pools=("default",), functions=("other:thing",)))
    [run] = await scene.take(node)
    offered_at = scene.now + 5 * SECOND_US
    await scene.finish(run, Event.RELEASE, due_at=offered_at)
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.WAITING, Cause.UNSERVED)
    assert "no live worker of the pool default has the function tests:noop" in verdict.summary
    assert offered_at in [one.at for one in verdict.evidence]


async def test_a_run_that_waits_for_a_slot_names_its_holder(scene: Scene) -> None:
    job, at = await due_job(scene)
    node = await scene.worker()
    await scene.take(node)
    await scene.plan(AHEAD)
    scene.pass_time(60)
    await scene.take(node)
    verdict = await ask(scene, job, at + INTERVAL)
    assert said(verdict) == (Word.WAITING, Cause.SLOT)
    assert verdict.blocked_by == (format_run_id(job.id, at),)


async def test_a_run_under_way_and_one_between_two_attempts(scene: Scene) -> None:
    job, at = await due_job(scene)
    node = await scene.worker()
    [run] = await scene.take(node)
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.RUNNING, Cause.EXECUTING)
    assert (verdict.decided_by, run.deadline_at) == (
        f"worker-{node}",
        [one.at for one in verdict.evidence][-1],
    )
    scene.pass_time(1)
    due_at = scene.now + 5 * SECOND_US
    await scene.finish(run, Event.RETRY, tries=1, due_at=due_at, detail={"error": "refused"})
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.WAITING, Cause.RETRY)
    assert "refused" in verdict.summary
    assert due_at in [one.at for one in verdict.evidence]


async def test_a_paused_job_past_and_coming(scene: Scene) -> None:
    job = await scene.create(spec(every(60, phase_at=scene.now)))

    def pause(present: Job, now_at: int) -> JobEdit:
        return JobEdit(spec=present.spec, paused=True, note="INC-42")

    await scene.store.change_job(job.tenant, job.id, pause)
    at = scene.now + 10 * INTERVAL
    coming = await ask(scene, job, at)
    assert said(coming) == (Word.WAITING, Cause.PAUSED)
    assert "INC-42" in coming.summary
    scene.go_to(at + 1)
    past = await ask(scene, job, at)
    assert said(past) == (Word.NOT_EXPECTED, Cause.PAUSED)
    assert "INC-42" in past.summary
    assert past.version == 2


async def test_a_paused_one_time_job(scene: Scene) -> None:
    at = scene.now + HOUR_US
    job = await scene.create(spec(once(at)), paused=True, note="wait")
    assert said(await ask(scene, job, at)) == (Word.WAITING, Cause.PAUSED)
    scene.go_to(at + SECOND_US)
    assert said(await ask(scene, job, at)) == (Word.WAITING, Cause.PAUSED)
    await scene.change(job, priority=Priority.HIGH)
    assert said(await ask(scene, job, at)) == (Word.WAITING, Cause.PAUSED)
    await scene.tend()
    assert said(await ask(scene, job, at)) == (Word.SKIPPED, Cause.PAUSED)


# --- jobs that follow others


async def family(scene: Scene) -> tuple[Job, Job, int]:
    parent = await scene.create(spec(every(60, phase_at=scene.now), name="load"))
    child = await scene.create(spec(AfterTiming(parents=(parent.id,))))
    at = scene.now + INTERVAL
    await scene.plan(AHEAD)
    return parent, child, at


async def test_a_follower_waits_for_its_parent_and_is_skipped_with_it(scene: Scene) -> None:
    parent, child, at = await family(scene)
    before = await ask(scene, child, at)
    assert said(before) == (Word.WAITING, Cause.PARENT)
    assert before.blocked_by == (format_job_id(parent.id),)
    assert "load" in before.summary
    scene.go_to(at)
    [run] = await scene.take(await scene.worker())
    await scene.kill(run)
    ended = await ask(scene, child, at)
    assert said(ended) == (Word.WAITING, Cause.PARENT)
    assert "has ended, and tells those that follow it" in told(ended)
    await scene.store.descend(100)
    after = await ask(scene, child, at)
    assert said(after) == (Word.SKIPPED, Cause.UPSTREAM)
    assert after.blocked_by == (format_job_id(parent.id),)


async def test_a_follower_has_no_times_that_its_parents_have_not(scene: Scene) -> None:
    _, child, at = await family(scene)
    for ahead in (0, 10 * INTERVAL):  # planned already, and far beyond
        verdict = await ask(scene, child, at + ahead + SECOND_US)
        assert said(verdict) == (Word.NOT_EXPECTED, Cause.NO_SUCH_TIME)
        assert (await ask(scene, child, at + ahead)).cause is Cause.PARENT


async def test_a_followers_run_that_was_forgotten_is_lost(scene: Scene) -> None:
    parent, child, at = await family(scene)
    scene.go_to(at)
    [run] = await scene.take(await scene.worker())
    scene.pass_time(1)
    await scene.finish(run)
    await scene.store.descend(100)
    assert (await ask(scene, child, at)).word is Word.WAITING
    await forget(scene.harness, child.id, at)
    assert said(await ask(scene, child, at)) == (Word.LOST, Cause.MISSING)
    assert (await ask(scene, parent, at)).word is Word.RAN


# --- not expected


async def test_a_time_between_two_names_the_nearest(scene: Scene) -> None:
    job, at = await due_job(scene)
    verdict = await ask(scene, job, at + 10 * SECOND_US)
    assert said(verdict) == (Word.NOT_EXPECTED, Cause.NO_SUCH_TIME)
    assert (verdict.before_at, verdict.after_at) == (at, at + INTERVAL)


async def test_before_its_creation_its_start_after_its_end_and_its_deletion(scene: Scene) -> None:
    now_at = scene.now
    bounds = {"starts_at": now_at + 5 * INTERVAL, "ends_at": now_at + 9 * INTERVAL}
    job = await scene.create(spec(every(60, phase_at=now_at), **bounds))
    assert said(await ask(scene, job, now_at - INTERVAL)) == (Word.NOT_EXPECTED, Cause.BEFORE_CREATION)
    assert said(await ask(scene, job, now_at + INTERVAL)) == (Word.NOT_EXPECTED, Cause.BEFORE_START)
    assert said(await ask(scene, job, now_at + 5 * INTERVAL)) == (Word.WAITING, Cause.NOT_DUE)
    assert said(await ask(scene, job, now_at + 10 * INTERVAL)) == (Word.NOT_EXPECTED, Cause.AFTER_END)
    await scene.delete(job)
    verdict = await ask(scene, job, now_at + 6 * INTERVAL)
    assert said(verdict) == (Word.NOT_EXPECTED, Cause.DELETED)


async def test_what_ran_before_its_job_was_deleted_is_still_known(scene: Scene) -> None:
    job, at = await due_job(scene)
    [run] = await scene.take(await scene.worker())
    await scene.finish(run)
    scene.pass_time(10)
    await scene.delete(job)
    assert said(await ask(scene, job, at)) == (Word.RAN, Cause.SUCCEEDED)


async def test_an_edit_moves_times_and_the_old_ones_are_explained_by_the_old_version(scene: Scene) -> None:
    job, at = await due_job(scene)
    [run] = await scene.take(await scene.worker())
    await scene.finish(run)
    scene.pass_time(10)
    await scene.change(job, timing=every(3600, phase_at=at))
    assert (await ask(scene, job, at)).version == 1
    verdict = await ask(scene, job, at + 2 * INTERVAL)
    assert (*said(verdict), verdict.version) == (Word.NOT_EXPECTED, Cause.NO_SUCH_TIME, 2)
    assert verdict.after_at == at + HOUR_US


async def test_a_wall_time_that_dst_drops(scene: Scene) -> None:
    timing = CronTiming(expression="30 2 * * *", tz="Europe/Berlin")
    job = await scene.create(spec(timing))
    moved_at = parse_instant("2027-03-28T01:00:00Z")
    verdict = await ask(
        scene, job, parse_instant("2027-03-28T01:30:00Z")
    )  # 02:30 by the clocks of the day before
    assert said(verdict) == (Word.NOT_EXPECTED, Cause.DST)
    assert "02:30 does not exist that day" in verdict.summary
    assert verdict.before_at == moved_at
    assert "moved by DST" in told(await ask(scene, job, moved_at))


# --- no longer known, lost, not there


async def test_beyond_retention_nothing_is_known(scene: Scene) -> None:
    job, at = await due_job(scene)
    [run] = await scene.take(await scene.worker())
    await scene.finish(run)
    scene.go_to(at + KEEP_US + 2 * DAY_US)
    await scene.store.purge(scene.now - KEEP_US, scene.now - KEEP_US, 1_000)
    await forget(scene.harness, job.id, at)  # where old rows go by whole days, this one may still be there
    await scene.plan(AHEAD)
    assert said(await ask(scene, job, at)) == (Word.UNKNOWN, Cause.RETENTION)


@pytest.mark.parametrize("ended", [True, False])
async def test_a_row_that_vanished_is_said_to_be_lost(scene: Scene, ended: bool) -> None:
    job, at = await due_job(scene)
    if ended:
        [run] = await scene.take(await scene.worker())
        await scene.finish(run)
    await forget(scene.harness, job.id, at)
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.LOST, Cause.MISSING)
    assert "LOST" in verdict.summary


async def test_a_run_between_two_attempts_that_vanished_is_lost(scene: Scene) -> None:
    job, at = await due_job(scene)
    [run] = await scene.take(await scene.worker())
    await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now + HOUR_US, detail={"error": "refused"})
    assert said(await ask(scene, job, at)) == (Word.WAITING, Cause.RETRY)
    await forget(scene.harness, job.id, at, LIVE_TABLES)
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.LOST, Cause.MISSING)
    assert "refused" in verdict.summary


@pytest.mark.parametrize("retried", [True, False])
async def test_a_dead_letter_whose_failure_vanished_from_history_is_no_loss(
    scene: Scene, retried: bool
) -> None:
    job, at = await due_job(scene)
    node = await scene.worker()
    [run] = await scene.take(node)
    if retried:
        await scene.finish(run, Event.RETRY, tries=1, due_at=scene.now + SECOND_US)
        scene.pass_time(2)
        [run] = await scene.take(node)
    await scene.kill(run, "it broke")
    assert "missing" not in told(await ask(scene, job, at))
    await forget(scene.harness, job.id, at, ["history"], f"AND attempt = {run.fence}")
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.RAN, Cause.FAILED)
    assert "in the dead letters: it broke; its last line of history is missing" in verdict.summary
    assert verdict.state is State.FAILED


async def test_a_lost_time_of_a_deleted_job_names_no_backfill(scene: Scene) -> None:
    job, at = await due_job(scene)
    scene.pass_time(1)
    await scene.delete(job)
    await forget(scene.harness, job.id, at)
    verdict = await ask(scene, job, at)
    assert said(verdict) == (Word.LOST, Cause.MISSING)
    assert "the job was deleted" in told(verdict)
    assert "backfill" not in told(verdict)


async def test_a_one_time_job_whose_run_vanished_is_lost(scene: Scene) -> None:
    at = scene.now + MINUTE_US
    job = await scene.create(spec(once(at)))
    assert said(await ask(scene, job, at)) == (Word.WAITING, Cause.NOT_DUE)
    await forget(scene.harness, job.id, at)
    assert (await ask(scene, job, at)).word is Word.LOST


async def test_jobs_of_others_and_none_at_all_are_not_found(scene: Scene) -> None:
    job, at = await due_job(scene)
    for tenant, job_id in (("another", job.id), (job.tenant, 12)):
        assert await scene.store.run_facts(tenant, RunKey(job_id, at)) is None
        with pytest.raises(NotFound):
            await why_of(scene).explain(tenant, job_id, at)
    await scene.delete(job)
    assert await scene.store.run_facts("another", RunKey(job.id, at)) is None


async def test_last_and_next_are_times_of_the_job(scene: Scene) -> None:
    job, at = await due_job(scene)
    scene.pass_time(10)
    why = why_of(scene)
    assert (await why.explain(job.tenant, job.id)).facts.at == at
    assert (await why.explain(job.tenant, job.id, Which.NEXT)).facts.at == at + INTERVAL
    paused = await scene.create(spec(every(60, phase_at=scene.now)), paused=True)
    for which in Which:
        found = await why.explain(paused.tenant, paused.id, which)
        assert (found.facts.at, said(found.verdict)) == (scene.now + INTERVAL, (Word.WAITING, Cause.PAUSED))
    follower = await scene.create(spec(AfterTiming(parents=(job.id,))))
    with pytest.raises(Invalid):
        await why.explain(follower.tenant, follower.id)
    run = await scene.store.add_run(follower.tenant, follower.id, None)
    assert run is not None
    assert (await why.explain(follower.tenant, follower.id)).facts.at == run.scheduled_at
