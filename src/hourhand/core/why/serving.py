"""Whether somebody lives who can run a job: what is missing, in words, and what would change that. Pure."""

from collections.abc import Sequence

import msgspec

from hourhand.core.model import JobSpec, PythonTarget, ShellTarget
from hourhand.core.serving import Serves
from hourhand.core.why.facts import Cause
from hourhand.core.why.phrases import listed


class LiveWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker whose lease runs."""

    name: str
    serves: Serves | None = None  # None where it has not told, as those of older versions


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """Who could plan and take a job's runs now, and how far ahead runs are written."""

    workers: tuple[LiveWorker, ...] = ()
    schedulers: tuple[str, ...] = ()
    horizon_us: int = 0
    alone: bool = False  # one process does it all, and its store takes no other

    @property
    def names(self) -> list[str]:
        """Of the live workers."""
        return [worker.name for worker in self.workers]


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """Why no worker that lives can run a job."""

    cause: Cause
    text: str
    change: str


def obstacle(serving: Serving, spec: JobSpec) -> Obstacle | None:
    """What is missing; None where somebody can run it, or might."""
    if not serving.workers:
        return Obstacle(
            cause=Cause.NO_WORKER, text="no worker lives", change=_for_pool(serving, spec.pool, [])
        )
    told = [worker.serves for worker in serving.workers if worker.serves is not None]
    if len(told) < len(serving.workers):
        return None
    takers = [serves for serves in told if serves.takes(spec)]
    if not takers:
        pools = sorted({pool for serves in told for pool in serves.pools})
        text = f"no live worker serves the pool {spec.pool}; they serve {listed(pools)}"
        return Obstacle(cause=Cause.NO_WORKER, text=text, change=_for_pool(serving, spec.pool, pools))
    if any(serves.runs(spec) for serves in takers):
        return None
    if isinstance(spec.target, PythonTarget):
        text = f"no live worker of the pool {spec.pool} has the function {spec.target.function}"
    else:
        text = f"no live worker of the pool {spec.pool} may run commands"
    return Obstacle(cause=Cause.UNSERVED, text=text, change=for_target(serving, spec))


def for_target(serving: Serving, spec: JobSpec) -> str:
    """What to start, so that somebody can run what a job names."""
    start = "hourhand up" if serving.alone else "hourhand worker"
    match spec.target:
        case PythonTarget(function=function):
            return f"a worker that imports it: {start} --import {function.partition(':')[0]}"
        case ShellTarget():
            return f"a worker that may run commands: {start} --allow-shell"
        case _:
            return "a worker that can run it"


def _for_pool(serving: Serving, pool: str, served: Sequence[str]) -> str:
    if serving.alone:
        return f"serving its pool too: HOURHAND_WORKER_POOLS={','.join([*served, pool])} hourhand up"
    return f"a worker that serves its pool: hourhand worker --pool {pool}"
