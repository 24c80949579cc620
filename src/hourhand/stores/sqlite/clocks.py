"""Operations on clocks: which are due, and the step that plans them."""

from collections.abc import Sequence
from typing import Any

from hourhand.core.model import FOREVER, MisfirePolicy
from hourhand.core.plan import ClockPlan, Gap, MisfireGroup
from hourhand.ports.store import Clock, Hint
from hourhand.stores.sqlite.engine import Tx
from hourhand.stores.sqlite.rows import to_json


def due_clocks(tx: Tx, segments: Sequence[int], before_at: int, limit: int) -> list[Clock]:
    """Clocks to be planned; for those that are behind, how their members miss."""
    found = []
    for clock_id, rule_key, next_at in tx.all("due_clocks", (before_at, to_json(list(segments)), limit)):
        misfires = _misfires(tx, clock_id, next_at, tx.now_at) if next_at <= tx.now_at else ()
        found.append(Clock(id=clock_id, rule_key=rule_key, next_at=next_at, misfires=misfires))
    return found


def next_clock_at(tx: Tx, segments: Sequence[int]) -> int | None:
    """When the next clock is to be planned."""
    row = tx.one("next_clock", (to_json(list(segments)),))
    return None if row is None else row[0]


def plan(tx: Tx, plans: Sequence[ClockPlan]) -> int:
    """Insert the members' runs and move the clocks; a clock that changed meanwhile is left alone."""
    tx.run("clear_steps")
    tx.run("clear_times")
    tx.insert(
        "add_step", [(plan.clock_id, plan.expected_next_at, plan.new_next_at, plan.late_to) for plan in plans]
    )
    stale = {row[0] for row in tx.all("drop_stale_steps")}
    stale |= _with_new_groups(tx, plans)
    fresh = [plan for plan in plans if plan.clock_id not in stale]
    tx.insert("add_time", [row for plan in fresh for row in _time_rows(plan)])
    count = tx.run("plan_members").rowcount
    tx.run("move_clocks")
    tx.run("sleep_clocks")
    for plan in fresh:
        record_gaps(tx, plan.clock_id, plan.gaps)
    if count > 0:
        tx.hints.add(Hint.RUNS)
    return count


def record_gaps(tx: Tx, clock_id: int, gaps: Sequence[Gap]) -> None:
    """Keep what members of a clock missed."""
    tx.insert(
        "add_gap",
        [
            (
                clock_id,
                gap.from_at,
                gap.to_at,
                gap.policy.value,
                gap.grace_us,
                gap.limit,
                gap.missed,
                gap.ran,
                tx.now_at,
            )
            for gap in gaps
        ],
    )


def _misfires(tx: Tx, clock_id: int, next_at: int, before_at: int) -> tuple[MisfireGroup, ...]:
    rows = tx.all("misfires_of", {"clock_id": clock_id, "next_at": next_at, "before": before_at})
    return tuple(
        MisfireGroup(MisfirePolicy(policy), grace_us, limit, FOREVER if until is None else until)
        for policy, grace_us, limit, until in rows
    )


def _with_new_groups(tx: Tx, plans: Sequence[ClockPlan]) -> set[int]:
    """Late clocks with members that the plan does not speak of: they changed since, so planned next time."""
    changed = set()
    for plan in plans:
        if plan.late_to is None:
            continue
        groups = _misfires(tx, plan.clock_id, plan.expected_next_at, plan.late_to)
        if not set(groups) <= set(plan.groups):
            changed.add(plan.clock_id)
            tx.run("drop_step", (plan.clock_id,))
    return changed


def _time_rows(plan: ClockPlan) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for time in plan.times:
        head = (plan.clock_id, time.scheduled_at, time.room_us, int(time.background))
        only = time.only
        if only is None:
            rows.append((*head, None, None, None, None, None, None))
        else:
            group = only.group
            until = None if group.until == FOREVER else group.until
            policy = (group.policy.value, group.grace_us, group.limit, until)
            rows.append((*head, *policy, only.since_from, only.since_below))
    return rows
