"""The use cases of jobs: create, read, change, pause, resume, delete, run now, skip a time.

Checks what a document's shape cannot say (limits, headers, bounds), and leaves atomicity to the store.
Runs and dead letters have their own module, `services.runs`.
"""

from collections.abc import Callable, Sequence

import msgspec

from hourhand.clock import Clock
from hourhand.core.buckets import split_graph_fault
from hourhand.core.dag import parents_of, still_followed
from hourhand.core.deeds import Act
from hourhand.core.fault import Fault
from hourhand.core.identity import RunKey, parse_job_id, shard_of
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.model import AfterTiming, Job, JobSpec, JobState, OnceTiming, Version
from hourhand.core.quota import OverQuota
from hourhand.core.skipping import MAX_NOTE, NoSuchTime, Skip, time_to_skip
from hourhand.core.specification import SpecLimits, faults_in
from hourhand.errors import (
    Ambiguous,
    Conflict,
    HourhandError,
    Invalid,
    NotFound,
    Outdated,
    Unavailable,
    check_version,
)
from hourhand.ids import IdSource
from hourhand.ports.answers import Numbered, numbered, promise
from hourhand.ports.events import EventType
from hourhand.ports.reading import JobCount, JobPage, JobQuery
from hourhand.ports.store import Changed, Decide, JobDraft, JobEdit, Refusal, Store, Unfit
from hourhand.services.foreseen import Foreseen, graph_job, unfit, would_be, would_become
from hourhand.services.foreseen_use import over_quota

MAX_BULK = 1_000
_ID_DRAWS = 4

JobsChanged = Callable[[EventType, Sequence[Job]], None]  # told once a change is durable; must not raise


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that somebody asks for, already in the store's shape."""

    spec: JobSpec
    paused: bool = False
    note: str | None = None


