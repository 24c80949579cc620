"""Hints: after a commit that somebody may wait for, those who wait are told; never before it."""

from collections.abc import Awaitable, Callable

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import Misfire, MisfirePolicy, Overlap
from hourhand.errors import Conflict
from hourhand.ports.store import Hint, JobEdit
from tests.contract.builders import every, once, spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene

CASES: dict[str, set[Hint]] = {
    "create recurring": {Hint.CLOCKS, Hint.JOBS},
    "create single": {Hint.RUNS, Hint.JOBS},
    "resume": {Hint.CLOCKS, Hint.JOBS},
    "pause until": {Hint.JOBS},
    "plan": {Hint.RUNS},
    "run now": {Hint.RUNS},
    "retry": {Hint.RUNS},
    "release": {Hint.RUNS},
    "slot handed on": {Hint.RUNS},
    "requeue": {Hint.RUNS},
    "cancel": {Hint.CANCEL},
    "delete and cancel": {Hint.CANCEL},
    "overlap cancels": {Hint.CANCEL},
    "caught up": {Hint.RUNS},
    "hand on": {Hint.RUNS},
    "pool changed": {Hint.RUNS},
}


@pytest.mark.parametrize("case", CASES)
async def test_a_commit_that_matters_is_told(scene: Scene, case: str) -> None:
    act = await _prepared(scene, case)
    heard: set[Hint] = set()
    scene.store.subscribe(heard.add)
    await act()
    await scene.harness.settled()
    assert CASES[case] <= heard


async def test_a_refused_change_tells_nothing(scene: Scene) -> None:
    job = await scene.create()
    await scene.harness.settled()
    heard: list[Hint] = []
    scene.store.subscribe(heard.append)

    def decide(present: object, now_at: int) -> JobEdit:
        raise Conflict("no")

    with pytest.raises(Conflict):
        await scene.store.change_job("default", job.id, decide)
    await scene.store.get_job("default", job.id)
    await scene.claim(await scene.worker())
    await scene.harness.settled()
    assert heard == []


async def test_everyone_who_waits_is_told(scene: Scene) -> None:
    first: list[Hint] = []
    second: list[Hint] = []
    scene.store.subscribe(first.append)
    scene.store.subscribe(second.append)
    await scene.create(spec(once(START_AT)))
    await scene.harness.settled()
    assert first == second != []


async def _prepared(scene: Scene, case: str) -> Callable[[], Awaitable[object]]:
    """Everything up to the act itself, and the act."""
    store = scene.store
    if case == "create recurring":
        return lambda: scene.create(spec(every(60)))
    if case == "create single":
        return lambda: scene.create(spec(once(START_AT + 1)))
    overlap = Overlap.CANCEL_RUNNING if case == "overlap cancels" else Overlap.QUEUE
    policy = MisfirePolicy.CATCH_UP if case == "caught up" else MisfirePolicy.RUN_ONCE
    misfire = Misfire(policy=policy, grace_us=30 * SECOND_US)
    job = await scene.create(
        spec(every(1), overlap=overlap, misfire=misfire), paused=case in ("resume", "pause until")
    )
    match case:
        case "resume":
            return lambda: scene.resume(job)
        case "pause until":
            return lambda: scene.pause(job, START_AT + SECOND_US)
        case "plan":
            return scene.plan
        case "run now":
            return lambda: scene.run_now(job)
    await scene.plan()
    if case == "caught up":
        scene.pass_time(45)
        return lambda: store.judge_late({}, 100)
    if case == "pool changed":
        return lambda: scene.change(job, pool="other")
    node = await scene.worker()
    scene.pass_time(1)
    [run] = await scene.take(node, lead_us=0)
    key = RunKey(job.id, run.scheduled_at)
    scene.pass_time(1)
    match case:
        case "retry":
            return lambda: scene.finish(run, Event.RETRY, tries=1, due_at=scene.now)
        case "release":
            return lambda: scene.finish(run, Event.RELEASE)
        case "cancel":
            return lambda: store.cancel_run("default", key)
        case "delete and cancel":
            return lambda: scene.delete(job, cancel_running=True)
        case "overlap cancels":
            return lambda: scene.take(node, lead_us=0)
        case "requeue":
            await scene.kill(run)
            return lambda: store.requeue("default", [key])
    await scene.take(node, lead_us=0)
    if case == "slot handed on":
        return lambda: scene.finish(run)
    assert case == "hand on"
    await scene.change(job, concurrency=2)
    return lambda: store.hand_on_slots(10)
