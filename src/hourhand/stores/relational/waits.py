"""Runs that wait for parents who may never come: looked at now and then, so that nothing waits for ever.

A parent will not come when it has no run for that time, and neither its clock nor its own parents can still bring
one about. Whatever else keeps a run waiting ends at its deadline.
"""

from collections.abc import Sequence

from hourhand.core.dag import Missing, ParentOutcome
from hourhand.core.identity import format_job_id
from hourhand.core.instant import MINUTE_US
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import AfterTiming
from hourhand.stores.relational.descents import (
    FIRST_LOOK_US,
    Pair,
    Wait,
    code_of_outcome,
    drop_waits,
    end_wait,
    hold_waits,
    outcome_of_code,
    outcomes_of,
    settle_waits,
    shared_jobs,
)
from hourhand.stores.relational.endings import write_endings
from hourhand.stores.relational.rows import JobRecord, decode_spec, to_json
from hourhand.stores.relational.tx import Tx

_LONGEST_PAUSE_US = 10 * MINUTE_US
_MAX_NAMED = 20


async def judge_waits(tx: Tx, limit: int) -> int:
    """Look at waiting runs whose time has come for it; answers how many there were."""
    pairs = [(row[0], row[1]) for row in await tx.all("waits_to_look_at", (tx.now_at, limit))]
    if not pairs:
        return 0
    jobs = await shared_jobs(tx, (job_id for job_id, _ in pairs))
    waits = await hold_waits(tx, sorted(pairs))
    outcomes = await outcomes_of(tx, list(waits))
    prospects = Prospects(tx)
    signals = []
    for pair, wait in waits.items():
        for parent in wait.parent_ids:
            if parent not in outcomes[pair]:
                outcome = await prospects.outcome(parent, wait.scheduled_at)
                if outcome is not None:
                    outcomes[pair][parent] = outcome
                    signals.append((*pair, parent, code_of_outcome(outcome)))
    await tx.insert("add_signal", signals)
    over = await settle_waits(tx, waits, jobs, outcomes)
    await _expire_or_wait(tx, [wait for pair, wait in waits.items() if pair not in over], jobs, outcomes)
    return len(pairs)


async def _expire_or_wait(
    tx: Tx,
    waits: Sequence[Wait],
    jobs: dict[int, JobRecord],
    outcomes: dict[Pair, dict[int, ParentOutcome]],
) -> None:
    expired = [wait for wait in waits if wait.deadline_at <= tx.now_at]
    endings = []
    for wait in expired:
        missing = [format_job_id(one) for one in wait.parent_ids if one not in outcomes[wait.pair]]
        detail = {"reason": Reason.EXPIRED.value, "waited_for": missing[:_MAX_NAMED]}
        endings.append(end_wait(tx, wait, jobs[wait.job_id], State.SKIPPED, detail))
    await write_endings(tx, endings)
    await drop_waits(tx, [wait.pair for wait in expired])
    later = [(*wait.pair, _next_look(wait, tx.now_at)) for wait in waits if wait.deadline_at > tx.now_at]
    if later:
        await tx.run("look_later", (to_json(later),))


def _next_look(wait: Wait, now_at: int) -> int:
    """The longer it has waited, the less it hurts to look seldom."""
    pause_us = min(max(now_at - wait.made_at, FIRST_LOOK_US), _LONGEST_PAUSE_US)
    return min(now_at + pause_us, wait.deadline_at)


class Prospects:
    """What is to be expected of parents at nominal times, each looked up once.

    Past `limit` looks nobody looks further up a graph: what is not known may yet come.
    """

    def __init__(self, tx: Tx, limit: int | None = None) -> None:
        self._tx = tx
        self._limit = limit
        self._known: dict[Pair, ParentOutcome | None] = {}

    async def outcome(self, job_id: int, at: int) -> ParentOutcome | None:
        """How its run ended, or that there will be none; None while it may yet end."""
        pair = (job_id, at)
        if pair not in self._known:
            if self._limit is not None and len(self._known) >= self._limit:
                return None
            self._known[pair] = await self._look(job_id, at)
        return self._known[pair]

    async def _look(self, job_id: int, at: int) -> ParentOutcome | None:
        run = {"job_id": job_id, "scheduled_at": at}
        if await self._tx.one("run_is_live", run) or await self._tx.one("is_descending", (job_id, at)):
            return None
        ended = await self._tx.one("ended_as", run)
        if ended is not None:
            return outcome_of_code(ended[0])
        row = await self._tx.one("get_job", (job_id,))
        if row is None:
            return Missing.MISSING
        record = JobRecord(*row)
        if isinstance(decode_spec(record.spec).timing, AfterTiming):
            may_come = await self._parents_may_come(job_id, at)
        else:
            may_come = await self._clock_may_come(record, at)
        return None if may_come else Missing.MISSING

    async def _parents_may_come(self, job_id: int, at: int) -> bool:
        for _, _, parent in await self._tx.all("parents_at", (to_json([(job_id, at)]),)):
            if await self.outcome(parent, at) is None:
                return True
        return False

    async def _clock_may_come(self, record: JobRecord, at: int) -> bool:
        if record.clock_id is None or not record.since < at <= record.until:
            return False
        rule = decode_spec(record.spec).rule
        if rule is None or rule.newest_in(at - 1, at) is None:
            return False
        next_at = (await self._tx.one("clock_next", (record.clock_id,)))[0]
        return next_at is not None and next_at <= at
