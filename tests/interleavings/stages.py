"""What pairs of operations find: jobs, workers, and runs in some of their states."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hourhand.core.backfill import BackfillSpec, new_backfill
from hourhand.core.instant import DAY_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import MAX_QUEUED, AfterTiming, Job, Misfire, MisfirePolicy, Overlap
from hourhand.core.run import ClaimedRun, Settlement
from tests.contract.builders import every, outcome_of_stray, spec
from tests.contract.harness import LEAD_US, START_AT
from tests.contract.scene import Scene

HORIZON_US = 4 * SECOND_US  # how far planners of pairs look
_FIRST_ID = 5_000_000_000
_SECOND_ID = 5_000_000_007
_THIRD_ID = 5_000_000_014
_CHILD_ID = 5_000_000_021
T = START_AT + 60 * SECOND_US


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


async def two_taken(scene: Scene) -> Stage:
    """Both slots of a job are taken, and one run waits for one."""
    stage = await busy(2)(scene)
    assert await scene.take(stage.nodes[1]) == []
    return stage


async def long_queue(scene: Scene) -> Stage:
    """The slot of a job is taken, nearly as many runs wait for it as may, and more are due; and two workers."""
    misfire = Misfire(grace_us=DAY_US)
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE, misfire=misfire), id=_FIRST_ID)
    await scene.plan((MAX_QUEUED + 4) * SECOND_US)
    scene.pass_time(1)
    nodes = [await scene.worker(), await scene.worker()]
    runs = await scene.take(nodes[0], lead_us=0)
    scene.pass_time(MAX_QUEUED - 1)
    assert await scene.take(nodes[0], room=MAX_QUEUED, lead_us=0) == []
    assert len((await scene.tables()).blocked) == MAX_QUEUED - 1
    scene.pass_time(3)
    return Stage([job], nodes, runs)


async def missed(scene: Scene) -> Stage:
    """The slot of a job is taken, two of its missed times wait for it, more than that it does not make up for; and more are due."""
    misfire = Misfire(policy=MisfirePolicy.CATCH_UP, grace_us=0, limit=2)
    job = await scene.create(spec(every(1), overlap=Overlap.QUEUE, misfire=misfire), id=_FIRST_ID)
    await scene.plan(8 * SECOND_US + 1)
    scene.pass_time(1)
    nodes = [await scene.worker(), await scene.worker()]
    runs = await scene.take(nodes[0], lead_us=0)
    scene.pass_time(4.5)
    assert await scene.take(nodes[0], lead_us=0) == []
    scene.pass_time(3)
    return Stage([job], nodes, runs)


async def lowered(scene: Scene) -> Stage:
    """Three slots of a job are taken, a run is due, and the limit was lowered to two."""
    stage = await busy(3)(scene)
    await scene.change(stage.job, concurrency=2)
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
    return Stage([job], [await scene.worker()])


async def asleep(scene: Scene) -> Stage:
    """A job that was paused, whose clock has nobody left to plan for and sleeps."""
    stage = await unplanned(scene)
    await scene.pause(stage.job)
    scene.pass_time(10)
    await scene.plan(HORIZON_US)
    return stage


async def set_back(scene: Scene) -> Stage:
    """Some runs of a job have ended, and then the clock was set back to before them."""
    job = await scene.create(spec(every(1), concurrency=None), id=_FIRST_ID)
    await scene.plan(6 * SECOND_US)
    scene.pass_time(4)
    node = await scene.worker()
    await scene.finish(await scene.take(node))
    scene.pass_time(-3.3)
    return Stage([job], [node])


async def edited_and_set_back(scene: Scene) -> Stage:
    """A job was changed, and then the clock was set back to before that."""
    job = await scene.create(spec(every(1), concurrency=None), id=_FIRST_ID)
    scene.pass_time(4)
    await scene.change(job, timing=every(1.5))
    scene.pass_time(-3.3)
    return Stage([job], [await scene.worker()])


async def skipped(scene: Scene) -> Stage:
    """The next time of a job is not to run; it has come, and the clock has not been planned that far."""
    stage = await unplanned(scene)
    skip = await scene.store.skip_time(stage.job.tenant, stage.job.id, None, None)
    assert skip is not None
    scene.go_to(skip.scheduled_at)
    return stage


async def late(scene: Scene) -> Stage:
    """A clock that nobody planned for minutes, and whose newest times are to be caught up with."""
    misfire = Misfire(policy=MisfirePolicy.CATCH_UP, limit=2)
    job = await scene.create(spec(every(60), misfire=misfire, concurrency=None), id=_FIRST_ID)
    scene.pass_time(4 * 60)
    return Stage([job], [await scene.worker()])


async def behind(scene: Scene) -> Stage:
    """The same, and a backfill over what it missed and what was before."""
    stage = await late(scene)
    await backfill_of(scene, stage.job, START_AT - 3 * MINUTE_US)
    return stage


async def backfill_of(scene: Scene, job: Job, from_at: int) -> None:
    """A backfill of a job up to now."""
    wanted = BackfillSpec(from_at=from_at, to_at=scene.now - 1)
    made = await scene.store.add_backfill(
        job.tenant, job.id, lambda job, now_at: new_backfill(1, job, wanted, now_at, 100 * DAY_US)
    )
    assert made is not None


async def ran_before(scene: Scene) -> Stage:
    """Some times of a job have run, and there is a backfill over all of them."""
    job = await scene.create(spec(every(1), concurrency=None), id=_FIRST_ID)
    await scene.plan(HORIZON_US)
    scene.pass_time(2)
    node = await scene.worker()
    await scene.finish(await scene.take(node, lead_us=0))
    await backfill_of(scene, job, START_AT - 2 * SECOND_US)
    return Stage([job], [node])


async def two_parents(scene: Scene, *others: Job, wait_us: int = DAY_US) -> Stage:
    """A job that follows two others, whose runs are in a worker's hand."""
    first = await scene.create(spec(every(60)), id=_FIRST_ID)
    second = await scene.create(spec(every(60)), id=_SECOND_ID)
    timing = AfterTiming(parents=(first.id, second.id, *(job.id for job in others)), wait_us=wait_us)
    child = await scene.create(spec(timing), id=_CHILD_ID)
    await scene.plan(61 * SECOND_US)
    scene.go_to(T)
    node = await scene.worker()
    runs = sorted(await scene.take(node, lead_us=0), key=lambda run: run.job_id)
    assert [run.job_id for run in runs][:2] == [first.id, second.id]
    return Stage([child, first, second, *others], [node], runs)


