"""Slots and overlap, as pure decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.model import MAX_QUEUED, Overlap
from hourhand.core.overlap import FullVerdict, free_slots, in_order, when_full


@pytest.mark.parametrize(
    ("overlap", "waiting", "at", "verdict"),
    [
        (Overlap.SKIP, [], 5, FullVerdict(wait=False)),
        (Overlap.SKIP, [3], 5, FullVerdict(wait=False)),
        (Overlap.QUEUE, [], 5, FullVerdict(wait=True)),
        (Overlap.QUEUE, [9], 5, FullVerdict(wait=True)),
        (Overlap.QUEUE, list(range(MAX_QUEUED - 1)), 500, FullVerdict(wait=True)),
        (Overlap.QUEUE, list(range(MAX_QUEUED)), 500, FullVerdict(wait=False)),
        (Overlap.QUEUE_ONE, [], 5, FullVerdict(wait=True)),
        (Overlap.QUEUE_ONE, [3, 4], 5, FullVerdict(wait=True, skip_waiting=(3, 4))),
        (Overlap.QUEUE_ONE, [6], 5, FullVerdict(wait=False)),
        (Overlap.CANCEL_RUNNING, [], 5, FullVerdict(wait=True, cancel_running=True)),
        (Overlap.CANCEL_RUNNING, [3], 5, FullVerdict(wait=True, skip_waiting=(3,), cancel_running=True)),
        (Overlap.CANCEL_RUNNING, [6], 5, FullVerdict(wait=False)),
    ],
)
def test_a_full_job(overlap: Overlap, waiting: list[int], at: int, verdict: FullVerdict) -> None:
    assert when_full(overlap, waiting, at) == verdict


@pytest.mark.parametrize(
    ("limit", "used", "wanted", "slots"),
    [
        (1, [], [10, 20], [0]),
        (1, [0], [10], []),
        (3, [1], [10, 20, 30], [0, 2]),
        (3, [], [10], [0]),
        (None, [10], [20, 30], [20, 30]),
        (1, [2], [10], []),  # a lowered limit drains
        (2, [5], [10, 20], [0]),
        (2, [1_794_819_600_000_000], [10, 20], [0]),  # from no limit to two
        (3, [0, 1, 2, 3, 4], [10], []),
        (5, [0], [], []),
    ],
)
def test_free_slots(limit: int | None, used: list[int], wanted: list[int], slots: list[int]) -> None:
    assert free_slots(limit, used, wanted) == slots


@given(
    st.none() | st.integers(1, 50),
    st.sets(st.integers(0, 60)),
    st.lists(st.integers(1_000, 10_000), unique=True),
)
def test_no_slot_is_given_twice_or_beyond_the_limit(
    limit: int | None, used: set[int], wanted: list[int]
) -> None:
    slots = free_slots(limit, used, wanted)
    assert len(slots) == len(set(slots)) <= len(wanted)
    assert not set(slots) & used
    if limit is not None:
        assert not slots or len(used) + len(slots) <= limit
        assert all(0 <= slot < limit for slot in slots)
        if len(slots) < len(wanted):
            assert len(used) + len(slots) >= limit or len(slots) == limit - len(used)


@pytest.mark.parametrize(
    ("candidates", "allowed"),
    [
        ([], set()),
        ([(5, None), (6, None)], {5, 6}),
        ([(5, None), (6, 5), (7, 6)], {5, 6, 7}),
        ([(6, 5), (7, 6)], set()),
        ([(4, None), (6, 5), (7, 6), (9, None)], {4, 9}),
    ],
)
def test_nobody_goes_ahead_of_one_that_stays_planned(
    candidates: list[tuple[int, int | None]], allowed: set[int]
) -> None:
    assert in_order(candidates) == allowed
