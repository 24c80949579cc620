"""The pairs of operations whose interleavings matter: what is there before, who does what, and what must hold after.

What must hold of all of them (a run is in one place, slots and fences hold, no fire time is lost, nobody waits for a
slot that nobody has) is checked for all; a pair says what it expects beyond that.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hourhand.core.backfill import BackfillSpec, new_backfill
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import AfterTiming, Job, Misfire, MisfirePolicy, Overlap
from hourhand.core.run import ClaimedRun
from hourhand.errors import Conflict, Invalid
from hourhand.ports.store import Changed, Claim
from tests.contract.builders import every, outcome, outcome_of_stray, spec
from tests.contract.harness import LEAD_US, START_AT
from tests.contract.scene import Scene

HORIZON_US = 4 * SECOND_US  # how far planners of pairs look
_FIRST_ID = 5_000_000_000
_SECOND_ID = 5_000_000_007
_THIRD_ID = 5_000_000_014
_CHILD_ID = 5_000_000_021
_T = START_AT + 60 * SECOND_US


@dataclass
class Stage:
    """What a pair finds."""

    jobs: list[Job]
    nodes: list[int] = field(default_factory=list)
    runs: list[ClaimedRun] = field(default_factory=list)

    @property
    def job(self) -> Job:
        """The one that it is about."""
        return self.jobs[0]


Act = Callable[[Scene, Stage], Awaitable[Any]]


class Pair(NamedTuple):
    """One pair."""

    name: str
    setup: Callable[[Scene], Awaitable[Stage]]
    left: Act
    right: Act
    expect: Callable[[Scene, Stage, Any, Any], Awaitable[None]]


# --- what is there before


def crowd(limit: int | None, overlap: Overlap = Overlap.QUEUE) -> Callable[[Scene], Awaitable[Stage]]:
    """Three due runs of a job, and two workers."""

    async def setup(scene: Scene) -> Stage:
        job = await scene.create(spec(every(1), concurrency=limit, overlap=overlap), id=_FIRST_ID)
        await scene.plan(3 * SECOND_US)
        scene.pass_time(3)
        return Stage([job], [await scene.worker(), await scene.worker()])

    return setup


def busy(
    limit: int, lease_us: int = DAY_US, overlap: Overlap = Overlap.QUEUE
) -> Callable[[Scene], Awaitable[Stage]]:
    """All slots of a job are taken, and its next run is due."""

    async def setup(scene: Scene) -> Stage:
        job = await scene.create(spec(every(1), concurrency=limit, overlap=overlap), id=_FIRST_ID)
        await scene.plan((limit + 1) * SECOND_US + 1)
        scene.pass_time(limit)
        holder = await scene.worker(lease_us)
        runs = await scene.take(holder, lead_us=0)
        assert len(runs) == limit
        scene.pass_time(1)
        return Stage([job], [holder, await scene.worker()], runs)

    return setup


async def blocked(scene: Scene) -> Stage:
    """The slot of a job is taken, one run is blocked behind it, and another one due."""
    stage = await busy(1)(scene)
    assert await scene.take(stage.nodes[1]) == []
    scene.pass_time(1)
    await scene.plan(SECOND_US)
    return stage


async def busy_by_hand(scene: Scene) -> Stage:
    """The slot of a job is taken, and somebody asked for another run of it."""
    stage = await busy(1)(scene)
    await scene.run_now(stage.job)
    return stage


async def coming(scene: Scene) -> Stage:
    """A job with a run every second, planned, some within the lead."""
    job = await scene.create(spec(every(1), concurrency=None), id=_FIRST_ID)
    await scene.plan(6 * SECOND_US)
    scene.pass_time(0.7)
    return Stage([job], [await scene.worker()])


async def unplanned(scene: Scene) -> Stage:
    """A job whose clock wants to be planned."""
    job = await scene.create(spec(every(1)), id=_FIRST_ID)
    scene.pass_time(0.5)
    return Stage([job])


async def behind(scene: Scene) -> Stage:
    """A clock that nobody planned for minutes, and a backfill over what it missed and what was before."""
    job = await scene.create(
        spec(every(60), misfire=Misfire(policy=MisfirePolicy.CATCH_UP, limit=2)), id=_FIRST_ID
    )
    scene.pass_time(4 * 60)
    wanted = BackfillSpec(from_at=START_AT - 3 * MINUTE_US, to_at=scene.now - 1)
    made = await scene.store.add_backfill(
        job.tenant, job.id, lambda job, now_at: new_backfill(1, job, wanted, now_at, 100 * DAY_US)
    )
    assert made is not None
    return Stage([job], [await scene.worker()])


async def two_parents(scene: Scene, *others: Job) -> Stage:
    """A job that follows two others, whose runs are in a worker's hand."""
    first = await scene.create(spec(every(60)), id=_FIRST_ID)
    second = await scene.create(spec(every(60)), id=_SECOND_ID)
    timing = AfterTiming(parents=(first.id, second.id, *(job.id for job in others)), wait_us=DAY_US)
    child = await scene.create(spec(timing), id=_CHILD_ID)
    await scene.plan(61 * SECOND_US)
    scene.go_to(_T)
    node = await scene.worker()
    runs = sorted(await scene.take(node, lead_us=0), key=lambda run: run.job_id)
    assert [run.job_id for run in runs][:2] == [first.id, second.id]
    return Stage([child, first, second, *others], [node], runs)


