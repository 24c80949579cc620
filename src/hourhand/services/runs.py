"""The use cases of runs and dead letters: read, cancel, rerun, requeue, discard; and a job's status.

Reads what the store has of a run wherever it is in its life; changes go through the store's verbs.
"""

from collections.abc import Callable, Sequence

import msgspec

from hourhand.clock import Clock
from hourhand.core.identity import RunKey, format_run_id
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import FOREVER, Job, JobState, OnceTiming, Trigger, Version
from hourhand.core.plan import MissedTimes, expected_times
from hourhand.core.run import DeadLetter, RunView
from hourhand.core.skipping import Skip, next_time
from hourhand.errors import Conflict, Invalid, NotFound, Unavailable
from hourhand.ports.reading import DeadGroup, DeadPage, DeadQuery, JobMarks, RunPage, RunQuery, Wanted
from hourhand.ports.store import Store
from hourhand.services.foreseen_use import ForeseenUse

MAX_AT_ONCE = 1_000  # dead letters that one request may requeue or discard
_LOOK_BACK_US = 60 * MINUTE_US  # how old a planned row may be before it has been judged
_MAX_NOMINALS = 2_000
_STATUS_DEPTH = 100


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is up to, in one look."""

    job: Job
    state: State
    last_run: RunView | None
    next_at: int | None
    retry_count: int
    skipped: tuple[int, ...] = ()  # coming times that will not run


class Runs:
    """Use cases over the store; stateless, any number of instances."""

    def __init__(self, *, store: Store, clock: Clock, horizon_us: int) -> None:
        self._store = store
        self._clock = clock
        self.horizon_us = horizon_us

    async def history(self, job: Job, *, before_at: int | None = None, limit: int = 50) -> list[RunView]:
        """A job's runs, newest first, the coming and running ones included."""
        versions = await self._store.versions(job.tenant, job.id)
        nominals = self._planned_nominals(job, versions)
        runs = await self._store.job_runs(job.tenant, job.id, nominals, before_at, limit)
        if before_at is None and not any(run.state is State.PENDING for run in runs):
            coming = _foreseen(job, self._clock.now())  # it lies beyond what is planned
            runs = [coming, *runs][:limit] if coming is not None else runs
        return runs

    async def missed(self, job: Job) -> list[MissedTimes]:
        """What a job missed while nobody planned: no runs of their own, since nobody wrote them."""
        return await self._store.missed(job.tenant, job.id)

    async def marks(self, tenant: str, job_ids: Sequence[int], limit: int) -> list[JobMarks]:
        """The last runs of each of these jobs that ended, and how many are under way."""
        return await self._store.job_marks(tenant, job_ids, limit)

    async def status(self, tenant: str, job_id: int, next_at_of: Callable[[Job], int | None]) -> Status:
        """The newest run that is due and neither skipped nor cancelled speaks for the job."""
        now_at = self._clock.now()
        next_at: int | None = None

        def want(job: Job, versions: Sequence[Version], skips: Sequence[Skip]) -> Wanted:
            nonlocal next_at
            next_at = next_at_of(job)
            skipped = frozenset(skip.scheduled_at for skip in skips)
            if next_at in skipped:
                next_at = next_time(job, now_at, skipped)
            # A manual run may be named a few microseconds after the moment at which it was asked for.
            before_at = max(now_at + SECOND_US, (next_at or 0) + 1)
            nominals = self._planned_nominals(job, versions)
            return Wanted(nominals=nominals, before_at=before_at, limit=_STATUS_DEPTH)

        seen = await self._store.look_at_job(tenant, job_id, want)
        if seen is None:
            raise NotFound("there is no such job")
        job, runs = seen.job, seen.runs
        skipped = tuple(skip.scheduled_at for skip in seen.skips)
        last = next((run for run in runs if _speaks(run, now_at)), None)
        return Status(
            job=job,
            state=State.PENDING if last is None else last.state,
            last_run=last,
            next_at=_next_of(job, runs, next_at, now_at),
            retry_count=0 if last is None else _retries(last),
            skipped=skipped,
        )

    async def get(self, tenant: str, key: RunKey) -> RunView:
        """One run, wherever it is, or NotFound."""
        run = await self._store.get_run(tenant, key)
        if run is None:
            job = await self._store.get_job(tenant, key.job_id)
            run = None if job is None else _foreseen(job, max(self._clock.now(), key.scheduled_at - 1))
        if run is None or run.scheduled_at != key.scheduled_at:
            raise NotFound(f"there is no run {format_run_id(*key)}")
        return run

    async def page(self, tenant: str, query: RunQuery) -> RunPage:
        """Finished runs across jobs in a window of time."""
        return await self._store.list_runs(tenant, query)

    async def cancel(self, tenant: str, key: RunKey) -> RunView:
        """Cancel at once where nobody executes it, else ask its worker."""
        run = await self._store.cancel_run(tenant, key)
        if run is None:
            raise NotFound(f"there is no run {format_run_id(*key)}")
        return run

    async def rerun(
        self, tenant: str, key: RunKey, *, request_key: str | None = None, dry_run: bool = False
    ) -> RunKey | None:
        """A new run that repeats one which has ended, with the job as it is now; None in a dry run."""
        if dry_run:
            run = await self.get(tenant, key)
            if run.state not in FINAL:
                raise Conflict(f"the run is {run.state} and has not ended; wait for it, or cancel it")
            await ForeseenUse(self._store, tenant).run([key.job_id])
            return None
        made = await self._store.rerun(tenant, key, request_key)
        if made is None:
            await self.get(tenant, key)  # says whether it is still to come
            raise Conflict("the run is still to come")
        return made

    async def dead_letters(self, tenant: str, query: DeadQuery) -> DeadPage:
        """A page of dead letters, newest first."""
        return await self._store.dead_letters(tenant, query)

    async def dead_groups(self, tenant: str, by: str, limit: int = 100) -> list[DeadGroup]:
        """Dead letters counted by `error` or `job`."""
        return await self._store.dead_groups(tenant, by, limit)

    async def dead_among(self, tenant: str, keys: Sequence[RunKey]) -> list[DeadLetter]:
        """Those of these runs that are dead letters, in the order of the keys."""
        _check_size(keys)
        wanted, found = set(keys), dict[RunKey, DeadLetter]()
        for job_id in sorted({key.job_id for key in keys}):
            query: DeadQuery | None = DeadQuery(job_id=job_id, limit=MAX_AT_ONCE)
            while query is not None:
                page = await self._store.dead_letters(tenant, query)
                found |= {key: one for one in page.letters if (key := _key(one)) in wanted}
                onward = (
                    page.next_before
                    if any(key not in found for key in wanted if key.job_id == job_id)
                    else None
                )
                query = None if onward is None else msgspec.structs.replace(query, before=onward)
        return [found[key] for key in keys if key in found]

    async def requeue(
        self, tenant: str, keys: Sequence[RunKey], *, downstream: bool = False, dry_run: bool = False
    ) -> list[RunKey]:
        """Send dead letters back, with `downstream` also what was skipped because of them; says which were there."""
        _check_size(keys)
        if dry_run:
            found = [_key(one) for one in await self.dead_among(tenant, keys)]
            await ForeseenUse(self._store, tenant).run(key.job_id for key in found)
            return found
        return await self._store.requeue(tenant, keys, downstream=downstream)

    async def discard(self, tenant: str, keys: Sequence[RunKey], *, dry_run: bool = False) -> list[RunKey]:
        """Remove dead letters; says which were there."""
        _check_size(keys)
        if dry_run:
            return [_key(one) for one in await self.dead_among(tenant, keys)]
        return await self._store.discard(tenant, keys)

    async def matching(self, tenant: str, query: DeadQuery) -> list[RunKey]:
        """The keys of the dead letters that match, at most as many as one request may change."""
        page = await self._store.dead_letters(tenant, msgspec.structs.replace(query, limit=MAX_AT_ONCE))
        if page.missing:  # to change some would look like having changed all
            away = " and ".join(f"shard {shard}" for shard in page.missing)
            raise Unavailable(f"not all that match are known while {away} cannot be reached; name them by id")
        return [_key(letter) for letter in page.letters]

    def _planned_nominals(self, job: Job, versions: Sequence[Version]) -> list[int]:
        """The times this job may have in `planned`: rows there are found by computed keys, not by an index."""
        now_at = self._clock.now()
        rule = job.spec.rule
        span_us = FOREVER if rule is None else rule.min_gap() * (_MAX_NOMINALS // 2)
        since, until = now_at - min(_LOOK_BACK_US, span_us), now_at + min(self.horizon_us * 2, span_us)
        times = expected_times(versions, since, until, _MAX_NOMINALS)
        timing = job.spec.timing  # a one-time job is planned when it is made, however far off its time is
        return [*times, timing.at] if isinstance(timing, OnceTiming) else times


def _speaks(run: RunView, now_at: int) -> bool:
    """Whether a run says how its job does; the due time of one that is to be retried lies ahead."""
    if run.state is State.PENDING:
        return run.due_at <= now_at and not run.skip_asked
    return run.state not in (State.SKIPPED, State.CANCELLED)


def _retries(run: RunView) -> int:
    """How often it was tried again: a run that failed for good was not, after its last try."""
    return max(0, run.tries - 1) if run.state is State.FAILED else run.tries


def _key(letter: DeadLetter) -> RunKey:
    return RunKey(letter.job_id, letter.scheduled_at)


def _foreseen(job: Job, after_at: int) -> RunView | None:
    """The first coming run of an active job, which nobody has written yet; its id is computed all the same."""
    rule = job.spec.rule
    if rule is None or job.state is not JobState.ACTIVE:
        return None
    at = rule.next(max(after_at, job.since))
    if at is None or at > job.until:
        return None
    return RunView(
        job_id=job.id,
        scheduled_at=at,
        tenant=job.tenant,
        state=State.PENDING,
        trigger=Trigger.SCHEDULED,
        due_at=at,
        tries=0,
        fence=0,
        version=None,
        worker=None,
    )


def _next_of(job: Job, runs: Sequence[RunView], next_at: int | None, now_at: int) -> int | None:
    """The next time that will be run: jitter may hold back a nominal time that has passed, and a coming
    one may have been cancelled."""
    waiting = [run.scheduled_at for run in runs if _waits(run) and run.due_at > now_at]
    ended = {run.scheduled_at for run in runs if run.state in FINAL}
    if waiting:
        return min(waiting)
    if next_at is None or next_at not in ended:
        return next_at
    later = _foreseen(job, next_at)
    return None if later is None else later.scheduled_at


def _waits(run: RunView) -> bool:
    """Whether a run is one of the coming: not one that will be skipped, nor one of a backfill."""
    return run.state is State.PENDING and not run.skip_asked and run.trigger is not Trigger.BACKFILL


def _check_size(keys: Sequence[RunKey]) -> None:
    if len(keys) > MAX_AT_ONCE:
        raise Invalid(f"at most {MAX_AT_ONCE} dead letters in one request, got {len(keys)}")
