"""Graphs for the contract suite: jobs that follow others, times at which they fire, and levels that run."""

from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import AfterTiming, Job
from tests.contract.builders import spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene

T = START_AT + 60 * SECOND_US
NEXT = T + 60 * SECOND_US


def after(*parents: Job, wait_us: int = DAY_US) -> AfterTiming:
    return AfterTiming(parents=tuple(sorted(parent.id for parent in parents)), wait_us=wait_us)


async def follow(scene: Scene, *parents: Job, **fields: object) -> Job:
    timing = after(*parents, wait_us=fields.pop("wait_us", DAY_US))  # type: ignore[arg-type]
    return await scene.create(spec(timing, **fields))


async def fire(scene: Scene, at: int = T) -> None:
    """Plan, and come to a nominal time."""
    await scene.plan(90 * SECOND_US)
    scene.go_to(at)


async def descend(scene: Scene) -> None:
    for _ in range(100):
        if not await scene.store.descend(100):
            return
    raise AssertionError("descents go on for ever")


async def run_level(scene: Scene, node: int, **events: Event) -> list[int]:
    """Take what is due and end it, all as succeeded unless a job's name says otherwise; who that was."""
    runs = await scene.take(node, lead_us=0)
    for run in runs:
        event = events.get(run.spec.name, Event.SUCCEED)
        if event is Event.EXHAUST:
            await scene.kill(run)
        else:
            await scene.finish(run, event, detail={"reason": "so"} if event is Event.SKIP else None)
    await descend(scene)
    return sorted(run.job_id for run in runs)