class Jobs:
    """Use cases over the store; stateless, any number of instances."""

    def __init__(
        self,
        *,
        store: Store,
        ids: IdSource,
        clock: Clock,
        limits: SpecLimits,
        changed: JobsChanged = lambda kind, jobs: None,
    ) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._limits = limits
        self._changed = changed

    def foresee(self, tenant: str) -> Foreseen:
        """What a request of several documents leaves behind that writes nothing."""
        return Foreseen(self._store, tenant)

    async def create(
        self, tenant: str, new: NewJob, *, dry_run: bool = False, foreseen: Foreseen | None = None
    ) -> Job:
        """Store one job; raises what `create_many` would answer for it."""
        answer = (await self.create_many(tenant, [new], dry_run=dry_run, foreseen=foreseen))[0]
        if isinstance(answer, HourhandError):
            raise answer
        return answer

    async def create_many(
        self,
        tenant: str,
        news: Sequence[NewJob],
        *,
        dry_run: bool = False,
        foreseen: Foreseen | None = None,
    ) -> list[Job | HourhandError]:
        """Store each that is right; the others get their error, in the same order.

        A dry run takes jobs to be there that are `foreseen`, and adds its own.
        """
        answers: list[Job | HourhandError | None] = []
        shards: list[int | None] = []
        for new in news:
            refusal, shard = self._place(tenant, new.spec)
            answers.append(refusal)
            shards.append(shard)
        if dry_run:
            return await self._would_create(tenant, news, answers, shards, foreseen or self.foresee(tenant))
        numbers = numbered(len(news))
        await self._recall(tenant, answers, numbers)
        recalled = {answer.id for answer in answers if isinstance(answer, Job)}
        todo = [index for index, answer in enumerate(answers) if answer is None]
        for _ in range(_ID_DRAWS):  # ids are drawn; a clash with another process is drawn again
            if not todo:
                break
            drafts = [
                JobDraft(
                    id=self._ids.job_id(shards[index] or 0),
                    tenant=tenant,
                    spec=news[index].spec,
                    paused=news[index].paused,
                    note=news[index].note,
                    numbered=numbers[index],
                )
                for index in todo
            ]
            clashed = []
            for index, answer in zip(todo, await self._store.create_jobs(drafts), strict=True):
                match answer:
                    case Refusal.ID_TAKEN:
                        clashed.append(index)
                    case Refusal.KEY_TAKEN:
                        answers[index] = _key_taken(news[index].spec.key)
                    case Refusal.UNAVAILABLE:
                        answers[index] = Unavailable("the database for this job does not answer; try again")
                    case Unfit(why=why):
                        answers[index] = unfit(why)
                    case OverQuota():
                        answers[index] = over_quota(answer)
                    case _:
                        answers[index] = answer
            todo = clashed
        created = [answer for answer in answers if isinstance(answer, Job) and answer.id not in recalled]
        if created:
            self._changed(EventType.JOB_CREATED, created)
        return [Conflict("no free job id could be drawn; try again") if a is None else a for a in answers]

    async def _recall(
        self, tenant: str, answers: list[Job | HourhandError | None], numbers: Sequence[Numbered | None]
    ) -> None:
        """Find those that the same request made before, where its answer got lost; they are not made again."""
        under = promise()
        if under is None or not under.made:
            return
        for index, number in enumerate(numbers):
            job_id = None if number is None else under.made.get(number.place)
            if job_id is not None:
                job = await self._store.get_job(tenant, job_id)
                answers[index] = job or NotFound(
                    "this request made the job, and somebody has deleted it since"
                )

    async def get(self, tenant: str, job_id: int, expected_version: int | None = None) -> Job:
        """One job, or NotFound; Outdated where it is at another version than expected."""
        job = await self._store.get_job(tenant, job_id)
        if job is None:
            raise NotFound("there is no such job")
        check_version(job.version, expected_version)
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

    async def other_roots(self, tenant: str, job_id: int) -> list[Job]:
        """The other roots of the graph of a root."""
        graph = await self._store.graph(tenant, job_id)
        return [await self.get(tenant, one.id) for one in graph if one.id != job_id and not one.parents]

    async def page(self, tenant: str, query: JobQuery) -> JobPage:
        """A page of jobs, newest first."""
        return await self._store.list_jobs(tenant, query)

    async def count(self, tenant: str, query: JobQuery) -> JobCount:
        """How many match, cheaply: Invalid where no index knows."""
        asked = [query.set_name, query.name_prefix or None, query.state]
        named = sum(one is not None for one in asked)
        if query.tag is not None or query.failing or named > 1 or query.state not in (None, JobState.PAUSED):
            expected = f"it beside one of set, name and state={JobState.PAUSED}, or beside no filter"
            fault = Fault(pointer="?count", expected=expected, got="another filter")
            raise Invalid(f"count: expected {expected}", [fault])
        return await self._store.count_jobs(tenant, query)

    async def versions(self, tenant: str, job_id: int) -> list[Version]:
        """All versions of a job, oldest first; also of one that was deleted."""
        found = await self._store.versions(tenant, job_id)
        if not found:
            await self.get(tenant, job_id)  # says that it is not there
        return found

    async def makers(self, tenant: str, job_id: int) -> dict[int, str]:
        """Who made which version of a job, as far as it is known."""
        return await self._store.makers(tenant, job_id)

    async def update(
        self,
        tenant: str,
        job_id: int,
        change: Callable[[Job, int], NewJob],
        expected_version: int | None = None,
        *,
        with_roots: bool = False,
        dry_run: bool = False,
        foreseen: Foreseen | None = None,
    ) -> Changed:
        """Make a new version from the present one; `change` may be called more than once.

        With `with_roots` the other roots of its graph get the same times at the same moment.
        """

        def decide(job: Job, now_at: int) -> JobEdit:
            check_version(job.version, expected_version)
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
            self._check_place(job, new.spec)
            until = job.paused_until if new.paused else None
            return JobEdit(spec=new.spec, paused=new.paused, note=new.note, paused_until=until)

        if dry_run:
            foreseen = foreseen or self.foresee(tenant)
            return await self._would_change(tenant, job_id, decide, foreseen, with_roots)
        return await self._change(tenant, job_id, decide, False, EventType.JOB_CHANGED, with_roots)

    async def upsert(
        self,
        tenant: str,
        key: str,
        change: Callable[[Job | None, int], NewJob],
        expected_version: int | None = None,
        *,
        is_there: bool | None = None,
        with_roots: bool = False,
        dry_run: bool = False,
        foreseen: Foreseen | None = None,
    ) -> tuple[Changed, bool]:
        """Create the job with this key or make it what `change` says; True when it was created.

        A document that changes nothing makes no version, so it may be sent as often as one likes. Where `is_there` is
        said, Outdated unless it is so at the moment of the change: of several who want to create it, one does.
        """
        for _ in range(_ID_DRAWS):  # somebody else may create or delete it at the same moment
            job = await self._by_key(tenant, key)
            now_at = self._clock.now()
            if job is None:
                if expected_version is not None or is_there:
                    raise Outdated(f"there is no job with the key {key!r}, so none that could be changed")
                try:
                    new = change(None, now_at)
                    job = await self.create(tenant, new, dry_run=dry_run, foreseen=foreseen)
                except Conflict:
                    continue
                return Changed(job=job, effective_from=job.created_at), True
            if is_there is False:
                raise Outdated(f"there is a job with the key {key!r} already, at version {job.version}")
            if expected_version is None and _is_already(job, change(job, now_at)):
                return _as_it_is(job, now_at), False
            try:
                changed = await self.update(
                    tenant,
                    job.id,
                    change,
                    expected_version,
                    with_roots=with_roots,
                    dry_run=dry_run,
                    foreseen=foreseen,
                )
            except NotFound:
                continue
            return changed, False
        raise Conflict(f"the job with the key {key!r} is being created and deleted by others; try again")

    async def pause(
        self,
        tenant: str,
        job_id: int,
        *,
        note: str | None = None,
        until_at: int | None = None,
        expected_version: int | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """Stop making runs from `lead` from now on, until resumed by hand or at `until_at`."""

        def decide(job: Job, now_at: int) -> JobEdit:
            check_version(job.version, expected_version)
            if until_at is not None and until_at <= now_at:
                raise Invalid(
                    "the pause would end before it begins",
                    [Fault(pointer="/until", expected="a time to come", got=format_instant(until_at))],
                )
            return JobEdit(spec=job.spec, paused=True, note=note, paused_until=until_at, act=Act.JOB_PAUSE)

        return await self._change(tenant, job_id, decide, dry_run, EventType.JOB_PAUSED)

    async def resume(
        self, tenant: str, job_id: int, *, expected_version: int | None = None, dry_run: bool = False
    ) -> Changed:
        """Make runs again; what passed while paused is not made up."""

        def decide(job: Job, now_at: int) -> JobEdit:
            check_version(job.version, expected_version)
            note = None if job.state is JobState.PAUSED else job.note  # which then is not about a pause
            return JobEdit(spec=job.spec, paused=False, note=note, act=Act.JOB_RESUME)

        return await self._change(tenant, job_id, decide, dry_run, EventType.JOB_RESUMED)

    async def delete(
        self,
        tenant: str,
        job_id: int,
        *,
        cancel_running: bool = False,
        expected_version: int | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """Remove a job; a running run finishes unless told otherwise."""
        if dry_run:
            job = await self.get(tenant, job_id, expected_version)
            children = [one for one in await self._store.graph(tenant, job_id) if job_id in one.parents]
            if children:
                raise Conflict(still_followed(children))
            return Changed(job=job, effective_from=self._clock.now())
        changed = await self._store.delete_job(tenant, job_id, cancel_running, version=expected_version)
        if changed is None:
            raise NotFound("there is no such job")
        self._changed(EventType.JOB_DELETED, [changed.job])
        return changed

    async def run_now(
        self,
        tenant: str,
        job_id: int,
        *,
        request_key: str | None = None,
        downstream: bool = False,
        expected_version: int | None = None,
    ) -> RunKey:
        """A run beside the schedule, due at once; the same request key gives the same run.

        With `downstream` all that follow the job have a run after it.
        """
        key = await self._store.add_run(
            tenant, job_id, request_key, downstream=downstream, version=expected_version
        )
        if key is None:
            raise NotFound("there is no such job")
        return key

    async def skip(
        self,
        tenant: str,
        job_id: int,
        at: int | None = None,
        note: str | None = None,
        *,
        expected_version: int | None = None,
        dry_run: bool = False,
    ) -> Skip:
        """Let a coming time pass without a run, the next unless given; it will end as skipped, with the note."""
        if note is not None and len(note) > MAX_NOTE:
            fault = Fault(pointer="/note", expected=f"at most {MAX_NOTE} characters", got=f"{len(note):,}")
            raise Invalid(f"note: expected {fault.expected}", [fault])
        if dry_run:
            job = await self.get(tenant, job_id, expected_version)
            taken = frozenset(skip.scheduled_at for skip in await self.skips(job))
            at = self._time_to_skip(job, at, taken)
            return Skip(job_id=job.id, scheduled_at=at, note=note, made_at=self._clock.now())
        try:
            skip = await self._store.skip_time(tenant, job_id, at, note, version=expected_version)
        except NoSuchTime as error:
            raise Invalid(str(error), [error.fault]) from None
        return _found(skip)

    async def unskip(
        self,
        tenant: str,
        job_id: int,
        at: int | None = None,
        *,
        expected_version: int | None = None,
        dry_run: bool = False,
    ) -> Skip:
        """Let a skipped time run after all, the next skipped one unless given."""
        if dry_run:
            job = await self.get(tenant, job_id, expected_version)
            marked = {skip.scheduled_at: skip for skip in await self.skips(job)}
            found = marked.get(min(marked, default=0) if at is None else at)
            if found is None:
                raise Invalid("at: expected a time that is skipped", [_NOT_SKIPPED])
            return found
        try:
            skip = await self._store.unskip_time(tenant, job_id, at, version=expected_version)
        except NoSuchTime as error:
            raise Invalid(str(error), [error.fault]) from None
        return _found(skip)

    async def skips(self, job: Job) -> list[Skip]:
        """The coming times of a job that will not run, oldest first."""
        return await self._store.skips(job.tenant, job.id)

    def next_times(self, job: Job, count: int) -> list[int]:
        """The coming nominal times of a job by its present version, within its bounds."""
        now_at = self._clock.now()
        if job.state != "active":
            return []
        rule = job.spec.rule
        if isinstance(job.spec.timing, AfterTiming):
            return []  # it follows others, whenever they have succeeded
        if rule is None:
            assert isinstance(job.spec.timing, OnceTiming)
            return [job.spec.timing.at] if job.spec.timing.at > now_at - SECOND_US else []
        return rule.times(max(now_at, job.since), job.until, count)

    def next_at(self, job: Job) -> int | None:
        """The next time a job fires; a one-time job whose time had passed at its creation fires then."""
        coming = self.next_times(job, 1)
        if coming or job.state is not JobState.ACTIVE or not isinstance(job.spec.timing, OnceTiming):
            return coming[0] if coming else None
        return job.created_at if self._clock.now() - job.created_at < SECOND_US else None

    def _time_to_skip(self, job: Job, at: int | None, taken: frozenset[int]) -> int:
        if job.state is not JobState.ACTIVE:
            raise Conflict(f"the job is {job.state} and makes no runs; there is nothing to skip")
        try:
            return time_to_skip(job, at, self._clock.now(), taken)
        except NoSuchTime as error:
            raise Invalid(str(error), [error.fault]) from None

    async def _change(
        self,
        tenant: str,
        job_id: int,
        decide: Decide,
        dry_run: bool,
        kind: EventType,
        with_roots: bool = False,
    ) -> Changed:
        if dry_run:
            return await self._would_change(tenant, job_id, decide, self.foresee(tenant))
        if not with_roots and (same := await self._unchanged(tenant, job_id, decide)) is not None:
            return same
        changed = await self._store.change_job(tenant, job_id, decide, roots_too=with_roots)
        if changed is None:
            raise NotFound("there is no such job")
        self._changed(kind, [changed.job])
        return changed

    async def _unchanged(self, tenant: str, job_id: int, decide: Decide) -> Changed | None:
        """The job as it is, where a change leaves it so: that makes no version, and nobody is told."""
        job = await self._store.get_job(tenant, job_id)
        if job is None:
            return None
        now_at = self._clock.now()
        edit = decide(job, now_at)
        becomes = (edit.spec, edit.paused, edit.note, edit.paused_until)
        is_so = becomes == (job.spec, job.state is JobState.PAUSED, job.note, job.paused_until)
        return _as_it_is(job, now_at) if is_so else None

    async def _would_create(
        self,
        tenant: str,
        news: Sequence[NewJob],
        refusals: Sequence[Job | HourhandError | None],
        shards: Sequence[int | None],
        foreseen: Foreseen,
    ) -> list[Job | HourhandError]:
        """What creating would answer; the jobs have no id yet."""
        now_at = self._clock.now()
        answers: list[Job | HourhandError] = []
        for new, refusal, shard in zip(news, refusals, shards, strict=True):
            key = new.spec.key
            if refusal is not None:
                answers.append(refusal)
                continue
            if key is not None and (foreseen.by_key(key) or await self._by_key(tenant, key) is not None):
                answers.append(_key_taken(key))
                continue
            try:
                await foreseen.create(graph_job(self._ids.job_id(shard or 0), new.spec), new.spec)
            except HourhandError as error:
                answers.append(error)
                continue
            answers.append(would_be(tenant, new.spec, now_at, paused=new.paused, note=new.note))
        return answers

    async def _would_change(
        self, tenant: str, job_id: int, decide: Decide, foreseen: Foreseen, with_roots: bool = False
    ) -> Changed:
        job = await self.get(tenant, job_id)
        now_at = self._clock.now()
        edit = decide(job, now_at)
        if (
            edit.spec.key is not None
            and edit.spec.key != job.spec.key
            and await self._by_key(tenant, edit.spec.key)
        ):
            raise _key_taken(edit.spec.key)
        if edit.spec.timing != job.spec.timing:
            await foreseen.check(graph_job(job_id, edit.spec), with_roots=with_roots)
        await foreseen.use.change(job, edit.spec)
        for other in await self.other_roots(tenant, job_id) if with_roots else ():
            await foreseen.use.change(other, msgspec.structs.replace(other.spec, timing=edit.spec.timing))
        return Changed(job=would_become(job, edit, now_at), effective_from=now_at)

    async def _by_key(self, tenant: str, key: str) -> Job | None:
        found = await self._store.find_jobs(tenant, key, limit=0)
        return found[0] if found else None

    def _place(self, tenant: str, spec: JobSpec) -> tuple[Invalid | None, int | None]:
        """What is wrong with a new job, else the shard it goes to."""
        refusal = self._refusal(spec)
        if refusal is not None:
            return refusal, None
        try:
            return None, self._store.place(tenant, spec)
        except Invalid as error:
            return error, None

    def _check_place(self, job: Job, spec: JobSpec) -> None:
        """A job stays where its id says; another key must belong there too, or it could not be found by it."""
        if any(shard_of(parent) != shard_of(job.id) for parent in parents_of(spec.timing)):
            raise Invalid("the jobs of a graph must lie in one database", [split_graph_fault()])
        if spec.key is None or spec.key == job.spec.key:
            return
        shard = self._store.place(job.tenant, spec)
        if shard is not None and shard != shard_of(job.id):
            raise Invalid(
                "key: the new key belongs to another database than the job, and jobs do not move",
                [
                    Fault(
                        pointer="/key",
                        expected="a key that belongs where the job is",
                        got=repr(spec.key),
                        hint="create a job with the new key and delete this one",
                    )
                ],
            )

    def _refusal(self, spec: JobSpec) -> Invalid | None:
        faults = faults_in(spec, self._limits)
        if not faults:
            return None
        first = faults[0]
        return Invalid(f"{first.pointer or 'the job'}: expected {first.expected}", faults)


_NOT_SKIPPED = Fault(pointer="/at", expected="a time that is skipped", got="another")


def _found(skip: Skip | None) -> Skip:
    if skip is None:
        raise NotFound("there is no such job")
    return skip


def _key_taken(key: str | None) -> Conflict:
    return Conflict(f"the key {key!r} belongs to another job")


def _as_it_is(job: Job, now_at: int) -> Changed:
    """What whoever asks for it again is told: no earlier than what was promised the first time."""
    return Changed(job=job, effective_from=max(now_at, job.version_from))


def _is_already(job: Job, new: NewJob) -> bool:
    same_pause = new.paused == (job.state is JobState.PAUSED) and (not new.paused or new.note == job.note)
    return new.spec == job.spec and same_pause
