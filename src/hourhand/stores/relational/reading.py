"""What people read: jobs, runs wherever they are, history, versions. Never writes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from hourhand.core.identity import SKIP_LANE, RunKey, segment_of
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Phase, State, shown_state
from hourhand.core.model import FOREVER, Job, JobState, Version
from hourhand.core.plan import MissedTimes, missed_times
from hourhand.core.run import TRIGGERS, AttemptRow, Progress, RunView
from hourhand.ports.reading import JobCount, JobLook, JobPage, JobQuery, RunPage, RunQuery, WantRuns
from hourhand.stores.relational.descents import outcomes_of
from hourhand.stores.relational.jobs import load
from hourhand.stores.relational.rows import (
    JobRecord,
    UnstartedRow,
    attempt_row,
    from_json,
    gap_of,
    job_of,
    versions_of,
)
from hourhand.stores.relational.skips import skips_of
from hourhand.stores.relational.tx import Tx

WIDE_PREFIX = 5_000  # from so many jobs on, the newest are looked through instead of the named put in order
MOST_COUNTED = 100_000  # jobs, where somebody asks how many there are
_NEWEST_ID = (1 << 63) - 1
_SCAN = 5_000  # rows that one page may look at before it answers with less
_LOOK = 10_000  # rows that the database itself looks through for one page
_DISORDER_US = 10 * SECOND_US  # outcomes are committed this much later than they finished, hardly more
_MAX_GAPS = 100
_MAX_WAITS = 1_000  # runs of one job that wait for their parents, which are shown


async def get_job(tx: Tx, tenant: str, job_id: int) -> Job | None:
    """One job."""
    record = await load(tx, tenant, job_id)
    return None if record is None else await job_as_seen(tx, record)


async def find_jobs(tx: Tx, tenant: str, text: str, limit: int) -> list[Job]:
    """The job with this key, else those with this name."""
    row = await tx.one("job_by_key", (tenant, text))
    rows = [row] if row is not None else await tx.all("jobs_by_name", (tenant, text, limit))
    return [await job_as_seen(tx, JobRecord(*row)) for row in rows]


async def list_jobs(tx: Tx, tenant: str, query: JobQuery) -> JobPage:
    """A page of jobs, newest first; looks at a bounded number of rows."""
    if (text := await _text_sought(tx, tenant, query)) is not None:
        return await _jobs_with_text(tx, tenant, query, text)
    before = _NEWEST_ID if query.before_id is None else query.before_id
    found: list[Job] = []
    looked = 0
    while looked < _SCAN:
        size = min(_SCAN - looked, max(query.limit * 2, 100, looked))  # ever more, where few fit
        rows = [JobRecord(*row) for row in await _job_rows(tx, tenant, query, before, size)]
        looked += size
        live = await _live_among(tx, rows)
        for record in rows:
            before = record.id
            state = _seen_state(record, record.id in live, tx.now_at)
            if _may_fit(record, state, query) and _fits(job := job_of(record, state), query):
                found.append(job)
                if len(found) == query.limit:
                    return JobPage(jobs=tuple(found), next_before_id=before)
        if len(rows) < size:
            return JobPage(jobs=tuple(found), next_before_id=None)
    return JobPage(jobs=tuple(found), next_before_id=before)


async def _text_sought(tx: Tx, tenant: str, query: JobQuery) -> str | None:
    """What the text of those that fit holds, where no index leads to them."""
    if query.failing or query.set_name is not None:
        return None
    if query.name_prefix:
        bounds = _name_bounds(query.name_prefix)
        named = await tx.one("count_named", (tenant, *bounds, WIDE_PREFIX + 1))
        return '"name":' + _as_text(query.name_prefix)[:-1] if named[0] > WIDE_PREFIX else None
    return None if query.tag is None else _as_text(query.tag)


async def _jobs_with_text(tx: Tx, tenant: str, query: JobQuery, text: str) -> JobPage:
    """A page for which the database looks through the next jobs, which costs far less than reading them."""
    before = _NEWEST_ID if query.before_id is None else query.before_id
    most = max(query.limit * 2, 100)
    rows = [JobRecord(*row) for row in await tx.all("jobs_with_text", (before, tenant, text, _LOOK, most))]
    live = await _live_among(tx, rows)
    found: list[Job] = []
    for record in rows:
        state = _seen_state(record, record.id in live, tx.now_at)
        if _may_fit(record, state, query) and _fits(job := job_of(record, state), query):
            found.append(job)
            if len(found) == query.limit:
                return JobPage(jobs=tuple(found), next_before_id=record.id)
    if len(rows) == most:
        return JobPage(jobs=tuple(found), next_before_id=rows[-1].id)
    looked, last = await tx.one("look_end", (before, tenant, _LOOK))
    return JobPage(jobs=tuple(found), next_before_id=last if looked == _LOOK else None)


async def count_jobs(tx: Tx, tenant: str, query: JobQuery) -> JobCount:
    """How many there are, by an index and up to a bound."""
    if query.set_name is not None:
        row = await tx.one("count_in_set", (tenant, query.set_name, MOST_COUNTED))
    elif query.name_prefix:
        low, high = _name_bounds(query.name_prefix)
        row = await tx.one("count_named", (tenant, low, high, MOST_COUNTED))
    elif query.state is JobState.PAUSED:
        row = await tx.one("count_paused", (tenant, MOST_COUNTED))
    else:
        row = await tx.one("count_of_tenant", (tenant, MOST_COUNTED))
    return JobCount(count=row[0], or_more=row[0] == MOST_COUNTED)


async def versions(tx: Tx, tenant: str, job_id: int) -> list[Version]:
    """All versions of a job, also of one that is gone."""
    record = await load(tx, tenant, job_id)
    if record is None and await tx.one("version_tenant", (job_id,)) != (tenant,):
        return []
    return await versions_of(tx, job_id, record)


async def missed(tx: Tx, segments: int, tenant: str, job_id: int) -> list[MissedTimes]:
    """What a job missed, by the gaps of the clocks that its versions had."""
    found: list[MissedTimes] = []
    for version in reversed(await versions(tx, tenant, job_id)):
        rule = version.spec.rule
        if rule is not None:
            rows = await tx.all("gaps_of", (rule.key, segment_of(job_id, segments), _MAX_GAPS))
            found += missed_times(version, [gap_of(row) for row in rows])
    return found


async def look_at_job(tx: Tx, tenant: str, job_id: int, want: WantRuns) -> JobLook | None:
    """A job and its newest runs in one look."""
    record = await load(tx, tenant, job_id)
    if record is None:
        return None
    job, skips = await job_as_seen(tx, record), await skips_of(tx, job_id)
    wanted = want(job, await versions_of(tx, job_id, record), skips)
    runs = await _runs_of(tx, tenant, job_id, wanted.nominals, wanted.before_at, wanted.limit)
    return JobLook(job=job, skips=tuple(skips), runs=tuple(runs))


async def job_runs(
    tx: Tx, tenant: str, job_id: int, nominals: Sequence[int], before_at: int | None, limit: int
) -> list[RunView]:
    """A job's runs, newest first, live ones included."""
    if await load(tx, tenant, job_id) is None:
        return []
    return await _runs_of(tx, tenant, job_id, nominals, before_at, limit)


