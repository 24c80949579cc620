"""Where the time went between a run's due time and its start. Pure.

Measured: due time, start, and for starts over `WORTH_SPLITTING_US` late the moment at which the worker took the run;
when an outage ended; when other runs of the job ended. Inferred: that a run which overlapped the wait held the slot.
"""

from collections.abc import Sequence

from hourhand.core.instant import SECOND_US, parse_instant
from hourhand.core.lifecycle import FINAL
from hourhand.core.model import FOREVER
from hourhand.core.run import AttemptRow, RunView
from hourhand.core.why.facts import Lateness, RunFacts

WORTH_SPLITTING_US = SECOND_US // 10  # below it nobody asks where it went, and nothing is kept about it
CLAIMED_AT = "claimed_at"  # in the detail of an attempt


def lateness_of(facts: RunFacts) -> Lateness | None:
    """How late a run's first attempt started; None where it has not."""
    run = facts.run
    first = None if run is None else next((row for row in run.attempts if row.started_at is not None), None)
    if first is None:
        return None
    assert first.started_at is not None
    total_us = max(0, first.started_at - first.due_at)
    claimed_at = claimed_at_of(first)
    if total_us <= WORTH_SPLITTING_US or claimed_at is None:
        return Lateness(total_us=total_us)
    taken_at = min(max(claimed_at, first.due_at), first.started_at)
    planned_at = first.due_at
    if facts.gap is not None:
        planned_at = min(max(facts.gap.decided_at, first.due_at), taken_at)
    holder = slot_holder(facts.others, planned_at, taken_at, _limit(facts))
    free_at = planned_at if holder is None else min(max(_end(holder), planned_at), taken_at)
    return Lateness(
        total_us=total_us,
        planning_us=planned_at - first.due_at,
        slot_us=free_at - planned_at,
        queue_us=taken_at - free_at,
        worker_us=first.started_at - taken_at,
    )


def slot_holder(others: Sequence[RunView], from_at: int, to_at: int, limit: int | None) -> RunView | None:
    """The run whose end made room between two instants; None where the job had a free slot."""
    if limit is None:
        return None
    held = [one for one in others if (span := span_of(one)) and span[0] <= from_at < span[1]]
    if len(held) < limit:
        return None
    ended = [one for one in others if (span := span_of(one)) and from_at < span[1] <= to_at]
    return max(ended, key=_end, default=None)


def span_of(run: RunView) -> tuple[int, int] | None:
    """From when to when a run held a slot, as far as its attempts say; None where it never did."""
    started = [row.started_at for row in run.attempts if row.started_at is not None]
    if run.began_at is not None:
        started.append(run.began_at)
    if not started:
        return None
    return min(started), _end(run)


def claimed_at_of(row: AttemptRow) -> int | None:
    """When a worker took the run of an attempt, where that was kept."""
    kept = (row.detail or {}).get(CLAIMED_AT)
    return parse_instant(kept) if isinstance(kept, str) else None


def _end(run: RunView) -> int:
    """When it gave its slot back; one that has not ended still has it."""
    return run.attempts[-1].finished_at if run.state in FINAL and run.attempts else FOREVER


def _limit(facts: RunFacts) -> int | None:
    run = facts.run
    version = next((one for one in facts.versions if run is not None and one.version == run.version), None)
    spec = version.spec if version is not None else facts.versions[-1].spec
    return spec.concurrency
