"""The plan: insert the members' runs of many clocks and move the clocks, in a few set-based statements."""

from collections.abc import Sequence
from typing import Any

from hourhand.core.model import FOREVER
from hourhand.core.plan import ClockPlan
from hourhand.ports.store import Hint
from hourhand.stores.relational.clocks import misfires_of, record_gaps
from hourhand.stores.relational.tx import Tx


async def plan(tx: Tx, plans: Sequence[ClockPlan]) -> int:
    """Insert the members' runs and move the clocks; a clock that changed meanwhile is left alone."""
    await tx.run("clear_steps")
    await tx.run("clear_times")
    await tx.insert(
        "add_step",
        [
            (plan.clock_id, plan.expected_next_at, plan.new_next_at, plan.late_to, plan.fence)
            for plan in plans
        ],
    )
    stale = {row[0] for row in await tx.all("drop_stale_steps")}
    stale |= await _with_new_groups(tx, plans)
    fresh = [plan for plan in plans if plan.clock_id not in stale]
    await tx.insert("add_time", [row for plan in fresh for row in _time_rows(plan)])
    count = await tx.run("plan_members")
    await tx.run("move_clocks")
    await tx.run("sleep_clocks")
    for plan in fresh:
        await record_gaps(tx, plan.clock_id, plan.gaps)
    if count > 0:
        tx.hints.add(Hint.RUNS)
    return count


async def _with_new_groups(tx: Tx, plans: Sequence[ClockPlan]) -> set[int]:
    """Late clocks with members that the plan does not speak of: they changed since, so planned next time."""
    changed = set()
    for plan in plans:
        if plan.late_to is None:
            continue
        groups = await misfires_of(tx, plan.clock_id, plan.expected_next_at, plan.late_to)
        if not set(groups) <= set(plan.groups):
            changed.add(plan.clock_id)
            await tx.run("drop_step", (plan.clock_id,))
    return changed


def _time_rows(plan: ClockPlan) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for time in plan.times:
        head = (plan.clock_id, time.scheduled_at, time.after_at, time.room_us, int(time.background))
        only = time.only
        if only is None:
            rows.append((*head, None, None, None, None, None, None))
        else:
            group = only.group
            until = None if group.until == FOREVER else group.until
            policy = (group.policy.value, group.grace_us, group.limit, until)
            rows.append((*head, *policy, only.since_from, only.since_below))
    return rows