async def _runs_of(
    tx: Tx, tenant: str, job_id: int, nominals: Sequence[int], before_at: int | None, limit: int
) -> list[RunView]:
    before = FOREVER if before_at is None else before_at
    live = {view.scheduled_at: view for view in await live_runs(tx, tenant, job_id, nominals)}
    past = [row[0] for row in await tx.all("history_times", (job_id, before, tx.now_at, limit))]
    times = sorted({*(at for at in live if at < before), *past}, reverse=True)[:limit]
    return await with_history(tx, tenant, job_id, times, live)


async def get_run(tx: Tx, tenant: str, key: RunKey) -> RunView | None:
    """One run, wherever it is."""
    if await load(tx, tenant, key.job_id) is None:
        return None
    live = {
        view.scheduled_at: view
        for view in await live_runs(tx, tenant, key.job_id, [key.scheduled_at])
        if view.scheduled_at == key.scheduled_at
    }
    found = await with_history(tx, tenant, key.job_id, [key.scheduled_at], live)
    return found[0] if found else None


Finished = Callable[[Tx, str, RunQuery], Awaitable[RunPage]]


async def list_runs(tx: Tx, tenant: str, query: RunQuery, finished: Finished) -> RunPage:
    """Runs across jobs: those that hold a slot if asked for, else finished ones by finish time."""
    live_states = {State.PENDING, State.RUNNING, State.RETRYING} & set(query.states)
    if live_states:
        return await _live_page(tx, tenant, live_states, query.limit)
    return await finished(tx, tenant, query)


