"""The plan: insert the members' runs of many clocks and move the clocks.

The clocks are locked in one statement and their members read in the next, so that a job that joined while
the lock was waited for is not missed.
"""

from collections.abc import Sequence
from typing import Any

from hourhand.core.model import FOREVER
from hourhand.core.plan import ClockPlan
from hourhand.ports.store import Hint
from hourhand.stores.relational.clocks import misfires_of, record_gaps
from hourhand.stores.relational.tx import Tx

_TIME_COLUMNS = (
    "clock_ids", "ats", "after_ats", "rooms", "backgrounds", "policies", "graces", "catch_ups", "untils",
    "since_froms", "since_belows", "late_tos",
)  # fmt: skip


async def plan(tx: Tx, plans: Sequence[ClockPlan]) -> int:
    """Insert the members' runs and move the clocks; a clock that changed meanwhile is left alone."""
    held = {
        row[0]
        for row in await tx.all(
            "lock_steps",
            {
                "clock_ids": [plan.clock_id for plan in plans],
                "expected": [plan.expected_next_at for plan in plans],
                "fences": [plan.fence for plan in plans],
            },
        )
    }
    fresh = [plan for plan in plans if plan.clock_id in held and not await _has_new_groups(tx, plan)]
    if not fresh:
        return 0
    rows = [row for plan in fresh for row in _time_rows(plan)]
    columns = zip(*rows, strict=True) if rows else ([] for _ in _TIME_COLUMNS)
    parameters = {name: list(column) for name, column in zip(_TIME_COLUMNS, columns, strict=True)}
    count = await tx.run("plan_members", parameters) if rows else 0
    moves = {
        "clock_ids": [plan.clock_id for plan in fresh],
        "next_ats": [plan.new_next_at for plan in fresh],
    }
    await tx.run("move_clocks", moves)
    for plan in fresh:
        await record_gaps(tx, plan.clock_id, plan.gaps)
    if count > 0:
        tx.hints.add(Hint.RUNS)
    return count


async def _has_new_groups(tx: Tx, plan: ClockPlan) -> bool:
    """A late clock with members that the plan does not speak of: it changed since, so planned next time."""
    if plan.late_to is None:
        return False
    groups = await misfires_of(tx, plan.clock_id, plan.expected_next_at, plan.late_to)
    return not set(groups) <= set(plan.groups)


def _time_rows(plan: ClockPlan) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for time in plan.times:
        head = (plan.clock_id, time.scheduled_at, time.after_at, time.room_us, int(time.background))
        only = time.only
        if only is None:
            rows.append((*head, None, None, None, None, None, None, None))
        else:
            group = only.group
            until = None if group.until == FOREVER else group.until
            policy = (group.policy.value, group.grace_us, group.limit, until)
            rows.append((*head, *policy, only.since_from, only.since_below, plan.late_to))
    return rows
