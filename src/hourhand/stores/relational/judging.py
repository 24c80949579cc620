"""The exceptions that a claim and the sweeper meet: late runs, and due ones whose job is full.

Each is judged by pure policy, however many they are; what the policy says is written in a few statements.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from hourhand.core.identity import format_run_id
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import MisfirePolicy, Trigger
from hourhand.core.overlap import when_full
from hourhand.core.plan import Lateness, beyond_limit, judge_late, judge_late_by_versions
from hourhand.core.run import TRIGGER_CODES
from hourhand.ports.store import Hint
from hourhand.stores.relational.endings import end_unstarted, write_endings
from hourhand.stores.relational.rows import JobRecord, UnstartedRow, decode_spec, ending, to_json, versions_of
from hourhand.stores.relational.slots import hand_on
from hourhand.stores.relational.tx import Tx

_BY_SCHEDULE = frozenset({TRIGGER_CODES[Trigger.SCHEDULED], TRIGGER_CODES[Trigger.UPSTREAM]})
_CAUGHT_UP = TRIGGER_CODES[Trigger.CATCH_UP]


async def judge_late_runs(
    tx: Tx, late: Sequence[tuple[int, UnstartedRow]]
) -> dict[tuple[int, int], Lateness]:
    """Apply the misfire policy to planned runs past their grace; answers the verdict of each."""
    if not late:
        return {}
    ids = sorted({job_id for job_id, _ in late})
    records = {row[0]: JobRecord(*row) for row in await tx.all("get_jobs", (tx.array(ids),))}
    verdicts = {}
    skipped: dict[tuple[int, int], UnstartedRow] = {}
    put_back = []
    for job_id, row in late:
        record = records.get(job_id)
        if record is None:  # deleted meanwhile; whoever claims it next ends it
            continue
        verdict = verdicts[job_id, row.scheduled_at] = await _lateness(tx, record, row)
        if verdict is Lateness.SKIP:
            skipped[job_id, row.scheduled_at] = row
        elif verdict is Lateness.BACKGROUND:
            put_back.append((row.scheduled_at, job_id))
    if put_back:
        await tx.run("to_background", (to_json(put_back),))
        tx.hints.add(Hint.RUNS)
    if skipped:
        pairs = to_json([(at, job_id) for job_id, at in skipped])
        endings = []
        for job_id, at in await tx.all("take_planned_rows", (pairs,)):  # but not what was claimed meanwhile
            record = records[job_id]
            policy = decode_spec(record.spec).misfire.policy
            detail = {"reason": Reason.MISFIRE.value, "policy": policy.value}
            endings.append(
                ending(job_id, skipped[job_id, at], State.SKIPPED, tx.now_at, detail, record.version)
            )
        await write_endings(tx, endings)
    return verdicts


class FullRun(NamedTuple):
    """A due planned run whose job has no free slot, with the job as it is now."""

    job_id: int
    row: UnstartedRow
    version: int
    spec: str


async def judge_full_jobs(tx: Tx, full: Sequence[FullRun]) -> int:
    """Apply the overlap policy to due runs whose jobs have no free slot; answers how many left the plan."""
    pairs = to_json([(run.row.scheduled_at, run.job_id) for run in full])
    taken = {tuple(found) for found in await tx.all("take_planned_rows", (pairs,))}
    runs = sorted(run for run in full if (run.job_id, run.row.scheduled_at) in taken)
    ids = tx.array(sorted({run.job_id for run in runs}))
    judgement = _Judgement()
    for job_id, at in await tx.all("scheduled_waiting", (ids,)):
        judgement.waiting.setdefault(job_id, {})[at] = None
    if any(run.row.trigger == _CAUGHT_UP for run in runs):
        for job_id, at in await tx.all("caught_up_waiting", (ids,)):
            judgement.caught_up.setdefault(job_id, {})[at] = None
    for run in runs:
        judgement.judge(run)
    await judgement.write(tx)
    return len(runs)


class _Judgement:
    """What becomes of runs that found their jobs full, and of those that already wait."""

    def __init__(self) -> None:
        self.waiting: dict[int, dict[int, FullRun | None]] = {}  # scheduled ones; None: in the table
        self.caught_up: dict[int, dict[int, FullRun | None]] = {}  # the same of missed ones
        self._others: list[FullRun] = []
        self._out: dict[tuple[int, int], FullRun] = {}  # of the table, and because of whom
        self._skipped: list[FullRun] = []
        self._replaced_by: dict[tuple[int, int], FullRun] = {}  # in the queue
        self._cancelling: dict[int, FullRun] = {}
        self._given_up: list[FullRun] = []  # missed ones that are too many
        self._surplus: dict[tuple[int, int], FullRun] = {}  # the same of the table, and because of whom

    def judge(self, run: FullRun) -> None:
        """Decide about one run; those of a job come oldest first."""
        if run.row.trigger == _CAUGHT_UP:
            self._judge_caught_up(run)
            return
        if run.row.trigger not in _BY_SCHEDULE:
            self._others.append(run)
            return
        waiting = self.waiting.setdefault(run.job_id, {})
        verdict = when_full(decode_spec(run.spec).overlap, list(waiting), run.row.scheduled_at)
        for at in verdict.skip_waiting:
            newcomer = waiting.pop(at)
            if newcomer is None:
                self._out[run.job_id, at] = run
            else:
                self._skipped.append(newcomer)
                self._replaced_by[newcomer.job_id, at] = run
        if verdict.wait:
            waiting[run.row.scheduled_at] = run
        else:
            self._skipped.append(run)
        if verdict.cancel_running:
            self._cancelling[run.job_id] = run

    def _judge_caught_up(self, run: FullRun) -> None:
        """A job that is slower than its times and has no grace misses all of them: only so many are made up for."""
        waiting = self.caught_up.setdefault(run.job_id, {})
        waiting[run.row.scheduled_at] = run
        for at in beyond_limit(decode_spec(run.spec).misfire, waiting):
            newcomer = waiting.pop(at)
            if newcomer is None:
                self._surplus[run.job_id, at] = run
            else:
                self._given_up.append(newcomer)

    async def write(self, tx: Tx) -> None:
        """Write what was decided, in a few statements."""
        holders = await _holders(tx, {run.job_id for run in (*self._skipped, *self._out.values())})
        endings = []
        for run in self._skipped:
            by = self._replaced_by.get((run.job_id, run.row.scheduled_at))
            endings.append(_overlapped(tx, run, run.row, holders, by))
        endings += [_missed(tx, run, run.row) for run in self._given_up]
        if self._out or self._surplus:
            leaving = to_json([*self._out, *self._surplus])
            for job_id, *found in await tx.all("take_blocked_rows", (leaving,)):
                row = UnstartedRow(*found)
                replaced_by = self._out.get((job_id, row.scheduled_at))
                if replaced_by is None:
                    endings.append(_missed(tx, self._surplus[job_id, row.scheduled_at], row))
                else:
                    endings.append(_overlapped(tx, replaced_by, row, holders, replaced_by))
        await write_endings(tx, endings)
        blocked = [_blocked(1, run) for run in self._others]
        for rank, waiting in ((0, self.waiting), (1, self.caught_up)):
            for of_job in waiting.values():
                blocked += [_blocked(rank, run) for run in of_job.values() if run is not None]
        await tx.insert("add_blocked", blocked)
        for run in self._cancelling.values():
            await _cancel_running(tx, run)


async def _holders(tx: Tx, job_ids: set[int]) -> dict[int, list[str]]:
    """The runs that hold the slots of jobs, a few of each: who asks why a run was skipped wants to know."""
    holders: dict[int, list[str]] = {job_id: [] for job_id in job_ids}
    if job_ids:
        for job_id, at in await tx.all("holders_of", (tx.array(sorted(job_ids)),)):
            holders[job_id].append(format_run_id(job_id, at))
    return holders


def _overlapped(
    tx: Tx, run: FullRun, row: UnstartedRow, holders: dict[int, list[str]], by: FullRun | None
) -> tuple[Any, ...]:
    """The end of a run that found its job full, or that a newer one has replaced in the queue."""
    detail: dict[str, Any] = {"reason": Reason.OVERLAP.value, "policy": decode_spec(run.spec).overlap.value}
    detail["held_by"] = holders[run.job_id]
    if by is not None:
        detail["replaced_by"] = format_run_id(by.job_id, by.row.scheduled_at)
    return ending(run.job_id, row, State.SKIPPED, tx.now_at, detail, run.version)


def _missed(tx: Tx, run: FullRun, row: UnstartedRow) -> tuple[Any, ...]:
    """The end of a missed run that newer missed ones have pushed beyond what its job makes up for."""
    detail = {"reason": Reason.MISFIRE.value, "policy": MisfirePolicy.CATCH_UP.value}
    return ending(run.job_id, row, State.SKIPPED, tx.now_at, detail, run.version)


def _blocked(rank: int, run: FullRun) -> tuple[Any, ...]:
    row = run.row
    return (run.job_id, rank, row.scheduled_at, row.lane, row.due_at, row.trigger, row.fence, row.tries)


async def end_deleted(tx: Tx, job_id: int, scheduled_at: int) -> None:
    """A run whose job is gone ends as cancelled."""
    taken = await tx.all("take_planned_row", (scheduled_at, job_id)) or await tx.all(
        "take_idle_row", (job_id, scheduled_at)
    )
    unstarted = [UnstartedRow(*row) for row in taken]
    await end_unstarted(tx, job_id, unstarted, State.CANCELLED, {"reason": Reason.DELETED.value})


async def _lateness(tx: Tx, record: JobRecord, row: UnstartedRow) -> Lateness:
    spec = decode_spec(record.spec)
    if row.scheduled_at > record.since:
        return judge_late(spec.rule, spec, row.scheduled_at, record.until, tx.now_at)
    # an earlier version's, so the present rule does not say what came after it
    versions = await versions_of(tx, record.id, record)
    return judge_late_by_versions(versions, spec, row.scheduled_at, tx.now_at)


async def _cancel_running(tx: Tx, run: FullRun) -> None:
    """Ask for what a worker executes; what nobody does, between two attempts or until its report, ends at once."""
    await tx.run("ask_cancel", (run.job_id,))
    tx.hints.add(Hint.CANCEL)
    idle = [
        UnstartedRow(*row)
        for name in ("drop_idle_of", "drop_reported_of")
        for row in await tx.all(name, (run.job_id,))
    ]
    detail = {"reason": Reason.OVERLAP.value, "policy": decode_spec(run.spec).overlap.value}
    await end_unstarted(tx, run.job_id, idle, State.CANCELLED, detail)
    await hand_on(tx, [run.job_id])