async def job_as_seen(tx: Tx, record: JobRecord) -> Job:
    """A job with the state people see: completed once its last time has been and gone, or was cancelled."""
    live = _may_be_over(record, tx.now_at) and bool(
        (await tx.one("is_live", {"job_id": record.id, "scheduled_at": record.once_at}))[0]
    )
    return job_of(record, _seen_state(record, live, tx.now_at))


async def _live_among(tx: Tx, records: Sequence[JobRecord]) -> set[int]:
    """Those of one-time jobs whose run has not ended, as far as that matters for their state; one look for all."""
    asked = [record.id for record in records if _may_be_over(record, tx.now_at)]
    return {row[0] for row in await tx.all("live_among", (tx.array(asked),))} if asked else set()


def _may_be_over(record: JobRecord, now_at: int) -> bool:
    return record.once_at is not None and (not record.paused or record.once_at <= now_at)


def _seen_state(record: JobRecord, live: bool, now_at: int) -> JobState:
    over = not live and _may_be_over(record, now_at) if record.once_at is not None else record.until < now_at
    if over:
        return JobState.COMPLETED
    return JobState.PAUSED if record.paused else JobState.ACTIVE


async def _job_rows(tx: Tx, tenant: str, query: JobQuery, before: int, size: int) -> list[Any]:
    if query.failing:
        return await tx.all("failing_page", (before, tenant, size))
    if query.set_name is not None:
        return await tx.all("set_page", (before, tenant, query.set_name, size))
    if query.name_prefix:
        low, high = _name_bounds(query.name_prefix)
        bounds = {"low": low, "high": high, "before": before}
        return await tx.all("named_page", {"tenant": tenant, "limit": size, **bounds})
    if query.state is JobState.PAUSED:
        return await tx.all("paused_page", (before, tenant, size))
    return await tx.all("jobs_page", (before, tenant, size))


def _as_text(word: str) -> str:
    """A tag or name as it stands in the text of a spec."""
    return msgspec.json.encode(word).decode()


def _name_bounds(prefix: str) -> tuple[str, str]:
    return prefix, prefix + "\U0010ffff"


def _may_fit(record: JobRecord, state: JobState, query: JobQuery) -> bool:
    """What can be said without reading the whole job, which is dear where few of many fit."""
    return (query.state is None or state is query.state) and (
        query.tag is None or _as_text(query.tag) in record.spec
    )


def _fits(job: Job, query: JobQuery) -> bool:
    return (
        (query.tag is None or query.tag in job.spec.tags)
        and (query.set_name is None or query.set_name == job.spec.set_name)
        and (not query.name_prefix or job.spec.name.startswith(query.name_prefix))
    )


async def live_runs(tx: Tx, tenant: str, job_id: int, nominals: Sequence[int]) -> list[RunView]:
    """Runs of a job that have not ended; of those that a rule computes, the ones at these times."""
    rows = [UnstartedRow(*row) for row in await tx.all("planned_at", (job_id, tx.array(nominals)))]
    rows += [UnstartedRow(*row) for row in await tx.all("planned_beside", (job_id,))]
    views = [_unstarted(tenant, job_id, row, waits=False) for row in rows]
    blocked = [UnstartedRow(*row) for row in await tx.all("blocked_of", (job_id,))]
    views += [_unstarted(tenant, job_id, row, waits=True) for row in blocked]
    views += await _waiting_views(tx, tenant, job_id)
    views += [_with_slot(tenant, job_id, row, tx.now_at) for row in await tx.all("running_of", (job_id,))]
    return views


async def _waiting_views(tx: Tx, tenant: str, job_id: int) -> list[RunView]:
    """Runs that wait for their parents, with those that have not ended."""
    rows = await tx.all("waiting_of", (job_id, _MAX_WAITS))
    heard = await outcomes_of(tx, [(job_id, row[0]) for row in rows])
    views = []
    for at, _, deadline_at, _, fence, trigger, parents in rows:
        view = _unstarted(tenant, job_id, UnstartedRow(at, 0, at, trigger, fence, 0), waits=False)
        missing = tuple(parent for parent in from_json(parents) if parent not in heard[job_id, at])
        views.append(
            msgspec.structs.replace(view, waits_for=missing, wait_until=deadline_at, skip_asked=False)
        )
    return views