async def waited_too_long(scene: Scene) -> Stage:
    """One of the two has ended, and its dependent has waited for the other for as long as it may."""
    stage = await two_parents(scene, wait_us=MINUTE_US)
    await scene.finish(stage.runs[0])
    assert await scene.store.descend(10) == 1
    scene.pass_time(61)
    return stage


async def taken_ahead(scene: Scene) -> Stage:
    """A worker took a run ahead of its time, and its lease ended before that came; another one is there."""
    job = await scene.create(spec(every(60)), id=_FIRST_ID)
    await scene.plan(61 * SECOND_US)
    scene.go_to(T - LEAD_US)
    holder = await scene.worker(SECOND_US)
    runs = await scene.take(holder)
    assert [run.due_at for run in runs] == [T]
    scene.pass_time(1.1)
    return Stage([job], [holder, await scene.worker()], runs)


async def lost(scene: Scene) -> Stage:
    """A worker whose lease is over has a run in hand; another one waits for its slot."""
    stage = await busy(1, lease_us=2 * SECOND_US)(scene)
    scene.pass_time(3)
    return stage


async def swept(scene: Scene) -> Stage:
    """The run of a lost worker was given back, and may be claimed again."""
    stage = await lost(scene)
    await sweep(scene)
    return stage


async def sweep(scene: Scene) -> tuple[list[Settlement], list[Settlement]]:
    """Take runs from lost workers; says what it tried to settle, and what of it was refused."""
    strays = await scene.store.stray_runs(0, 10)
    ends = [
        outcome_of_stray(stray, Event.RETRY, now_at=scene.now, tries=stray.tries + 1, due_at=scene.now)
        for stray in strays
    ]
    return ends, await scene.settle(*ends)


async def given_back(scene: Scene) -> Stage:
    """The same, and two workers who could go on with it."""
    stage = await swept(scene)
    return Stage(stage.jobs, [stage.nodes[1], await scene.worker()], stage.runs)


async def overdue(scene: Scene) -> Stage:
    """Runs of a job that nobody took in time, so that only the newest is to run."""
    misfire = Misfire(policy=MisfirePolicy.RUN_ONCE, grace_us=SECOND_US)
    job = await scene.create(spec(every(1), misfire=misfire), id=_FIRST_ID)
    await scene.plan(5 * SECOND_US + 1)
    scene.pass_time(5.5)
    return Stage([job], [await scene.worker()])


async def accepted_by_its_target(scene: Scene) -> Stage:
    """A run that waits for the report of its target, and whose deadline has come."""
    job = await scene.create(spec(every(60), timeout_us=SECOND_US), id=_FIRST_ID)
    await scene.plan(61 * SECOND_US)
    scene.go_to(T)
    node = await scene.worker()
    [run] = await scene.take(node, lead_us=0)
    await scene.finish(run, Event.REPORT_LATER)
    scene.pass_time(2)
    return Stage([job], [node], [run])


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
    scene.go_to(T)
    node = await scene.worker()
    runs = await scene.take(node, lead_us=0)
    await scene.finish(runs)
    return Stage([child, parent], [node], runs)


async def two_chains(scene: Scene) -> Stage:
    """Two jobs, each with one that follows it, all below the same one; the chains could come to follow each other."""
    root = await scene.create(spec(every(60)), id=_FIRST_ID)
    jobs: list[Job] = []
    for first, second in ((_SECOND_ID, _THIRD_ID), (_CHILD_ID, _CHILD_ID + 7)):
        above = AfterTiming(parents=(root.id,), wait_us=DAY_US)
        jobs.append(await scene.create(spec(above), id=first))
        jobs.append(await scene.create(spec(AfterTiming(parents=(first,), wait_us=DAY_US)), id=second))
    return Stage(jobs)


async def two_beside_a_root(scene: Scene) -> Stage:
    """Two jobs that follow the same one, and could come to follow each other."""
    root = await scene.create(spec(every(60)), id=_FIRST_ID)
    timing = AfterTiming(parents=(root.id,), wait_us=DAY_US)
    return Stage([await scene.create(spec(timing), id=one) for one in (_SECOND_ID, _CHILD_ID)])
