"""What a request that writes nothing would leave behind: jobs as they would be, and whether their graph may be so.

One `Foreseen` serves all documents of a request, since one may follow another that is not stored either. What is
stored is checked again under the store's locks; this only says the same beforehand.
"""

from collections.abc import Iterable

import msgspec

from hourhand.core.dag import GraphFault, GraphJob, around, check, roots_hint
from hourhand.core.fault import Fault
from hourhand.core.identity import shard_of
from hourhand.core.model import AfterTiming, Job, JobSpec, JobState
from hourhand.core.plan import last_time
from hourhand.errors import HourhandError, Invalid
from hourhand.ports.store import JobEdit, Store
from hourhand.services.foreseen_use import ForeseenUse


class Foreseen:
    """A tenant's graph with jobs that would be created and changes that would be made."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._jobs: dict[int, GraphJob] = {}
        self._children: dict[int, set[int]] = {}
        self._loaded: set[int] = set()
        self._keys: dict[str, int] = {}
        self._created: set[int] = set()
        self.use = ForeseenUse(store, tenant)

    def by_key(self, key: str) -> int | None:
        """The id that stands for a job that would be created with this key."""
        return self._keys.get(key)

    def has(self, job_id: int) -> bool:
        """Whether an id stands for a job that would be created."""
        return job_id in self._created

    async def check(self, job: GraphJob, *, with_roots: bool = False) -> None:
        """Take a job to be as it would become; Invalid says what stands against it, and then nothing is taken."""
        if with_roots and isinstance(job.timing, AfterTiming):
            raise unfit("only roots have times that others can share")
        await self._load([job.id, *job.parents])
        before = {one: self._jobs.get(one) for one in (job.id, *(self._roots(job) if with_roots else ()))}
        for one, was in before.items():
            self._assume(job if was is None or one == job.id else _with_timing_of(was, job))
        try:
            check(job, around(job.id, self._jobs, self._children))
        except GraphFault as fault:
            for one, was in before.items():
                self._forget(one)
                if was is not None:
                    self._assume(was)
            raise unfit(str(fault), roots_hint(job, fault)) from None

    async def create(self, job: GraphJob, spec: JobSpec) -> None:
        """Let documents that come later follow a job that would be created; raises what stands against it."""
        if job.parents:
            await self.check(job)
        try:
            await self.use.create(shard_of(job.id), spec)
        except HourhandError:
            self._forget(job.id)
            raise
        self._assume(job)
        self._created.add(job.id)
        if job.key is not None:
            self._keys[job.key] = job.id

    def _roots(self, job: GraphJob) -> list[int]:
        graph = around(job.id, self._jobs, self._children)
        return [
            one for one, other in graph.items() if one != job.id and not isinstance(other.timing, AfterTiming)
        ]

    async def _load(self, ids: Iterable[int]) -> None:
        for job_id in ids:
            if job_id in self._loaded or job_id in self._jobs:
                continue
            for job in await self._store.graph(self._tenant, job_id):
                self._loaded.add(job.id)
                if job.id not in self._jobs:
                    self._assume(job)

    def _assume(self, job: GraphJob) -> None:
        self._forget(job.id)
        self._jobs[job.id] = job
        for parent in job.parents:
            self._children.setdefault(parent, set()).add(job.id)

    def _forget(self, job_id: int) -> None:
        before = self._jobs.pop(job_id, None)
        for parent in before.parents if before else ():
            self._children[parent].discard(job_id)


def unfit(why: str, hint: str | None = None) -> Invalid:
    """A refusal of whom a job is to follow."""
    return Invalid(why, [Fault(pointer="/after", expected="jobs that it may follow", hint=hint)])


def graph_job(job_id: int, spec: JobSpec) -> GraphJob:
    """A job as its graph sees it."""
    return GraphJob(id=job_id, name=spec.name, timing=spec.timing, key=spec.key)


def would_be(
    tenant: str, spec: JobSpec, now_at: int, *, paused: bool = False, note: str | None = None
) -> Job:
    """A job that would be created; it has no id yet."""
    since = _since(spec, now_at)
    return Job(
        id=0,
        tenant=tenant,
        spec=spec,
        state=JobState.PAUSED if paused else JobState.ACTIVE,
        note=note,
        since=since,
        until=last_time(spec, spec.rule, since, used=0),
        created_at=now_at,
        updated_at=now_at,
    )


def would_become(job: Job, edit: JobEdit, now_at: int) -> Job:
    """A job as an edit would leave it; `max_runs` counts anew here."""
    since = _since(edit.spec, now_at)
    return msgspec.structs.replace(
        job,
        spec=edit.spec,
        version=job.version + 1,
        state=JobState.PAUSED if edit.paused else JobState.ACTIVE,
        note=edit.note,
        paused_until=edit.paused_until,
        since=since,
        until=last_time(edit.spec, edit.spec.rule, since, used=0),
        updated_at=now_at,
    )


def _since(spec: JobSpec, now_at: int) -> int:
    return now_at if spec.starts_at is None else max(now_at, spec.starts_at - 1)


def _with_timing_of(job: GraphJob, other: GraphJob) -> GraphJob:
    return msgspec.structs.replace(job, timing=other.timing)