def _with_slot(tenant: str, job_id: int, row: Sequence[Any], now_at: int) -> RunView:
    at, due_at, was_due_at, trigger, fence, tries, phase, worker, version, cancel, claimed_at, *rest = row
    deadline_at, fraction, message, noted_at = rest
    state = shown_state(Phase(phase), due_at, now_at, tries)
    told = None if noted_at is None else Progress(fraction=fraction, message=message, noted_at=noted_at)
    return RunView(
        job_id=job_id,
        scheduled_at=at,
        tenant=tenant,
        state=state,
        trigger=TRIGGERS[trigger],
        due_at=due_at if was_due_at is None else was_due_at,
        tries=tries,
        fence=fence,
        version=version,
        worker=worker,
        began_at=max(due_at, claimed_at) if state is State.RUNNING else None,
        offered_at=None if was_due_at is None else due_at,
        cancel_asked=bool(cancel),
        deadline_at=deadline_at if state is State.RUNNING else None,
        awaits_report=Phase(phase) is Phase.REPORTED,
        progress=told if state is State.RUNNING else None,
    )


def _unstarted(tenant: str, job_id: int, row: UnstartedRow, waits: bool) -> RunView:
    return RunView(
        job_id=job_id,
        scheduled_at=row.scheduled_at,
        tenant=tenant,
        state=State.PENDING,
        trigger=TRIGGERS[row.trigger],
        due_at=row.due_at,
        tries=row.tries,
        fence=row.fence,
        version=None,
        worker=None,
        waits_for_slot=waits,
        skip_asked=row.lane == SKIP_LANE,
    )


async def with_history(
    tx: Tx, tenant: str, job_id: int, times: Sequence[int], live: dict[int, RunView]
) -> list[RunView]:
    """Views at these times, with their attempts; a live row speaks for the state, else the last attempt."""
    attempts: dict[int, list[AttemptRow]] = {}
    triggers: dict[int, tuple[int, int]] = {}
    for row in await tx.all("history_of", (job_id, tx.array(times), tx.now_at)):
        attempts.setdefault(row[0], []).append(attempt_row(row))
        triggers[row[0]] = (row[3], row[4])
    views = []
    for at in times:
        rows = tuple(attempts.get(at, ()))
        if at in live:
            views.append(msgspec.structs.replace(live[at], attempts=rows))
        elif rows:
            views.append(_ended(tenant, job_id, at, rows, *triggers[at]))
    return await _with_reruns(tx, job_id, views)


async def _with_reruns(tx: Tx, job_id: int, views: list[RunView]) -> list[RunView]:
    """The same views, with what repeats what."""
    if not views:
        return views
    of: dict[int, int] = {}
    by: dict[int, list[int]] = {}
    times = tx.array([view.scheduled_at for view in views])
    for at, of_at in await tx.all("reruns_among", (job_id, times)):
        of[at] = of_at
        by.setdefault(of_at, []).append(at)
    if not of:
        return views
    return [
        msgspec.structs.replace(
            view, rerun_of=of.get(view.scheduled_at), reruns=tuple(by.get(view.scheduled_at, ()))
        )
        for view in views
    ]


def _ended(
    tenant: str, job_id: int, at: int, rows: tuple[AttemptRow, ...], trigger: int, tries: int
) -> RunView:
    last = rows[-1]
    return RunView(
        job_id=job_id,
        scheduled_at=at,
        tenant=tenant,
        state=last.state,
        trigger=TRIGGERS[trigger],
        due_at=rows[0].due_at,
        tries=tries,
        fence=last.attempt,
        version=last.version,
        worker=last.worker,
        attempts=rows,
    )


async def _live_page(tx: Tx, tenant: str, states: set[State], limit: int) -> RunPage:
    """Runs that hold a slot and are seen in one of these states."""
    views: list[RunView] = []
    for job_id, scheduled_at, phase, due_at, tries in await tx.all("running_page", (tenant, _SCAN)):
        if shown_state(Phase(phase), due_at, tx.now_at, tries) not in states:
            continue
        view = await get_run(tx, tenant, RunKey(job_id, scheduled_at))
        if view is not None and view.state in states:
            views.append(view)
            if len(views) == limit:
                break
    return RunPage(runs=tuple(views), next_before=None)
