"""What the two sides of a pair do: one operation each, sometimes with what its service does around it."""

from collections.abc import Awaitable, Callable
from typing import Any

from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import AfterTiming, Job, Misfire, MisfirePolicy
from hourhand.core.report import Report, ReportOutcome, report_token
from hourhand.errors import Conflict, Invalid
from hourhand.ports.store import Changed, Claim, ClaimRequest, LeaseLost
from hourhand.services.reports import Reports
from hourhand.services.sweeper import Sweeper
from hourhand.telemetry import Telemetry
from tests.contract.builders import draft, every, outcome, spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene
from tests.interleavings.stages import HORIZON_US, Stage, sweep

_NEW_ID = 5_000_000_035
_SECONDS = 8  # of a job that runs every second, more than any stage has planned

Act = Callable[[Scene, Stage], Awaitable[Any]]


def claims(place: int, lead_us: int = 0, room: int = 10) -> Act:
    async def act(scene: Scene, stage: Stage) -> Claim:
        return await scene.claim(stage.nodes[place], room, lead_us=lead_us)

    return act


def names(place: int, lead_us: int = 0) -> Act:
    """As a worker that was told by messages of all that there is, and of some that is not."""

    async def act(scene: Scene, stage: Stage) -> Claim:
        times = (RunKey(stage.job.id, START_AT + second * SECOND_US) for second in range(1, _SECONDS))
        keys = dict.fromkeys([*(run.key for run in stage.runs), *times])
        node_id = stage.nodes[place]
        return await scene.store.claim(
            ClaimRequest(
                node_id=node_id, pools=("default",), room=len(keys), lead_us=lead_us, named=tuple(keys)
            )
        )

    return act


async def claims_in_vain(scene: Scene, stage: Stage) -> Claim | None:
    """As a worker whose lease is over, which it does not know; None where it is told."""
    try:
        return await claims(0)(scene, stage)
    except LeaseLost:
        return None


async def renews_in_vain(scene: Scene, stage: Stage) -> bool:
    """The same of its lease; says whether that was prolonged."""
    try:
        await scene.store.renew_node(stage.nodes[0], "worker", "worker", DAY_US)
    except LeaseLost:
        return False
    return True


def waits_and_claims(place: int, lead_us: int) -> Act:
    """Some seconds pass first, at any moment."""

    async def act(scene: Scene, stage: Stage) -> Claim:
        let_pass = getattr(scene.harness, "let_pass", None)
        if let_pass is None:  # nobody steps it
            scene.pass_time(3)
        else:
            await let_pass(3 * SECOND_US)
        return await claims(place, lead_us)(scene, stage)

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


async def reports_late(scene: Scene, stage: Stage) -> list[Conflict]:
    """The target of an attempt that is over says that it went well; says what was refused."""
    run = stage.runs[0]
    key = await scene.store.report_key(run.job_id)
    assert key is not None
    told = Report(attempt=run.fence, outcome=ReportOutcome.SUCCEEDED)
    try:
        await Reports(store=scene.store).take(run.key, report_token(key, run.run_id, run.fence), told)
    except Conflict as refusal:
        return [refusal]
    return []


async def gives_back(scene: Scene, stage: Stage) -> Any:
    """As a heartbeat that takes what its worker holds for a claim whose answer was lost; says what was refused."""
    held = await scene.store.held_runs(stage.nodes[0])
    runs = [
        run
        for run in stage.runs
        if (run.scheduled_at, run.fence) in {(one.scheduled_at, one.fence) for one in held}
    ]
    return (
        await scene.settle(*(outcome(run, Event.RELEASE, now_at=scene.now) for run in runs)) if runs else None
    )


def ends_and_tells(place: int, event: Event = Event.SUCCEED) -> Act:
    async def act(scene: Scene, stage: Stage) -> Any:
        refused = await settles(place, event)(scene, stage)
        assert refused == []
        return await scene.store.descend(10)

    return act


async def plans(scene: Scene, _: Stage) -> int:
    return await scene.plan(HORIZON_US)


