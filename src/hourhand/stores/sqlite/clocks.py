"""Operations on clocks: which are due, and the step that plans them."""

from collections.abc import Sequence
from typing import Any

from hourhand.core.plan import ClockPlan
from hourhand.ports.store import Clock, Hint
from hourhand.stores.sqlite.engine import Tx
from hourhand.stores.sqlite.rows import to_json


def due_clocks(tx: Tx, segments: Sequence[int], before_at: int, limit: int) -> list[Clock]:
    """Clocks to be planned; for those that are behind, the policies among their members."""
    found = []
    for clock_id, rule_key, next_at in tx.all("due_clocks", (before_at, to_json(list(segments)), limit)):
        misfires = _misfires(tx, clock_id) if next_at <= tx.now_at else ()
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
    tx.insert("add_step", [(plan.clock_id, plan.expected_next_at, plan.new_next_at) for plan in plans])
    stale = {row[0] for row in tx.all("drop_stale_steps")}
    stale |= _with_new_policies(tx, plans)
    tx.insert("add_time", [row for plan in plans if plan.clock_id not in stale for row in _time_rows(plan)])
    count = tx.run("plan_members").rowcount
    tx.run("move_clocks")
    tx.run("sleep_clocks")
    gaps = [
        (
            plan.clock_id,
            gap.from_at,
            gap.to_at,
            gap.policy.value,
            gap.grace_us,
            gap.limit,
            gap.missed,
            gap.ran,
            tx.now_at,
        )
        for plan in plans
        if plan.clock_id not in stale
        for gap in plan.gaps
    ]
    tx.insert("add_gap", gaps)
    if count > 0:
        tx.hints.add(Hint.RUNS)
    return count


def _misfires(tx: Tx, clock_id: int) -> tuple[tuple[str, int, int], ...]:
    return tuple((policy, grace_us, limit) for policy, grace_us, limit in tx.all("misfires_of", (clock_id,)))


def _with_new_policies(tx: Tx, plans: Sequence[ClockPlan]) -> set[int]:
    """Late clocks among whose members a policy appeared after the plan was made: planned next time."""
    changed = set()
    for plan in plans:
        known = {
            (time.only.policy.value, time.only.grace_us, time.only.limit)
            for time in plan.times
            if time.only is not None
        } | {(gap.policy.value, gap.grace_us, gap.limit) for gap in plan.gaps}
        if known and not set(_misfires(tx, plan.clock_id)) <= known:
            changed.add(plan.clock_id)
            tx.run("drop_step", (plan.clock_id,))
    return changed


def _time_rows(plan: ClockPlan) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for time in plan.times:
        head = (plan.clock_id, time.scheduled_at, time.room_us, int(time.background))
        only = time.only
        if only is None:
            rows.append((*head, None, None, None, None, None))
        else:
            rows.append(
                (*head, only.policy.value, only.grace_us, only.limit, only.since_from, only.since_below)
            )
    return rows
