"""Whether somebody lives who can run a job: what is missing, in words, and what would change that. Pure."""

from collections.abc import Sequence

import msgspec

from hourhand.core.model import JobSpec, PythonTarget
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
        change = f"a worker that serves its pool: hourhand worker --pool {spec.pool}"
        return Obstacle(cause=Cause.NO_WORKER, text="no worker lives", change=change)
    told = [worker.serves for worker in serving.workers if worker.serves is not None]
    if len(told) < len(serving.workers):
        return None
    takers = [serves for serves in told if serves.takes(spec)]
    if not takers:
        text = f"no live worker serves the pool {spec.pool}; they serve {listed(_pools(told))}"
        change = f"a worker that serves its pool: hourhand worker --pool {spec.pool}"
        return Obstacle(cause=Cause.NO_WORKER, text=text, change=change)
    if any(serves.runs(spec) for serves in takers):
        return None
    if isinstance(spec.target, PythonTarget):
        return Obstacle(
            cause=Cause.UNSERVED,
            text=f"no live worker of the pool {spec.pool} has the function {spec.target.function}",
            change=f"a worker that imports it: hourhand worker --import {spec.target.function.partition(':')[0]}",
        )
    return Obstacle(
        cause=Cause.UNSERVED,
        text=f"no live worker of the pool {spec.pool} may run commands",
        change="a worker that may: hourhand worker --allow-shell",
    )


def _pools(told: Sequence[Serves]) -> list[str]:
    return sorted({pool for serves in told for pool in serves.pools})
