"""Why a run was late: the parts of its lateness, each measured or left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import DAY_US, SECOND_US, format_instant
from hourhand.core.lifecycle import State
from hourhand.core.run import RunView
from hourhand.core.why import judge
from tests.core.why_facts import GAP, TODAY, WORKING, attempt, facts, run


def late_run(late_s: float, claimed_s: float | None) -> RunView:
    detail = {} if claimed_s is None else {"claimed_at": format_instant(TODAY + round(claimed_s * SECOND_US))}
    return run(State.SUCCEEDED, attempt(late_s=late_s, **detail))


def other(from_s: float, to_s: float) -> RunView:
    row = attempt(late_s=from_s, took_s=to_s - from_s)
    return run(State.SUCCEEDED, row, scheduled_at=TODAY - DAY_US)


@pytest.mark.parametrize(
    ("late_s", "claimed_s", "fields", "parts_s"),
    [
        (0.05, 0.01, {}, (None, None, None, None)),  # not worth it
        (5, None, {}, (None, None, None, None)),  # not measured
        (5, -1, {}, (0, 0, 0, 5)),  # taken ahead of time
        (5, 4, {}, (0, 0, 4, 1)),
        (5, 4, {"others": (other(-10, 3),)}, (0, 3, 1, 1)),
        (5, 4, {"others": (other(-10, -5),)}, (0, 0, 4, 1)),  # was over by then
        (3700, 3650, {"gap": GAP}, (3600, 0, 50, 50)),
        (3700, 3650, {"gap": GAP, "others": (other(-10, 3620),)}, (3600, 20, 30, 50)),
    ],
)
def test_where_the_time_went(
    late_s: float, claimed_s: float | None, fields: dict[str, Any], parts_s: tuple[float | None, ...]
) -> None:
    lateness = judge(facts(TODAY, late_run(late_s, claimed_s), **fields), WORKING).lateness
    assert lateness is not None
    parts = (lateness.planning_us, lateness.slot_us, lateness.queue_us, lateness.worker_us)
    assert parts == tuple(None if part is None else part * SECOND_US for part in parts_s)


@given(
    late=st.integers(101, 7_200_000),
    claimed=st.integers(-2_000, 8_000_000),
    held_to=st.integers(-1_000, 8_000_000),
    outage=st.booleans(),
)
def test_parts_are_never_negative_and_add_up(late: int, claimed: int, held_to: int, outage: bool) -> None:
    known = facts(
        TODAY,
        late_run(late / 1_000, claimed / 1_000),
        gap=GAP if outage else None,
        others=(other(-2, held_to / 1_000),),
    )
    lateness = judge(known, WORKING).lateness
    assert lateness is not None
    parts = (lateness.planning_us, lateness.slot_us, lateness.queue_us, lateness.worker_us)
    assert all(part is not None and part >= 0 for part in parts)
    assert sum(part or 0 for part in parts) == lateness.total_us