async def lost(scene: Scene) -> Stage:
    """A worker whose lease is over has a run in hand; another one waits for its slot."""
    stage = await busy(1, lease_us=2 * SECOND_US)(scene)
    scene.pass_time(3)
    return stage


async def swept(scene: Scene) -> Stage:
    """The run of a lost worker was given back, and may be claimed again."""
    stage = await lost(scene)
    await sweeps(scene, stage)
    return stage


async def letter(scene: Scene) -> Stage:
    """A job with a dead letter, whose next run is under way."""
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE), id=_FIRST_ID)
    await scene.plan(2 * SECOND_US + 1)
    scene.pass_time(1)
    nodes = [await scene.worker(), await scene.worker()]
    [dead] = await scene.take(nodes[0], lead_us=0)
    await scene.kill(dead)
    scene.pass_time(1)
    [run] = await scene.take(nodes[0], lead_us=0)
    return Stage([job], nodes, [run, dead])


async def three_parents(scene: Scene) -> Stage:
    """The same with a third, which has ended: the dependent waits already."""
    third = await scene.create(spec(every(60)), id=_THIRD_ID)
    stage = await two_parents(scene, third)
    [last] = [run for run in stage.runs if run.job_id == third.id]
    await scene.finish(last)
    assert await scene.store.descend(10) == 1
    return stage


async def told_of_one(scene: Scene) -> Stage:
    """A job whose only parent has ended, and nobody has told it yet."""
    parent = await scene.create(spec(every(60)), id=_FIRST_ID)
    child = await scene.create(spec(AfterTiming(parents=(parent.id,), wait_us=DAY_US)), id=_CHILD_ID)
    await scene.plan(61 * SECOND_US)
    scene.go_to(_T)
    node = await scene.worker()
    runs = await scene.take(node, lead_us=0)
    await scene.finish(runs)
    return Stage([child, parent], [node], runs)


async def two_beside_a_root(scene: Scene) -> Stage:
    """Two jobs that follow the same one, and could come to follow each other."""
    root = await scene.create(spec(every(60)), id=_FIRST_ID)
    timing = AfterTiming(parents=(root.id,), wait_us=DAY_US)
    return Stage([await scene.create(spec(timing), id=one) for one in (_SECOND_ID, _CHILD_ID)])


# --- who does what


def claims(place: int, lead_us: int = 0, room: int = 10) -> Act:
    async def act(scene: Scene, stage: Stage) -> Claim:
        return await scene.claim(stage.nodes[place], room, lead_us=lead_us)

    return act


def settles(place: int = 0, event: Event = Event.SUCCEED) -> Act:
    """Says what was refused."""

    async def act(scene: Scene, stage: Stage) -> Any:
        run = stage.runs[place]
        tries = run.tries + (event in (Event.EXHAUST, Event.RETRY))
        detail = {"error": "it broke"} if event is Event.EXHAUST else None
        end = outcome(run, event, now_at=scene.now, tries=tries, due_at=scene.now, detail=detail)
        return await scene.settle(end)

    return act


def ends_and_tells(place: int, event: Event = Event.SUCCEED) -> Act:
    async def act(scene: Scene, stage: Stage) -> Any:
        refused = await settles(place, event)(scene, stage)
        assert refused == []
        return await scene.store.descend(10)

    return act


