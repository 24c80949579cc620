"""One tenant's flood beside another's few runs, in a cluster that has just healed and is at rest (I10).

The flood waits for the same class and pool and takes all places of all workers for a while. Lanes take turns, so the others
wait for a place that becomes free, and for the flood's one turn before theirs, not for its end.
"""

import asyncio
from typing import Any

import msgspec

from hourhand.core.identity import tenant_lane
from hourhand.core.instant import SECOND_US
from hourhand.core.model import EveryTiming, JobSpec, Priority, PythonTarget
from hourhand.services.jobs import NewJob
from tests.sim import checker

FLOODER, OTHER = "flooding", "other"
ATTEMPT_S = 0.5  # that each run of the flood takes
MOST_LATE_S = 2.0  # of the others: a place comes free every half second, and every second turn is theirs
_LASTS_S = 10
_MOST_RUNS = 300
_JOBS = 16  # more than there are places, so that with slots some are always ready to go on


async def flood(world: Any, kind: str) -> list[str]:
    """Let it come, and see how late the others begin."""
    assert tenant_lane(FLOODER) != tenant_lane(OTHER)
    await checker.calm_down(world, 100)
    await checker.wait_for_quiet(world, 5, 900)
    seen = len(world.target.calls)
    life = next(life for life in world.cluster.lives if life.api is not None)
    few = await life.machine.start(_begin(life.api, kind, world.clock.now()))
    await asyncio.sleep(_LASTS_S)
    for job_id in few:
        await life.machine.start(life.api.jobs.pause(OTHER, job_id))
    await checker.wait_for_quiet(world, 5, 900)
    late_s = [
        (call.began_at - call.due_at) / SECOND_US
        for call in world.target.calls[seen:]
        if call.key.job_id in few
    ]
    if len(late_s) < _LASTS_S:
        return [f"I10 only {len(late_s)} runs of the others began beside a flood"]
    if max(late_s) > MOST_LATE_S:
        return [f"I10 a flood made others {max(late_s):.3f} s late, more than {MOST_LATE_S} s"]
    return []


async def _begin(api: Any, kind: str, now_at: int) -> frozenset[int]:
    """All of the flood at once; answers the other tenant's jobs."""
    every_day = EveryTiming(interval_us=86_400 * SECOND_US, phase_at=now_at - SECOND_US)
    spec = JobSpec(
        timing=every_day,
        target=PythonTarget(function=f"ms={ATTEMPT_S * 1000:.0f}"),
        priority=Priority.MEDIUM,
        concurrency=1 if kind == "slots" else None,
        timeout_us=60 * SECOND_US,
    )
    jobs = [
        await api.jobs.create(FLOODER, NewJob(spec=msgspec.structs.replace(spec, name=f"flood-{number}")))
        for number in range(_JOBS)
    ]
    for number in range(_MOST_RUNS):
        await api.jobs.run_now(FLOODER, jobs[number % len(jobs)].id)
    quick = msgspec.structs.replace(spec, target=PythonTarget(function="ms=0"), concurrency=None)
    few = []
    for number in range(3):
        timing = EveryTiming(interval_us=SECOND_US, phase_at=now_at + number * 300_000)
        one = msgspec.structs.replace(quick, timing=timing, name=f"other-{number}")
        few.append(await api.jobs.create(OTHER, NewJob(spec=one)))
    return frozenset(job.id for job in few)
