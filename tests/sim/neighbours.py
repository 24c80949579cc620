"""One run that does harm, and others beside it that must not suffer, in a cluster that has healed and is at rest.

- poison: a payload kills every worker that begins it. It ends in dead letters, and what went down with it succeeds (I8).
- uncommitted: the store takes one outcome for nothing in the world. Those of the same batch are committed without it (I7).
- unanswered: a claim happens and its answer is lost. Its runs are given back with the next heartbeat, at no cost (I7).
"""

import asyncio
from collections import Counter
from typing import Any

import msgspec

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import FINAL, Event, State
from hourhand.core.model import JobSpec, OnceTiming, PythonTarget, Retry
from hourhand.services.jobs import NewJob
from tests.sim import checker

TENANT = "neighbours"
_AFTER_US = 5 * SECOND_US  # beyond the lead, so that one claim takes all of them
_OTHERS = 6
_MOST_S = 300
_HEARTBEAT_US = 13 * SECOND_US  # and what it takes to claim again


async def neighbours(world: Any, scene: str) -> list[str]:
    """Let it come, and see what became of the others."""
    await checker.calm_down(world, 100)
    await checker.wait_for_quiet(world, 5, 900)
    due_at = world.clock.now() + _AFTER_US
    life = next(life for life in world.cluster.lives if life.api is not None)
    culprit, *others = await life.machine.start(_begin(life.api, scene, due_at))
    world.harm = _Harm(scene, culprit)
    await _end(world, [culprit, *others])
    world.harm = None
    await checker.wait_for_quiet(world, 5, 900)
    return _judged(world, scene, culprit, others)


class _Harm:
    """What the network does to one run."""

    def __init__(self, scene: str, key: RunKey) -> None:
        self._scene = scene
        self._key = key
        self._outcome = (key.job_id, 1, Event.SUCCEED)  # of its first attempt
        self._lost = 0

    def refuses(self, verb: str, args: Any) -> bool:
        """Whether the store does not take a call."""
        return (
            self._scene == "uncommitted"
            and verb == "settle"
            and any((one.job_id, one.fence, one.event) == self._outcome for one in args[1])
        )

    def loses(self, verb: str, answer: Any) -> bool:
        """Whether the answer of a call does not arrive: of the first claim that takes the run."""
        if self._scene == "unanswered" and verb == "claim" and not self._lost:
            self._lost = sum(run.job_id == self._key.job_id for run in answer.runs)
            return bool(self._lost)
        return False


async def _begin(api: Any, scene: str, due_at: int) -> list[RunKey]:
    """Jobs that are due at one moment, the culprit first."""
    keys = []
    for number in range(1 + _OTHERS):
        spec = JobSpec(
            timing=OnceTiming(at=due_at),
            target=PythonTarget(function="ms=1000" if scene == "poison" else "ms=0"),
            retry=Retry(max=0 if scene == "unanswered" else 2, first_us=0),
            timeout_us=(60 if scene == "unanswered" else 4) * SECOND_US,
            name=f"{scene}-{number}",
        )
        if scene == "poison" and number == 0:
            spec = msgspec.structs.replace(spec, target=PythonTarget(function="kills=200"))
        job = await api.jobs.create(TENANT, NewJob(spec=spec))
        keys.append(RunKey(job.id, due_at))
    return keys


async def _end(world: Any, keys: list[RunKey]) -> None:
    for _ in range(_MOST_S):
        await asyncio.sleep(1)
        if all(world.watch.runs[tuple(key)].state in FINAL for key in keys):
            return


def _judged(world: Any, scene: str, culprit: RunKey, others: list[RunKey]) -> list[str]:
    ends = {key: world.watch.runs[tuple(key)].state for key in (culprit, *others)}
    called = Counter(call.key for call in world.target.calls)
    began = [call for call in world.target.calls if call.key in ends]
    late_us = max((call.began_at - call.due_at for call in began), default=0)
    harmed = [key for key in others if ends[key] is not State.SUCCEEDED]
    match scene:
        case "poison" if ends[culprit] is not State.FAILED:
            return [f"I8 a payload that kills its workers ended as {ends[culprit]}"]
        case "poison" if harmed:
            return [f"I8 a payload that kills its workers took {len(harmed)} others along"]
        case "uncommitted" if harmed or any(called[key] > 1 for key in others):
            return ["I7 an outcome that cannot be committed holds up others"]
        case "unanswered" if [*harmed, *(key for key in ends if called[key] > 1)] or late_us > _HEARTBEAT_US:
            return [f"I7 a claim whose answer was lost cost {len(harmed)} runs, and {late_us} µs"]
    return []