async def plans(scene: Scene, _: Stage) -> int:
    return await scene.plan(HORIZON_US)


async def sweeps(scene: Scene, stage: Stage) -> Any:
    """Says what it tried to settle, and what of it was refused."""
    strays = await scene.store.stray_runs(0, 10)
    ends = [
        outcome_of_stray(stray, Event.RETRY, now_at=scene.now, tries=stray.tries + 1, due_at=scene.now)
        for stray in strays
    ]
    return ends, await scene.settle(*ends)


async def pauses(scene: Scene, stage: Stage) -> Changed:
    return await scene.pause(stage.job)


async def deletes(scene: Scene, stage: Stage) -> Changed:
    return await scene.delete(stage.job)


def changes_to(seconds: float) -> Act:
    async def act(scene: Scene, stage: Stage) -> Changed:
        return await scene.change(stage.job, timing=every(seconds))

    return act


async def changes_and_plans(scene: Scene, stage: Stage) -> int:
    await changes_to(1.5)(scene, stage)
    return await plans(scene, stage)


async def joins(scene: Scene, stage: Stage) -> Job:
    """Another job on the same clock."""
    job = await scene.twin(stage.job)
    stage.jobs.append(job)
    return job


async def feeds(scene: Scene, _: Stage) -> Any:
    return await scene.store.feed_backfill(1)


async def descends(scene: Scene, _: Stage) -> int:
    return await scene.store.descend(10)


def follows(place: int, other: int) -> Act:
    """Lets one job follow another; says whether it was allowed to."""

    async def act(scene: Scene, stage: Stage) -> bool:
        timing = AfterTiming(parents=(stage.jobs[other].id,), wait_us=DAY_US)
        try:
            await scene.change(stage.jobs[place], timing=timing)
        except Invalid:
            return False
        return True

    return act


def requeues(place: int, then_claims: bool = False) -> Act:
    async def act(scene: Scene, stage: Stage) -> Any:
        moved = await scene.store.requeue(stage.job.tenant, [stage.runs[place].key])
        if then_claims:
            await scene.claim(stage.nodes[1], 10, lead_us=0)
        return moved

    return act


async def cancels(scene: Scene, stage: Stage) -> Any:
    """Says what the run was when it was asked for, or that it had ended."""
    try:
        return await scene.store.cancel_run(stage.job.tenant, stage.runs[0].key)
    except Conflict:
        return None


async def hands_on(scene: Scene, _: Stage) -> int:
    return await scene.store.hand_on_slots(10)


async def judges(scene: Scene, _: Stage) -> Any:
    return await scene.store.judge_late({}, 100)


# --- what must hold


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


