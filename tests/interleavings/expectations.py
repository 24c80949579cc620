"""What must hold after a pair beyond what must hold after all of them."""

from typing import Any

from hourhand.core.instant import MINUTE_US
from hourhand.core.lifecycle import Phase, State
from hourhand.core.model import MAX_QUEUED, Trigger
from hourhand.ports.store import Changed, Claim
from tests.contract.harness import START_AT
from tests.contract.scene import Scene
from tests.interleavings.stages import HORIZON_US, Stage, T


async def each_once(scene: Scene, stage: Stage, left: Claim, right: Claim) -> None:
    taken = [run.key for claim in (left, right) for run in claim.runs]
    assert len(set(taken)) == len(taken), "two workers have the same run"
    running = {(row.job_id, row.scheduled_at) for row in (await scene.tables()).running}
    assert set(taken) == running, "what workers hold is not what the store thinks they hold"
    limit = stage.job.spec.concurrency
    assert len(taken) == min(3, limit or 3), "a slot was left free, or given twice"


async def accepted(scene: Scene, stage: Stage, _: Any, refused: Any) -> None:
    assert refused == [], "the outcome of a live worker was refused"
    await in_one_place(scene, stage, _, refused)


async def no_longer_than_allowed(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    tables = await scene.tables()
    assert len(tables.blocked) <= MAX_QUEUED, "more wait for a slot than a queue is long"
    assert not tables.planned or len(tables.blocked) + len(tables.history) == MAX_QUEUED + 2


async def no_more_than_is_made_up_for(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await scene.take(stage.nodes[0], lead_us=0)
    tables = await scene.tables()
    waiting = [row.scheduled_at for row in tables.blocked if row.trigger is Trigger.CATCH_UP]
    assert len(waiting) == stage.job.spec.misfire.limit, (
        "more missed times wait than are made up for, or fewer"
    )
    assert min(waiting) > max(row.scheduled_at for row in tables.history), (
        "an older one waits than was given up"
    )


async def both_accepted(scene: Scene, stage: Stage, left: Any, right: Any) -> None:
    assert left == right == [], "the outcome of a live worker was refused"
    tables = await scene.tables()
    assert len(tables.running) == 1, "a slot was handed on twice, or not at all"
    assert not tables.blocked, "a run waits for a slot that nobody holds"


async def drained(scene: Scene, stage: Stage, _: Any, refused: Any) -> None:
    assert refused == [], "the outcome of a live worker was refused"
    assert len((await scene.tables()).running) == 2, "a lowered limit does not drain"


async def in_one_place(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    tables = await scene.tables()
    assert tables.running or not tables.blocked, "a run waits for a slot that nobody holds"


async def nothing_after_the_cut(scene: Scene, stage: Stage, claim: Claim, changed: Changed) -> None:
    late = [run.scheduled_at for run in claim.runs if run.scheduled_at > changed.effective_from]
    assert late == [], "something after the effective time of a change was taken"
    await scene.plan(HORIZON_US)


async def nothing_more(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await scene.plan(HORIZON_US)


async def skipped_after_all(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    for _ in range(2):
        await scene.plan(HORIZON_US)
        await scene.store.end_skips(10)
    ends = [row.state for row in (await scene.tables()).history]
    assert ends in ([State.SKIPPED], [State.CANCELLED]), "a time that was to be skipped did not end once"


async def the_newest_is_there(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await scene.plan(HORIZON_US)
    newest_at = START_AT + 4 * MINUTE_US
    assert newest_at in await scene.nominals(stage.job), (
        "by neither policy the newest time that was missed has a run"
    )


async def fed_once(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    for _ in range(3):
        await scene.plan(HORIZON_US)
        await scene.store.feed_backfill(1)
    present = await scene.nominals(stage.job)
    wanted = [START_AT + n * MINUTE_US for n in range(-3, 4)]
    assert [at for at in present if at < scene.now] == wanted, "a time of the backfill has no run"


async def the_child_goes_once(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await _descend(scene)
    assert await scene.planned(stage.job) == [T], "both parents succeeded, and the child does not run once"


async def the_child_is_skipped_once(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await _descend(scene)
    states = [line.state for line in (await scene.tables()).history if line.job_id == stage.job.id]
    assert states == [State.SKIPPED], "a parent failed, and the child is not skipped once"


async def decided_once(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    """Whoever was first: its time to wait was over, or all had succeeded."""
    scene.pass_time(20)  # whoever waits is looked at again
    for _ in range(3):
        await scene.store.descend(10)
        await scene.store.judge_waits(10)
    tables = await scene.tables()
    ends = [line.state for line in tables.history if line.job_id == stage.job.id]
    planned = await scene.planned(stage.job)
    assert (ends, planned) in (([State.SKIPPED], []), ([], [T])), (
        "a dependent that was decided is decided again"
    )


async def _descend(scene: Scene) -> None:
    for _ in range(10):
        if not await scene.store.descend(10):
            break
    assert (await scene.store.backlog()).waiting == 0, "a run waits for parents that have ended"


async def nothing_waits(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await scene.take(stage.nodes[1])  # what was planned by hand is met by a claim
    tables = await scene.tables()
    assert not tables.blocked, "a run of a deleted job waits for a slot for ever"
    assert {line.state for line in tables.history} == {State.CANCELLED}, "a deleted job's runs are cancelled"


async def nothing_of_the_deleted(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await _descend(scene)
    assert await scene.take(stage.nodes[0], lead_us=0) == [], "a run of a deleted job is taken"
    assert await scene.planned(stage.job) == []


async def nothing_while_paused(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    """Told before the pause it goes, told after it is skipped; in any case it is told."""
    await _descend(scene)
    ends = [line.state for line in (await scene.tables()).history if line.job_id == stage.job.id]
    planned = await scene.planned(stage.job)
    assert (ends, planned) in (([State.SKIPPED], []), ([], [T])), "a dependent is lost or doubled by a pause"


async def no_circle(scene: Scene, stage: Stage, left: bool, right: bool) -> None:
    assert left != right, "two jobs follow each other, or neither was allowed to"


async def made_once(scene: Scene, stage: Stage, left: Any, right: Any) -> None:
    assert left == right, "the same request made two runs"
    manual = [row for row in (await scene.tables()).planned if row.trigger is Trigger.MANUAL]
    assert len(manual) == 1, "the same request made two runs"


async def followed_or_gone(scene: Scene, stage: Stage, followed: bool, deleted: bool) -> None:
    assert followed != deleted, "a job follows one that is gone, or neither was allowed"


async def skipped_or_not(scene: Scene, stage: Stage, _: Any, skipped_at: int | None) -> None:
    """Somebody asked for a time not to run: it ends as skipped, unless that was refused."""
    taken = {row.scheduled_at for row in (await scene.tables()).running}
    assert skipped_at not in taken, "a time that is skipped runs"
    scene.pass_time(5)
    await scene.plan(HORIZON_US)
    await scene.store.end_skips(10)
    ends = [row.state for row in (await scene.tables()).history if row.scheduled_at == skipped_at]
    assert ends == ([] if skipped_at is None else [State.SKIPPED]), "a skipped time did not end as such"
    assert await scene.planned(stage.job) == sorted(set(await scene.planned(stage.job))), "planned twice"


async def taken_once(scene: Scene, stage: Stage, left: Claim, right: Claim) -> None:
    taken = [run.fence for claim in (left, right) for run in claim.runs]
    assert taken == [stage.runs[0].fence + 1], "a run was taken twice, or never"


async def the_newest_runs(scene: Scene, stage: Stage, claim: Claim, _: Any) -> None:
    """Whoever judges first: of what nobody took in time, only the newest runs."""
    runs = [*claim.runs, *await scene.take(stage.nodes[0], lead_us=0)]
    skipped = [row.scheduled_at for row in (await scene.tables()).history]
    assert len(runs) == 1, "what was missed ran more than once, or not at all"
    assert max(skipped) < runs[0].scheduled_at, "an older time ran than the newest"


async def one_is_believed(scene: Scene, stage: Stage, swept: Any, refused: Any) -> None:
    tried, refused_sweep = swept
    accepted_count = len(tried) - len(refused_sweep) + (1 - len(refused))
    assert accepted_count == 1, "both the sweeper and the lost worker were believed, or neither"
    run = stage.runs[0]
    lines = [row for row in (await scene.tables()).history if row.scheduled_at == run.scheduled_at]
    assert len(lines) == 1, "an attempt has two ends"
    await in_one_place(scene, stage, None, None)


async def accepted_or_given_back(scene: Scene, stage: Stage, back: Any, refused: Any) -> None:
    [row] = (await scene.tables()).running
    expected = (Phase.READY, 1) if back == [] else (Phase.REPORTED, 0)
    assert (row.phase, len(refused)) == expected, "what its target works on was given back as not begun"


async def the_late_one_is_refused(scene: Scene, stage: Stage, claim: Claim, refused: Any) -> None:
    assert [run.fence for run in claim.runs] == [stage.runs[0].fence + 1]
    assert len(refused) == 1, "an outcome under an older fence was taken"


async def nothing_without_a_lease(scene: Scene, stage: Stage, got: Any, _: Any) -> None:
    assert not got, "a worker whose lease is over goes on as if it had one"


async def neither_early_nor_a_try(scene: Scene, stage: Stage, _: Any, claim: Claim) -> None:
    assert claim.runs == [], "something was taken before its time"
    scene.go_to(T)
    runs = await scene.take(stage.nodes[1], lead_us=0)
    assert [(run.key, run.tries) for run in runs] == [(stage.runs[0].key, 0)], (
        "what had not begun was tried, or is lost"
    )


async def one_of_two_sweeps(scene: Scene, stage: Stage, left: Any, right: Any) -> None:
    settled = [len(tried) - len(refused) for tried, refused in (left, right)]
    assert sum(settled) == 1, "a lost run was given back twice, or never"


async def dead_or_planned(scene: Scene, stage: Stage, moved: Any, refused: Any) -> None:
    assert refused == []
    tables = await scene.tables()
    key = stage.runs[0].key
    dead = [row for row in tables.dead if row.scheduled_at == key.scheduled_at]
    planned = [row for row in tables.planned if row.scheduled_at == key.scheduled_at]
    assert (len(dead), len(planned)) == ((0, 1) if moved else (1, 0)), "a dead letter was lost or doubled"


async def moved_and_accepted(scene: Scene, stage: Stage, moved: Any, refused: Any) -> None:
    assert moved == [stage.runs[1].key], "a dead letter was not sent back"
    await accepted(scene, stage, moved, refused)


async def ended_once(scene: Scene, stage: Stage, asked: Any, refused: Any) -> None:
    assert refused == [], "the outcome of a live worker was refused"
    run = stage.runs[0]
    lines = [row for row in (await scene.tables()).history if row.scheduled_at == run.scheduled_at]
    assert len(lines) <= 2, "a run ended twice"
    still = [row for row in (await scene.tables()).running if row.scheduled_at == run.scheduled_at]
    assert not (still and asked is not None), "a run that ended, or was to, holds its slot for ever"
    await in_one_place(scene, stage, None, None)


async def a_version_each(scene: Scene, stage: Stage, left: Changed, right: Changed) -> None:
    versions = await scene.store.versions(stage.job.tenant, stage.job.id)
    assert [version.version for version in versions] == [1, 2, 3]
    await scene.plan(HORIZON_US)
