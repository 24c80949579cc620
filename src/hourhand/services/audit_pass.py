"""One audit under way, in bounded memory: pages of jobs, and their runs in units of some thousand times.

What does not fit is read once more before it is said, since jobs and runs are read one after the other. What fits is
`core.reconciling`'s.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from hourhand.core.audit import (
    LAG_BUDGET_US,
    MAX_FINDINGS,
    AuditedJob,
    AuditReport,
    ClockFacts,
    Duty,
    Finding,
    JobRuns,
    JobTally,
    Kind,
    Reconciliation,
    Tally,
    Window,
)
from hourhand.core.dag import parents_of
from hourhand.core.identity import RunKey
from hourhand.core.reconciling import (
    Expectations,
    followed_times,
    judge_followed,
    judge_missing,
    natural_times,
    plain_tally,
    reconcile,
    rule_keys,
)
from hourhand.ports.audit import Asked, AuditQuery
from hourhand.ports.store import Store

_MOST_SECOND_LOOKS = 1_000  # at jobs where something does not fit
_MOST_UNTOLD = 100  # times of one job, the oldest, for which it is looked up when its parents ended
_TURN = 100  # jobs whose times are computed at a stretch
_FOLLOWERS = 200  # jobs that are read at once where some follow others


class AuditPass:
    """One audit under way."""

    def __init__(self, store: Store, now_at: int, window: Window, page_jobs: int, unit_times: int) -> None:
        self._store = store
        self._now_at = now_at
        self._window = window
        self._wants_each = window.by_job or window.job_id is not None
        self._page_jobs = page_jobs
        self._unit_times = unit_times
        self._expectations = Expectations(window.from_at, window.to_at, unit_times)
        self._tally = Tally()
        self._jobs_checked = 0
        self._findings: list[Finding] = []
        self._kinds: Counter[Kind] = Counter()
        self._by_job: list[JobTally] = []
        self._unread: set[int] = set()
        self._missing: set[int] = set()
        self._second_looks = _MOST_SECOND_LOOKS

    async def run(self, after: tuple[int, ...] | None, is_over: Callable[[], bool]) -> AuditReport:
        """Page after page."""
        window = self._window
        query = AuditQuery(
            tenant=window.tenant,
            job_id=window.job_id,
            from_at=window.from_at,
            after=after,
            limit=self._page_jobs,
        )
        before: asyncio.Task[None] | None = None
        try:
            while True:
                page = await self._store.audited_jobs(query)
                self._missing |= set(page.missing)
                self._unread |= set(page.unread)
                if before is not None:
                    await before
                # One page is reckoned while the next is read, so that neither side waits for the other.
                before = asyncio.create_task(self._page(page.jobs))
                if page.next_after is None or window.by_job or is_over():
                    break
                query = msgspec.structs.replace(query, after=page.next_after)
            await before
        finally:
            if before is not None and not before.done():
                before.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await before
        return AuditReport(
            window=window,
            tally=self._tally,
            jobs_checked=self._jobs_checked,
            findings=tuple(self._findings),
            kinds=dict(self._kinds),
            by_job=tuple(self._by_job),
            unread=tuple(sorted(self._unread))[:MAX_FINDINGS],
            missing=tuple(sorted(self._missing)),
            next_after=page.next_after,
        )

    async def _page(self, jobs: Sequence[AuditedJob]) -> None:
        self._jobs_checked += len(jobs)
        unit: list[tuple[AuditedJob, list[int]]] = []
        followers: list[AuditedJob] = []
        size = 0
        for place, job in enumerate(jobs):
            if place % _TURN == 0:  # others have theirs, and the page after this is read meanwhile
                await asyncio.sleep(0)
            if job.follows:
                followers.append(job)
                continue
            times = self._expectations.times(job)
            if times is None or self._wants_each:
                await self._done(job, await self._apart(job, self._window.from_at, self._window.to_at))
                continue
            unit.append((job, times))
            size += len(times)
            if size >= self._unit_times:
                await self._unit(unit)
                unit, size = [], 0
        await self._unit(unit)
        await self._followers(followers)

    async def _unit(self, unit: Sequence[tuple[AuditedJob, list[int]]]) -> None:
        """Some jobs with few times each, in two or three questions."""
        if not unit:
            return
        from_at, to_at = self._window.from_at, self._window.to_at
        asked = [Asked(job.id, times, _most(len(times))) for job, times in unit]
        read = await self._store.audited_runs(asked, from_at, to_at)
        await asyncio.sleep(0)  # others have their turn between what is read and what is reckoned
        self._tally.add(plain_tally(read.plain))
        doubtful: list[tuple[AuditedJob, Reconciliation]] = []
        for job, times in unit if read.runs else ():
            found = read.runs.get(job.id)
            if found is None:
                continue
            if found.cut:
                await self._done(job, await self._apart(job, from_at, to_at))
                continue
            result = reconcile(job, times, found)
            if result.missing:
                doubtful.append((job, result))
            elif result.findings:
                await self._done(job, result)
            else:
                self._count(job, result)
        clocks = await self._clocks([job for job, _ in doubtful], from_at, to_at)
        for job, result in doubtful:
            judge_missing(job, result, _of(job, clocks), self._now_at)
            await self._done(job, result)

    async def _apart(self, job: AuditedJob, from_at: int, to_at: int) -> Reconciliation:
        """One job by itself, in as many parts of the window as it needs."""
        if job.follows:
            return await self._follower(job, from_at, to_at)
        times = Expectations(from_at, to_at, self._unit_times).times(job)
        if times is None:
            return await self._halves(job, from_at, to_at)
        asked = Asked(job.id, times, max(_most(len(times)), self._unit_times * 2))
        read = await self._store.audited_runs([asked], from_at, to_at)
        found = read.runs.get(job.id)
        if found is None:
            return Reconciliation(tally=plain_tally(read.plain))
        if found.cut:
            return await self._halves(job, from_at, to_at)
        result = reconcile(job, times, found)
        if result.missing:
            judge_missing(job, result, _of(job, await self._clocks([job], from_at, to_at)), self._now_at)
        return result

    async def _halves(self, job: AuditedJob, from_at: int, to_at: int) -> Reconciliation:
        middle_at = (from_at + to_at) // 2
        if middle_at == from_at:
            self._unread.add(job.id)
            return Reconciliation(tally=Tally())
        result = await self._apart(job, from_at, middle_at)
        result.add(await self._apart(job, middle_at, to_at))
        return result

    # --- jobs that follow others

    async def _followers(self, jobs: Sequence[AuditedJob]) -> None:
        """Jobs that follow others, as many at once as can be read together with those that they follow."""
        batch: list[AuditedJob] = []
        ids: set[int] = set()
        for job in jobs:
            wanted = {job.id, *_parents(job)}
            if batch and len(ids | wanted) > _FOLLOWERS:
                await self._batch(batch, ids)
                batch, ids = [], set()
            batch.append(job)
            ids |= wanted
        await self._batch(batch, ids)

    async def _batch(self, jobs: Sequence[AuditedJob], ids: set[int]) -> None:
        if not jobs:
            return
        from_at, to_at = self._window.from_at, self._window.to_at
        runs = await self._runs_of(jobs, ids, from_at, to_at)
        for job in jobs:
            if any(runs[one].cut for one in (job.id, *_parents(job))):
                result = await self._follower(job, from_at, to_at)
            else:
                result = await self._follow(job, runs, from_at, to_at)
            await self._done(job, result)

    async def _follower(self, job: AuditedJob, from_at: int, to_at: int) -> Reconciliation:
        ids = {job.id, *_parents(job)}
        runs = await self._runs_of([job], ids, from_at, to_at)
        if any(one.cut for one in runs.values()):
            return await self._halves(job, from_at, to_at)
        return await self._follow(job, runs, from_at, to_at)

    async def _runs_of(
        self, jobs: Sequence[AuditedJob], ids: set[int], from_at: int, to_at: int
    ) -> dict[int, JobRuns]:
        expectations = Expectations(from_at, to_at, self._unit_times)
        own = {job.id: expectations.times(job) or [] for job in jobs}
        most = max(100, self._unit_times * 4 // len(ids))
        asked = [Asked(one, own.get(one, []), most, in_graph=True) for one in sorted(ids)]
        return (await self._store.audited_runs(asked, from_at, to_at)).runs

    async def _follow(
        self, job: AuditedJob, runs: dict[int, JobRuns], from_at: int, to_at: int
    ) -> Reconciliation:
        own = Expectations(from_at, to_at, self._unit_times).times(job)
        if own is None:
            return await self._halves(job, from_at, to_at)
        parents = {parent: natural_times(runs[parent]) for parent in _parents(job)}
        duties, possible = followed_times(job, parents, from_at, to_at)
        result = reconcile(job, sorted({*own, *duties}), runs[job.id], possible)
        if result.missing:
            untold = frozenset[int]().union(*(runs[parent].untold for parent in parents))
            overdue = await self._overdue(job, runs, [at for at in result.missing if at in untold])
            judge_followed(job, result, _without(duties, own), untold, overdue)
        if result.missing:
            judge_missing(job, result, _of(job, await self._clocks([job], from_at, to_at)), self._now_at)
        return result

    async def _overdue(
        self, job: AuditedJob, runs: dict[int, JobRuns], times: Sequence[int]
    ) -> frozenset[int]:
        """Those of some times whose parents ended so long ago that this job should have heard of it."""
        found = set()
        for at in times[:_MOST_UNTOLD]:
            for parent in _parents(job):
                run = None
                if at in runs[parent].untold:
                    run = await self._store.get_run(job.tenant, RunKey(parent, at))
                if run is not None and all(
                    one.finished_at + LAG_BUDGET_US < self._now_at for one in run.attempts
                ):
                    found.add(at)
        return frozenset(found)

    # --- what was found

    async def _clocks(
        self, jobs: Sequence[AuditedJob], from_at: int, to_at: int
    ) -> dict[tuple[int, str], ClockFacts]:
        asked = [(job.id, key) for job in jobs for key in rule_keys(job)]
        return await self._store.audited_clocks(asked, from_at, to_at) if asked else {}

    async def _done(self, job: AuditedJob, result: Reconciliation) -> None:
        """Count a job in; where something does not fit, only after a second look at it as it is now."""
        if result.findings and self._second_looks > 0:
            self._second_looks -= 1
            query = AuditQuery(tenant=None, job_id=job.id, from_at=self._window.from_at)
            page = await self._store.audited_jobs(query)
            for again in page.jobs:
                job, result = again, await self._apart(again, self._window.from_at, self._window.to_at)
        self._count(job, result)

    def _count(self, job: AuditedJob, result: Reconciliation) -> None:
        self._tally.add(result.tally)
        if result.findings:
            self._kinds.update(result.kinds)
            self._findings += result.findings[: MAX_FINDINGS - len(self._findings)]
        if (result.findings or self._wants_each) and len(self._by_job) < MAX_FINDINGS:
            self._by_job.append(JobTally(job_id=job.id, job_name=job.name, tally=result.tally))


def _most(times: int) -> int:
    """How many lines a job may take that has so many times: attempts, and runs beside the schedule."""
    return times * 4 + 50


def _parents(job: AuditedJob) -> set[int]:
    return {parent for span in job.spans for parent in parents_of(span.schedule.timing)}


def _without(duties: dict[int, Duty], own: Sequence[int]) -> dict[int, Duty]:
    """Times that a job has by its own schedule too are judged by that."""
    taken = set(own)
    return {at: duty for at, duty in duties.items() if at not in taken}


def _of(job: AuditedJob, clocks: dict[tuple[int, str], ClockFacts]) -> dict[str, ClockFacts]:
    return {key: clocks[job.id, key] for key in rule_keys(job) if (job.id, key) in clocks}