async def in_one_place(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    tables = await scene.tables()
    assert tables.running or not tables.blocked, "a run waits for a slot that nobody holds"


async def nothing_after_the_cut(scene: Scene, stage: Stage, claim: Claim, changed: Changed) -> None:
    late = [run.scheduled_at for run in claim.runs if run.scheduled_at > changed.effective_from]
    assert late == [], "something after the effective time of a change was taken"
    await scene.plan(HORIZON_US)


async def nothing_more(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await scene.plan(HORIZON_US)


async def fed_once(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    for _ in range(3):
        await scene.plan(HORIZON_US)
        await scene.store.feed_backfill(1)
    present = await scene.nominals(stage.job)
    wanted = [START_AT + n * MINUTE_US for n in range(-3, 4)]
    assert [at for at in present if at < scene.now] == wanted, "a time of the backfill has no run"


async def the_child_goes_once(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await _descend(scene)
    assert await scene.planned(stage.job) == [_T], "both parents succeeded, and the child does not run once"


async def the_child_is_skipped_once(scene: Scene, stage: Stage, _: Any, __: Any) -> None:
    await _descend(scene)
    states = [line.state for line in (await scene.tables()).history if line.job_id == stage.job.id]
    assert states == [State.SKIPPED], "a parent failed, and the child is not skipped once"


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
    assert (ends, planned) in (([State.SKIPPED], []), ([], [_T])), "a dependent is lost or doubled by a pause"


async def no_circle(scene: Scene, stage: Stage, left: bool, right: bool) -> None:
    assert left != right, "two jobs follow each other, or neither was allowed to"


async def one_is_believed(scene: Scene, stage: Stage, swept: Any, refused: Any) -> None:
    tried, refused_sweep = swept
    accepted_count = len(tried) - len(refused_sweep) + (1 - len(refused))
    assert accepted_count == 1, "both the sweeper and the lost worker were believed, or neither"
    run = stage.runs[0]
    lines = [row for row in (await scene.tables()).history if row.scheduled_at == run.scheduled_at]
    assert len(lines) == 1, "an attempt has two ends"
    await in_one_place(scene, stage, None, None)


async def the_late_one_is_refused(scene: Scene, stage: Stage, claim: Claim, refused: Any) -> None:
    assert [run.fence for run in claim.runs] == [stage.runs[0].fence + 1]
    assert len(refused) == 1, "an outcome under an older fence was taken"


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


PAIRS = (
    Pair("claim/claim of one slot", crowd(1), claims(0), claims(1), each_once),
    Pair("claim/claim of two slots", crowd(2), claims(0), claims(1), each_once),
    Pair("claim/claim without a limit", crowd(None), claims(0), claims(1), each_once),
    Pair("claim/claim one by one", crowd(1), claims(0, room=1), claims(1, room=1), each_once),
    Pair("claim/late finish", swept, claims(1), settles(), the_late_one_is_refused),
    Pair("claim/finish", busy(1), claims(1), settles(), accepted),
    Pair("claim/finish of two slots", busy(2), claims(1), settles(), accepted),
    Pair("claim/finish with one blocked", blocked, claims(1), settles(), accepted),
    Pair("claim/retry", busy(1), claims(1), settles(event=Event.RETRY), accepted),
    Pair("claim/pause", coming, claims(0, LEAD_US), pauses, nothing_after_the_cut),
    Pair("claim/edit", coming, claims(0, LEAD_US), changes_to(1.5), nothing_after_the_cut),
    Pair("claim/delete", coming, claims(0, LEAD_US), deletes, nothing_after_the_cut),
    Pair("claim that blocks/delete", busy_by_hand, claims(1), deletes, nothing_waits),
    Pair("plan/join", unplanned, plans, joins, nothing_more),
    Pair("plan/edit", unplanned, plans, changes_to(1.5), nothing_more),
    Pair("edit, then plan/edit", coming, changes_and_plans, changes_to(0.7), nothing_more),
    Pair("plan/pause", unplanned, plans, pauses, nothing_more),
    Pair("plan/plan", unplanned, plans, plans, nothing_more),
    Pair("edit/edit", coming, changes_to(2), changes_to(0.5), a_version_each),
    Pair("backfill/plan", behind, feeds, plans, fed_once),
    Pair("backfill/backfill", behind, feeds, feeds, fed_once),
    Pair("finish/finish of two parents", two_parents, ends_and_tells(0), ends_and_tells(1), the_child_goes_once),
    Pair(
        "finish/failure of two parents",
        two_parents,
        ends_and_tells(0),
        ends_and_tells(1, Event.EXHAUST),
        the_child_is_skipped_once,
    ),
    Pair(
        "finish/finish of two of three parents",
        three_parents,
        ends_and_tells(0),
        ends_and_tells(1),
        the_child_goes_once,
    ),
    Pair("descend/delete", told_of_one, descends, deletes, nothing_of_the_deleted),
    Pair("descend/pause", told_of_one, descends, pauses, nothing_while_paused),
    Pair("descend/descend", told_of_one, descends, descends, the_child_goes_once),
    Pair("follow/follow", two_beside_a_root, follows(0, 1), follows(1, 0), no_circle),
    Pair("sweep/finish", lost, sweeps, settles(), one_is_believed),
    Pair("sweep/sweep", lost, sweeps, sweeps, one_of_two_sweeps),
    Pair("requeue/finish of the run", busy(1), requeues(0), settles(event=Event.EXHAUST), dead_or_planned),
    Pair("requeue/finish of the slot", letter, requeues(1, True), settles(), moved_and_accepted),
    Pair("cancel/finish", busy(1), cancels, settles(), ended_once),
    Pair("cancel/retry", busy(1), cancels, settles(event=Event.RETRY), ended_once),
    Pair("hand on/finish", blocked, hands_on, settles(), accepted),
)  # fmt: skip
