"""The use cases of jobs: create, read, change, pause, resume, delete, run now.

Checks what a document's shape cannot say (limits, headers, bounds), and leaves atomicity to the store.
Runs and dead letters have their own module, `services.runs`.
"""

from collections.abc import Callable, Sequence

import msgspec

from hourhand.clock import Clock
from hourhand.core.identity import RunKey, parse_job_id
from hourhand.core.instant import SECOND_US
from hourhand.core.model import Job, JobSpec, OnceTiming, Version
from hourhand.core.specification import SpecLimits, faults_in
from hourhand.errors import Ambiguous, Conflict, Fault, HourhandError, Invalid, NotFound, Outdated
from hourhand.ids import IdSource
from hourhand.ports.store import Changed, JobDraft, JobEdit, JobPage, JobQuery, Refusal, Store

MAX_BULK = 1_000
_ID_DRAWS = 4


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that somebody asks for, already in the store's shape."""

    spec: JobSpec
    paused: bool = False
    note: str | None = None


class Jobs:
    """Use cases over the store; stateless, any number of instances."""

    def __init__(self, *, store: Store, ids: IdSource, clock: Clock, limits: SpecLimits) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._limits = limits

    async def create(self, tenant: str, new: NewJob) -> Job:
        """Store one job; raises what `create_many` would answer for it."""
        answer = (await self.create_many(tenant, [new]))[0]
        if isinstance(answer, HourhandError):
            raise answer
        return answer

    async def create_many(self, tenant: str, news: Sequence[NewJob]) -> list[Job | HourhandError]:
        """Store each that is right; the others get their error, in the same order."""
        answers: list[Job | HourhandError | None] = [self._refusal(new.spec) for new in news]
        todo = [index for index, answer in enumerate(answers) if answer is None]
        for _ in range(_ID_DRAWS):  # ids are drawn; a clash with another process is drawn again
            if not todo:
                break
            drafts = [
                JobDraft(
                    id=self._ids.job_id(),
                    tenant=tenant,
                    spec=news[index].spec,
                    paused=news[index].paused,
                    note=news[index].note,
                )
                for index in todo
            ]
            clashed = []
            for index, answer in zip(todo, await self._store.create_jobs(drafts), strict=True):
                match answer:
                    case Refusal.ID_TAKEN:
                        clashed.append(index)
                    case Refusal.KEY_TAKEN:
                        answers[index] = Conflict(f"the key {news[index].spec.key!r} belongs to another job")
                    case _:
                        answers[index] = answer
            todo = clashed
        return [Conflict("no free job id could be drawn; try again") if a is None else a for a in answers]

    async def get(self, tenant: str, job_id: int) -> Job:
        """One job, or NotFound."""
        job = await self._store.get_job(tenant, job_id)
        if job is None:
            raise NotFound("there is no such job")
        return job

    async def resolve(self, tenant: str, reference: str) -> Job:
        """The job that an id, a key or an unambiguous name means."""
        try:
            job_id = parse_job_id(reference)
        except ValueError:
            pass
        else:
            return await self.get(tenant, job_id)
        found = await self._store.find_jobs(tenant, reference, limit=3)
        if not found:
            raise NotFound(f"no job has the id, key or name {reference[:200]!r}")
        if len(found) > 1:
            raise Ambiguous(f"several jobs are named {reference[:200]!r}; use an id or a key")
        return found[0]

    async def list(self, tenant: str, query: JobQuery) -> JobPage:
        """A page of jobs, newest first."""
        return await self._store.list_jobs(tenant, query)

    async def versions(self, tenant: str, job_id: int) -> list[Version]:
        """All versions of a job, oldest first."""
        await self.get(tenant, job_id)
        return await self._store.versions(tenant, job_id)

    async def update(
        self,
        tenant: str,
        job_id: int,
        change: Callable[[Job, int], NewJob],
        expected_version: int | None = None,
    ) -> Changed:
        """Make a new version from the present one; `change` may be called more than once."""

        def decide(job: Job, now_at: int) -> JobEdit:
            if expected_version is not None and job.version != expected_version:
                raise Outdated(
                    f"the job is at version {job.version} now, not {expected_version}; read it again"
                )
            new = change(job, now_at)
            refusal = self._refusal(new.spec)
            if refusal is not None:
                raise refusal
            if new.spec.shard_key != job.spec.shard_key:
                raise Invalid(
                    "shard_key cannot be changed",
                    [
                        Fault(
                            pointer="/shard_key",
                            expected="what it was at creation",
                            got=repr(new.spec.shard_key),
                        )
                    ],
                )
            until = job.paused_until if new.paused else None
            return JobEdit(spec=new.spec, paused=new.paused, note=new.note, paused_until=until)

        return await self._change(tenant, job_id, decide)

    async def pause(
        self, tenant: str, job_id: int, *, note: str | None = None, until_at: int | None = None
    ) -> Changed:
        """Stop making runs from `lead` from now on, until resumed by hand or at `until_at`."""

        def decide(job: Job, now_at: int) -> JobEdit:
            if until_at is not None and until_at <= now_at:
                raise Invalid(
                    "the pause would end before it begins",
                    [Fault(pointer="/until", expected="a time to come", got=str(until_at))],
                )
            return JobEdit(spec=job.spec, paused=True, note=note, paused_until=until_at)

        return await self._change(tenant, job_id, decide)

    async def resume(self, tenant: str, job_id: int) -> Changed:
        """Make runs again; what passed while paused is not made up."""

        def decide(job: Job, now_at: int) -> JobEdit:
            return JobEdit(spec=job.spec, paused=False)

        return await self._change(tenant, job_id, decide)

    async def delete(self, tenant: str, job_id: int, *, cancel_running: bool = False) -> Changed:
        """Remove a job; a running run finishes unless told otherwise."""
        changed = await self._store.delete_job(tenant, job_id, cancel_running)
        if changed is None:
            raise NotFound("there is no such job")
        return changed

    async def run_now(self, tenant: str, job_id: int, *, request_key: str | None = None) -> RunKey:
        """A run beside the schedule, due at once; the same request key gives the same run."""
        key = await self._store.add_run(tenant, job_id, request_key)
        if key is None:
            raise NotFound("there is no such job")
        return key

    def next_times(self, job: Job, count: int) -> list[int]:
        """The coming nominal times of a job by its present version, within its bounds."""
        now_at = self._clock.now()
        if job.state != "active":
            return []
        rule = job.spec.rule
        if rule is None:
            assert isinstance(job.spec.timing, OnceTiming)
            return [job.spec.timing.at] if job.spec.timing.at > now_at - SECOND_US else []
        return rule.times(max(now_at, job.since), job.until, count)

    async def _change(self, tenant: str, job_id: int, decide: Callable[[Job, int], JobEdit]) -> Changed:
        changed = await self._store.change_job(tenant, job_id, decide)
        if changed is None:
            raise NotFound("there is no such job")
        return changed

    def _refusal(self, spec: JobSpec) -> Invalid | None:
        faults = faults_in(spec, self._limits)
        if not faults:
            return None
        first = faults[0]
        return Invalid(f"{first.pointer or 'the job'}: expected {first.expected}", faults)
