"""How outcomes go down a graph: children of ended runs are told, and go or are skipped when all parents have ended.

One level of the graph per transaction: a child that is skipped ends, and so is a descent of its own. Telling is
idempotent: what was heard first stands, and a run that exists is not made again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hourhand.core.dag import (
    Missing,
    ParentOutcome,
    Step,
    decide,
    goes_down,
    is_background,
    trigger_below,
)
from hourhand.core.identity import background_lane, format_job_id, jitter_us
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import AfterTiming
from hourhand.core.run import TRIGGER_CODES, TRIGGERS
from hourhand.ports.store import Hint
from hourhand.stores.relational.endings import write_endings
from hourhand.stores.relational.rows import (
    STATE_CODES,
    STATES,
    JobRecord,
    UnstartedRow,
    decode_spec,
    ending,
    from_json,
    to_json,
)
from hourhand.stores.relational.tx import Tx

FIRST_LOOK_US = 15 * SECOND_US  # until then a parent's run is likely just not there yet
_MISSING = -1

Pair = tuple[int, int]  # a job and a nominal time


class Wait(NamedTuple):
    """A row of `waiting`."""

    job_id: int
    scheduled_at: int
    made_at: int
    deadline_at: int
    look_at: int
    fence: int
    trigger: int
    parents: str

    @property
    def pair(self) -> Pair:
        """Which run it is."""
        return self.job_id, self.scheduled_at

    @property
    def parent_ids(self) -> list[int]:
        """Whom it waits for."""
        return from_json(self.parents)  # type: ignore[no-any-return]


class _Ended(NamedTuple):
    job_id: int
    scheduled_at: int
    state: int
    trigger: int


async def descend(tx: Tx, limit: int) -> int:
    """Tell the children of some ended runs; answers of how many."""
    taken = sorted(await tx.all("take_descents", (limit,)))
    if not taken:
        return 0
    ended = [_Ended(*row[1:]) for row in taken]
    told, made = await _children(tx, ended)
    pairs = sorted({pair for pair, _ in told})
    jobs = await shared_jobs(tx, (job_id for job_id, _ in pairs))
    await _make_waits(tx, made, jobs)
    waits = await hold_waits(tx, pairs)
    signals = [
        (*pair, one.job_id, one.state)
        for pair, one in told
        if pair in waits and one.job_id in waits[pair].parent_ids
    ]
    await tx.insert("add_signal", sorted(signals))
    await settle_waits(tx, waits, jobs, await outcomes_of(tx, list(waits)))
    return len(taken)


async def shared_jobs(tx: Tx, ids: Iterable[int]) -> dict[int, JobRecord]:
    """Jobs that shall not change while their waiting runs are decided."""
    rows = await tx.all("share_jobs", (tx.array(sorted(set(ids))),))
    await tx.look_at_clock()
    return {row[0]: JobRecord(*row) for row in rows}


async def hold_waits(tx: Tx, pairs: Sequence[Pair]) -> dict[Pair, Wait]:
    """Those of some runs that wait for their parents, held.

    A new row for a run that exists already goes again: whoever decided it was faster.
    """
    if not pairs:
        return {}
    waits = {
        wait.pair: wait for wait in (Wait(*row) for row in await tx.all("hold_waiting", (to_json(pairs),)))
    }
    new = [pair for pair, wait in waits.items() if wait.fence == 0]
    if new:
        late = [(row[0], row[1]) for row in await tx.all("runs_elsewhere", (to_json(new),))]
        if late:
            await drop_waits(tx, late)
            waits = {pair: wait for pair, wait in waits.items() if pair not in set(late)}
    return waits


async def outcomes_of(tx: Tx, pairs: Sequence[Pair]) -> dict[Pair, dict[int, ParentOutcome]]:
    """What waiting runs have heard of their parents."""
    found: dict[Pair, dict[int, ParentOutcome]] = {pair: {} for pair in pairs}
    if pairs:
        for job_id, scheduled_at, parent, state in await tx.all("signals_of", (to_json(pairs),)):
            found[job_id, scheduled_at][parent] = outcome_of_code(state)
    return found


async def settle_waits(
    tx: Tx,
    waits: Mapping[Pair, Wait],
    jobs: Mapping[int, JobRecord],
    outcomes: Mapping[Pair, Mapping[int, ParentOutcome]],
) -> set[Pair]:
    """Let go what need wait no longer; answers which runs that were."""
    planned: list[tuple[Any, ...]] = []
    endings: list[tuple[Any, ...]] = []
    over: set[Pair] = set()
    for pair, wait in waits.items():
        record = jobs.get(wait.job_id)
        decision = decide(wait.parent_ids, outcomes[pair])
        if record is None:
            endings.append(end_wait(tx, wait, None, State.CANCELLED, {"reason": Reason.DELETED.value}))
        elif decision.step is Step.WAIT:
            continue
        elif decision.step is Step.SKIP:
            assert decision.parent is not None
            assert decision.outcome is not None
            why = {"parent": format_job_id(decision.parent), "outcome": decision.outcome.value}
            endings.append(
                end_wait(tx, wait, record, State.SKIPPED, {"reason": Reason.UPSTREAM.value, **why})
            )
        elif record.paused:
            detail = {"reason": Reason.PAUSED.value, "note": record.note}
            endings.append(end_wait(tx, wait, record, State.SKIPPED, detail))
        else:
            planned.append(_planned(tx, wait, record))
        over.add(pair)
    if planned:
        await tx.insert("add_planned", planned)
        tx.hints.add(Hint.RUNS)
    await write_endings(tx, endings)
    await drop_waits(tx, sorted(over))
    return over


async def drop_waits(tx: Tx, pairs: Sequence[Pair]) -> None:
    """Forget waiting runs and what they had heard."""
    if pairs:
        await tx.all("drop_waiting", (to_json(pairs),))
        await tx.run("drop_signals", (to_json(pairs),))


def end_wait(
    tx: Tx, wait: Wait, record: JobRecord | None, state: State, detail: dict[str, Any]
) -> tuple[Any, ...]:
    """The history of a run that ends while it waits for its parents."""
    lane = 0 if record is None else record.lane
    row = UnstartedRow(wait.scheduled_at, lane, wait.scheduled_at, wait.trigger, wait.fence, 0)
    return ending(wait.job_id, row, state, tx.now_at, detail, None if record is None else record.version)


def wait_row(
    tx: Tx, record: JobRecord, at: int, parents: Iterable[int], *, trigger: int, fence: int = 0
) -> tuple[Any, ...]:
    """A row for `add_waiting`."""
    timing = decode_spec(record.spec).timing
    assert isinstance(timing, AfterTiming)
    deadline_at = tx.now_at + timing.wait_us
    look_at = min(deadline_at, tx.now_at + FIRST_LOOK_US)
    return (record.id, at, tx.now_at, deadline_at, look_at, fence, trigger, to_json(sorted(parents)))


def outcome_of_code(code: int) -> ParentOutcome:
    """How a parent ended, from what is kept of it."""
    return Missing.MISSING if code == _MISSING else STATES[code]


def code_of_outcome(outcome: ParentOutcome) -> int:
    """How a parent ended, as it is kept."""
    return _MISSING if isinstance(outcome, Missing) else STATE_CODES[outcome]


async def _children(tx: Tx, ended: Sequence[_Ended]) -> tuple[list[tuple[Pair, _Ended]], dict[Pair, int]]:
    """Who is to hear of ended runs; and of those, who gets a run by it, with the trigger of that."""
    by_run: dict[Pair, list[_Ended]] = {}
    for one in ended:
        by_run.setdefault((one.job_id, one.scheduled_at), []).append(one)
    told: list[tuple[Pair, _Ended]] = []
    made: dict[Pair, int] = {}
    for parent, at, child, follows in await tx.all("children_of", (to_json(sorted(by_run)),)):
        for one in by_run[parent, at]:
            told.append(((child, at), one))
            trigger = TRIGGERS[one.trigger]
            if follows and goes_down(trigger):
                made.setdefault((child, at), TRIGGER_CODES[trigger_below(trigger)])
    return told, made


async def _make_waits(tx: Tx, made: Mapping[Pair, int], jobs: Mapping[int, JobRecord]) -> None:
    """Runs of children that their parents' schedule brings about; whom they follow is fixed here."""
    if not made:
        return
    parents: dict[Pair, list[int]] = {}
    for child, at, parent in await tx.all("parents_at", (to_json(sorted(made)),)):
        parents.setdefault((child, at), []).append(parent)
    rows = []
    for (child, at), trigger in sorted(made.items()):
        record = jobs.get(child)
        if record is not None and isinstance(decode_spec(record.spec).timing, AfterTiming):
            rows.append(wait_row(tx, record, at, parents[child, at], trigger=trigger))
    await tx.insert("add_waiting", rows)


def _planned(tx: Tx, wait: Wait, record: JobRecord) -> tuple[Any, ...]:
    at = wait.scheduled_at
    due_at = tx.now_at + jitter_us(record.id, at, decode_spec(record.spec).jitter_us)
    lane = background_lane(record.lane) if is_background(TRIGGERS[wait.trigger]) else record.lane
    return (at, record.id, lane, due_at, wait.trigger, wait.fence, 0)
