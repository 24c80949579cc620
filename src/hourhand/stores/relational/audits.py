"""What an audit reads: jobs with their versions by id, and their runs in a window. Never writes.

Every page is bounded: by jobs, by versions, and by lines of history per job.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from hourhand.core.audit import CODE_BASE, AuditedJob, ClockFacts, JobRuns, LiveRun, Place, Schedule, Span
from hourhand.core.identity import segment_of
from hourhand.core.instant import DAY_US
from hourhand.core.lifecycle import State
from hourhand.core.plan import Gap
from hourhand.ports.audit import Asked, AuditedRuns, AuditPage, AuditQuery
from hourhand.stores.relational.rows import STATE_CODES, from_json, gap_of, to_json
from hourhand.stores.relational.tx import Tx

MAX_VERSIONS = 20_000  # of the jobs of one page
MAX_GAPS = 20_000  # of the clocks of one question
_LARGE_SPEC = 4_096  # bytes; of larger ones only what an audit needs is read
_AT_ONCE = 100  # jobs that are compared with their history at once
_LAST_ID = (1 << 63) - 1
_MAY_GO_ON = frozenset(
    STATE_CODES[state] * CODE_BASE + trigger
    for state in (State.FAILED, State.SKIPPED, State.RETRYING)
    for trigger in range(CODE_BASE)
)
Lines = tuple[list[int], list[int]]  # times, and what happened at each
_NONE: Lines = ([], [])

_schedules = msgspec.json.Decoder(Schedule)


async def audited_jobs(tx: Tx, query: AuditQuery) -> AuditPage:
    """A page of jobs by id: those that there are, and those that were deleted since the window began."""
    after, last = (query.after or (0,))[0], _LAST_ID
    if query.job_id is not None:
        after, last = query.job_id - 1, query.job_id
    bounds = {"after": after, "last": last, "limit": query.limit, "large": _LARGE_SPEC}
    present = await _present(tx, query.tenant, bounds)
    if len(present) == query.limit:
        last = present[-1][0]
    gone = await tx.all("audit_gone", {**bounds, "last": last, "from_at": query.from_at})
    if len(gone) == query.limit:
        last = min(last, gone[-1][0])
    rows = {row[0]: row for row in present if row[0] <= last}
    lost = {row[0]: row[1] for row in gone if row[0] <= last and query.tenant in (None, row[1])}
    edited = [row[0] for row in rows.values() if row[2] > 1]
    over, last, unread = await _over(tx, sorted({*edited, *lost}), last, query)
    jobs = [
        _audited(job_id, row[1], over.get(job_id, []), row) for job_id, row in rows.items() if job_id <= last
    ]
    jobs += [
        _audited(job_id, tenant, over.get(job_id, []), None)
        for job_id, tenant in lost.items()
        if job_id <= last and job_id not in rows
    ]
    found = tuple(sorted((job for job in jobs if job.id not in unread), key=lambda job: job.id))
    ends = last == _LAST_ID or query.job_id is not None
    return AuditPage(jobs=found, next_after=None if ends else (last,), unread=unread)


async def audited_runs(tx: Tx, asked: Sequence[Asked], from_at: int, to_at: int) -> AuditedRuns:
    """Lines of history of jobs in a window; of those where that is not all, also what is live."""
    window = {"from_at": from_at, "to_at": to_at}
    most = sum(one.most for one in asked)
    history = await _history(tx, asked, most, window)
    if len(history.ids) >= most:  # then there may be more of any of them
        plain: list[int] = []
        doubtful, lines = asked, history.by_job()
    else:
        plain, doubtful, lines = _sorted_out(asked, history)
    if not doubtful:
        return AuditedRuns(plain=plain)
    live = await _live(tx, doubtful, lines, window)
    untold = await _untold(tx, [one.job_id for one in doubtful if one.in_graph], most, window)
    full = max(len(history.ids), sum(map(len, untold.values()))) >= most
    runs = {}
    for one in doubtful:
        ats, codes = _in_order(*lines.get(one.job_id, _NONE))
        alive = live.get(one.job_id, [])
        runs[one.job_id] = JobRuns(
            job_id=one.job_id,
            ats=ats,
            codes=codes,
            live=tuple(alive),
            untold=frozenset(untold.get(one.job_id, ())),
            cut=full or len(ats) >= one.most or len(alive) >= one.most,
        )
    return AuditedRuns(plain=plain, runs=runs)


async def audited_clocks(
    tx: Tx, segments: int, asked: Sequence[tuple[int, str]], from_at: int, to_at: int
) -> dict[tuple[int, str], ClockFacts]:
    """Clocks by rule and segment, with their gaps that reach into a window."""
    places = {(key, segment_of(job_id, segments)) for job_id, key in asked}
    found: dict[tuple[str, int], tuple[int | None, list[Gap]]] = {}
    wanted = {"places": to_json(sorted(places)), "from_at": from_at, "to_at": to_at, "limit": MAX_GAPS}
    for key, segment, next_at, *gap in await tx.all("audit_clocks", wanted):
        _, gaps = found.setdefault((key, segment), (next_at, []))
        if gap[0] is not None:
            gaps.append(gap_of(gap))
    return {
        (job_id, key): ClockFacts(next_at=facts[0], gaps=tuple(facts[1]))
        for job_id, key in asked
        if (facts := found.get((key, segment_of(job_id, segments)))) is not None
    }


async def _present(tx: Tx, tenant: str | None, bounds: dict[str, int]) -> list[Any]:
    if tenant is None:
        return await tx.all("audit_jobs", bounds)
    return await tx.all("audit_jobs_of", {**bounds, "tenant": tenant})


async def _over(
    tx: Tx, ids: Sequence[int], last: int, query: AuditQuery
) -> tuple[dict[int, list[Any]], int, tuple[int, ...]]:
    """Versions that are over, by job; where they are too many, up to which job they are all there."""
    if not ids:
        return {}, last, ()
    asked = {"ids": tx.array(ids), "from_at": query.from_at, "limit": MAX_VERSIONS + 1, "large": _LARGE_SPEC}
    rows = await tx.all("audit_versions", asked)
    unread: tuple[int, ...] = ()
    if len(rows) > MAX_VERSIONS:
        torn = rows[-1][0]
        if rows[0][0] == torn:  # even alone it has too many
            last, unread = torn, (torn,)
        else:
            last = torn - 1
        rows = [row for row in rows if row[0] != torn]
    over: dict[int, list[Any]] = {}
    for row in rows:
        over.setdefault(row[0], []).append(row)
    return over, last, unread


def _audited(job_id: int, tenant: str, over: Sequence[Any], present: Any) -> AuditedJob:
    """A job from rows of (id, _, version, from, until, paused, spec, …); one version ends where the next begins."""
    ends_at = None if present is None else present[3]
    spans = []
    for row in over:
        next_from = row[8] if row[8] is not None else ends_at
        spans.append(_span(row, next_from, deleted=bool(row[7])))
    if present is not None:
        spans.append(_span(present, None, since=present[7]))
    return AuditedJob(id=job_id, tenant=tenant, spans=tuple(spans))


def _span(row: Any, to_at: int | None, *, deleted: bool = False, since: int | None = None) -> Span:
    return Span(
        schedule=_schedules.decode(row[6]),
        version=row[2],
        from_at=row[3],
        to_at=to_at,
        until=row[4],
        paused=bool(row[5]),
        deleted=deleted,
        since=since,
    )


class _History(NamedTuple):
    """Lines of some jobs, by job and hardly ever not by time; a list for each column."""

    ids: list[int]
    ats: list[int]
    codes: list[int]

    def by_job(self) -> dict[int, Lines]:
        """The lines of each."""
        found: dict[int, Lines] = {}
        for job_id, at, code in zip(*self, strict=True):
            lines = found.get(job_id)
            if lines is None:
                found[job_id] = ([at], [code])
            else:
                lines[0].append(at)
                lines[1].append(code)
        return found


async def _history(tx: Tx, asked: Sequence[Asked], most: int, window: dict[str, int]) -> _History:
    days = {"first": window["from_at"] // DAY_US, "last": (window["to_at"] - 1) // DAY_US}
    columns = await tx.one(
        "audit_history",
        {
            **window,
            **days,
            "ids": tx.array([one.job_id for one in asked]),
            "mosts": tx.array([one.most for one in asked]),
            "limit": most,
        },
    )
    return _History(*map(_numbers, columns))


def _numbers(value: Any) -> list[int]:
    """Many numbers in one column: an array, or JSON where there are none."""
    if value is None:
        return []
    return value if isinstance(value, list) else from_json(value)


def _sorted_out(asked: Sequence[Asked], history: _History) -> tuple[list[int], list[Asked], dict[int, Lines]]:
    """The lines of jobs of which history alone tells everything; the other jobs, and their lines.

    Many jobs are compared at once, since nearly always all of them are as they should be.
    """
    plain: list[int] = []
    doubtful: list[Asked] = []
    lines: dict[int, Lines] = {}
    last = 0
    for place in range(0, len(asked), _AT_ONCE):
        some = asked[place : place + _AT_ONCE]
        first, last = last, bisect_right(history.ids, some[-1].job_id, last)
        theirs = _History(*(column[first:last] for column in history))
        if _are_whole(some, theirs):
            plain += theirs.codes
            continue
        by_job = theirs.by_job()
        for one in some:
            ats, codes = by_job.get(one.job_id, _NONE)
            if not one.in_graph and ats == one.times and _MAY_GO_ON.isdisjoint(codes):
                plain += codes
            else:
                doubtful.append(one)
                lines[one.job_id] = (ats, codes)
    return plain, doubtful, lines


def _are_whole(asked: Sequence[Asked], history: _History) -> bool:
    """Whether history has one line for each time of some jobs, its end, and nothing else."""
    return (
        not any(one.in_graph for one in asked)
        and history.ats == [at for one in asked for at in one.times]
        and history.ids == [one.job_id for one in asked for _ in one.times]
        and _MAY_GO_ON.isdisjoint(history.codes)
    )


def _in_order(ats: list[int], codes: list[int]) -> Lines:
    """By time; what ended long after its time is kept elsewhere, comes last, and is later than others of its time."""
    if len(ats) > 1 and sorted(ats) != ats:
        pairs = sorted(zip(ats, codes, strict=True), key=lambda pair: pair[0])
        return [at for at, _ in pairs], [code for _, code in pairs]
    return ats, codes


async def _live(
    tx: Tx,
    doubtful: Sequence[Asked],
    lines: dict[int, Lines],
    window: dict[str, int],
) -> dict[int, list[LiveRun]]:
    """What has not ended of some jobs; plain planned runs are looked for where a time is missing in history."""
    ids = tx.array([one.job_id for one in doubtful])
    most = sum(one.most for one in doubtful)
    found: dict[int, list[LiveRun]] = {}
    for job_id, at, place, trigger in await tx.all("audit_live", {**window, "ids": ids, "limit": most}):
        found.setdefault(job_id, []).append(LiveRun(at, place, trigger))
    missing = list(_missing(doubtful, lines))
    if missing:
        for job_id, at, trigger in await tx.all("audit_planned", (to_json(missing),)):
            found.setdefault(job_id, []).append(LiveRun(at, Place.PLANNED, trigger))
    return found


async def _untold(tx: Tx, ids: Sequence[int], most: int, window: dict[str, int]) -> dict[int, list[int]]:
    """Times of some jobs that have ended, and of which their children are yet to hear."""
    found: dict[int, list[int]] = {}
    if ids:
        for job_id, at in await tx.all("audit_untold", {**window, "ids": tx.array(ids), "limit": most}):
            found.setdefault(job_id, []).append(at)
    return found


def _missing(doubtful: Sequence[Asked], lines: dict[int, Lines]) -> Iterable[tuple[int, int]]:
    for one in doubtful:
        known = set(lines.get(one.job_id, _NONE)[0])
        for at in one.times:
            if at not in known:
                yield one.job_id, at
