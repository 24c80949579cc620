"""Graphs as people look at them: who follows whom, how far down each is, and how their runs stand."""

from collections.abc import Sequence

import msgspec

from hourhand.clock import Clock
from hourhand.core.dag import GraphJob, levels, nearest
from hourhand.core.identity import parse_job_id
from hourhand.core.lifecycle import FINAL
from hourhand.core.model import JobState, OnceTiming
from hourhand.errors import NotFound
from hourhand.ports.reading import RunGlance
from hourhand.ports.store import Store
from hourhand.services.foreseen import Foreseen

MAX_SHOWN = 1_000


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a graph."""

    job: GraphJob
    state: JobState
    level: int
    run: RunGlance | None


class GraphView(msgspec.Struct, frozen=True, kw_only=True):
    """A graph, or the part of it that is nearest to a job; by level, then by name."""

    job_id: int
    at: int | None  # the nominal time whose runs are shown; None: the newest of each job
    nodes: tuple[GraphNode, ...]
    truncated: bool


class Graphs:
    """Reads over the store; stateless, any number of instances."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def view(
        self, tenant: str, job_id: int, *, at: int | None = None, latest: bool = False
    ) -> GraphView:
        """A job's graph with the newest run of each, or the runs for one nominal time, the latest that there is."""
        found = {job.id: job for job in await self._store.graph(tenant, job_id)}
        if not found:
            raise NotFound("there is no such job")
        shown = nearest(job_id, found, MAX_SHOWN)
        ids = sorted(shown)
        glances = await self._store.glance(tenant, ids, at)
        if latest and glances:
            at = max(one.scheduled_at for one in glances)
            glances = await self._store.glance(tenant, ids, at)
        runs = {one.job_id: one for one in glances}
        depth = levels({one: job.parents for one, job in shown.items()})
        nodes = [
            GraphNode(
                job=shown[one],
                state=self._state(shown[one], runs.get(one)),
                level=depth[one],
                run=runs.get(one),
            )
            for one in sorted(ids, key=lambda one: (depth[one], shown[one].label, one))
        ]
        return GraphView(job_id=job_id, at=at, nodes=tuple(nodes), truncated=len(shown) < len(found))

    async def followers(self, tenant: str, job_id: int) -> list[GraphJob]:
        """All that follow a job, however far down."""
        jobs = await self._store.graph(tenant, job_id)
        below = {job_id}
        depth = levels({job.id: job.parents for job in jobs})
        for job in sorted(jobs, key=lambda job: depth[job.id]):
            if not below.isdisjoint(job.parents):
                below.add(job.id)
        return [job for job in jobs if job.id in below and job.id != job_id]

    async def names(self, tenant: str, ids: Sequence[int]) -> dict[int, str]:
        """What people call some jobs; those without a name or key are left out."""
        if not ids:
            return {}
        jobs = await self._store.peek_jobs(tenant, sorted(set(ids)))
        return {job.id: name for job in jobs if (name := job.name or job.key)}

    async def find(
        self, tenant: str, references: Sequence[str], foreseen: Foreseen | None = None
    ) -> list[int | None]:
        """The jobs that ids and keys mean; None where there is none."""
        found = [await self._find(tenant, text, foreseen) for text in references]
        asked = [one for one in found if one is not None and not (foreseen and foreseen.has(one))]
        there = {job.id for job in await self._store.peek_jobs(tenant, sorted(set(asked)))} if asked else ()
        return [None if one in asked and one not in there else one for one in found]

    async def _find(self, tenant: str, text: str, foreseen: Foreseen | None) -> int | None:
        try:
            return parse_job_id(text)
        except ValueError:
            pass
        stored = await self._store.find_jobs(tenant, text, limit=0)
        if stored:
            return stored[0].id
        return None if foreseen is None else foreseen.by_key(text)

    def _state(self, job: GraphJob, run: RunGlance | None) -> JobState:
        if job.paused:
            return JobState.PAUSED
        over = run is not None and run.state in FINAL if isinstance(job.timing, OnceTiming) else False
        return JobState.COMPLETED if over or job.until < self._clock.now() else JobState.ACTIVE