async def sweeps(scene: Scene, _: Stage) -> Any:
    """Says what it tried to settle, and what of it was refused."""
    return await sweep(scene)


async def rescues(scene: Scene, _: Stage) -> Any:
    """As the sweeper does it, by its own decisions."""
    sweeper = Sweeper(store=scene.store, keep_us=DAY_US, dead_keep_us=DAY_US, telemetry=Telemetry())
    return await sweeper.rescue(scene.now)


async def pauses(scene: Scene, stage: Stage) -> Changed:
    return await scene.pause(stage.job)


async def deletes(scene: Scene, stage: Stage) -> Changed:
    return await scene.delete(stage.job)


def tries_to_delete(place: int) -> Act:
    """Says whether it was allowed to."""

    async def act(scene: Scene, stage: Stage) -> bool:
        try:
            await scene.delete(stage.jobs[place])
        except Conflict:
            return False
        return True

    return act


def changes_to(seconds: float) -> Act:
    async def act(scene: Scene, stage: Stage) -> Changed:
        return await scene.change(stage.job, timing=every(seconds))

    return act


async def changes_and_plans(scene: Scene, stage: Stage) -> int:
    await changes_to(1.5)(scene, stage)
    return await plans(scene, stage)


async def plans_and_runs(scene: Scene, stage: Stage) -> int:
    """Plans, and a worker takes and ends what is near."""
    await plans(scene, stage)
    claim = await claims(0, SECOND_US)(scene, stage)
    refused = await scene.settle(*(outcome(run, now_at=scene.now) for run in claim.runs))
    return len(claim.runs) - len(refused)


async def forgives(scene: Scene, stage: Stage) -> Changed:
    """Another policy for what was missed."""
    return await scene.change(stage.job, misfire=Misfire(policy=MisfirePolicy.RUN_ONCE))


async def joins(scene: Scene, stage: Stage) -> Job:
    """Another job on the same clock."""
    job = await scene.twin(stage.job)
    stage.jobs.append(job)
    return job


async def feeds(scene: Scene, _: Stage) -> Any:
    return await scene.store.feed_backfill(1)


async def feeds_and_runs(scene: Scene, stage: Stage) -> Any:
    """Feeds, and a worker takes and ends what there is."""
    await feeds(scene, stage)
    claim = await claims(0, SECOND_US)(scene, stage)
    return await scene.settle(*(outcome(run, now_at=scene.now) for run in claim.runs))


async def ends_skips(scene: Scene, _: Stage) -> int:
    return await scene.store.end_skips(10)


async def cancels_the_skipped(scene: Scene, stage: Stage) -> Any:
    """Says whether it was allowed to."""
    try:
        return await scene.store.cancel_run(stage.job.tenant, RunKey(stage.job.id, START_AT + SECOND_US))
    except Conflict:
        return None


async def resumes(scene: Scene, stage: Stage) -> Changed:
    return await scene.resume(stage.job)


async def descends(scene: Scene, _: Stage) -> int:
    return await scene.store.descend(10)


async def looks_at_waits(scene: Scene, _: Stage) -> int:
    """As the sweeper does now and then."""
    return await scene.store.judge_waits(10)


async def runs_now(scene: Scene, stage: Stage) -> Any:
    """With the key of one request."""
    return await scene.run_now(stage.job, "the same")


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


async def follows_from_the_start(scene: Scene, stage: Stage) -> bool:
    """A new job that follows another; says whether it was allowed to."""
    timing = AfterTiming(parents=(stage.jobs[1].id,), wait_us=DAY_US)
    [made] = await scene.store.create_jobs([draft(spec(timing), id=_NEW_ID)])
    return isinstance(made, Job)


async def skips_the_next(scene: Scene, stage: Stage) -> int | None:
    """Says which time that was, if it was not too late."""
    try:
        skip = await scene.store.skip_time(stage.job.tenant, stage.job.id, None, None)
    except Conflict:
        return None
    assert skip is not None
    return skip.scheduled_at


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
