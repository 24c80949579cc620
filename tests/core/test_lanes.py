"""Lanes, segments and the shares of classes: plain arithmetic that every node must agree on."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.identity import (
    BACKGROUND,
    LANES_PER_POOL,
    SEGMENTS,
    TENANT_LANES,
    background_lane,
    class_of_lane,
    jitter_us,
    lane_of,
    segment_of,
    tenant_lane,
)
from hourhand.core.lanes import divide, floors
from hourhand.core.model import Priority

CLASSES = [*Priority, BACKGROUND]
ROOMS = st.integers(0, 3_000)
TAKEN = st.integers(0, 10**9)
WAITING = st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 3_000)).map(
    lambda drawn: {int(k): v for k, v in drawn.items()}
)


def test_lanes_are_all_different_and_know_their_class() -> None:
    lanes = {
        lane_of(pool, run_class, slot): run_class
        for pool in range(5)
        for run_class in CLASSES
        for slot in range(TENANT_LANES + 1)
    }
    assert len(lanes) == 5 * 4 * (TENANT_LANES + 1)
    assert all(class_of_lane(lane) == run_class for lane, run_class in lanes.items())
    assert all(lane // LANES_PER_POOL in range(5) for lane in lanes)
    for lane in lanes:
        moved = background_lane(lane)
        assert class_of_lane(moved) == BACKGROUND
        assert (moved // LANES_PER_POOL, moved % 32) == (lane // LANES_PER_POOL, lane % 32)


@given(st.text())
def test_a_tenants_lane_is_one_of_sixteen(tenant: str) -> None:
    assert 0 <= tenant_lane(tenant) < TENANT_LANES


def test_segments_are_even_for_ids_that_follow_one_another() -> None:
    """Ids grow with time: many in a millisecond, or one each second, must spread alike."""
    for step in (1, 64, 1 << 22, 1000 << 22):
        counts = Counter(segment_of((1 << 59) + n * step) for n in range(6_400))
        assert set(counts) == set(range(SEGMENTS))
        assert max(counts.values()) < 200


@pytest.mark.parametrize(
    ("job_id", "segment", "at", "span", "jitter"),
    [
        (1, 57, 0, 30_000_000, 21_644_000),
        (5_000_000_000, 62, 1_794_819_600_000_000, 30_000_000, 4_095_000),
        (2**63 - 1, 3, 1_794_819_600_000_000, 1_000_000, 97_000),
    ],
)
def test_segment_and_jitter_never_change(job_id: int, segment: int, at: int, span: int, jitter: int) -> None:
    """What is stored was computed with them: other numbers would lose or double runs."""
    assert (segment_of(job_id), jitter_us(job_id, at, span)) == (segment, jitter)


@given(st.integers(0, 2**63 - 1), st.integers(0, 4 * 10**15), st.integers(0, 2**62))
def test_jitter_stays_below_its_span_in_whole_milliseconds(job_id: int, at: int, span: int) -> None:
    found = jitter_us(job_id, at, span)
    assert 0 <= found < max(span, 1)
    assert found % 1000 == 0
    assert found == jitter_us(job_id, at, span)


def test_jitter_spreads_a_herd() -> None:
    spread = Counter(jitter_us(n, 1_794_819_600_000_000, 10_000_000) // 1_000_000 for n in range(10_000))
    assert set(spread) == set(range(10))
    assert max(spread.values()) < 1_500


@given(ROOMS, TAKEN)
def test_no_two_classes_are_owed_the_same_claim(room: int, taken: int) -> None:
    owed = floors(room, taken)
    assert sum(owed.values()) <= room
    assert all(0 <= floor <= room for floor in owed.values())


@given(st.lists(st.integers(0, 70), max_size=40))
def test_floors_are_the_same_over_many_claims_as_over_one(rooms: list[int]) -> None:
    total: Counter[int] = Counter()
    taken = 0
    for room in rooms:
        total.update(floors(room, taken))
        taken += room
    assert dict(+total) == {k: v for k, v in floors(taken, 0).items() if v}


def test_of_a_hundred_claims_ten_are_medium_five_low_and_one_background() -> None:
    assert floors(20, 0) == {Priority.MEDIUM: 2, Priority.LOW: 1, BACKGROUND: 0}
    assert floors(100, 0) == {Priority.MEDIUM: 10, Priority.LOW: 5, BACKGROUND: 1}


@given(ROOMS, WAITING, TAKEN)
def test_room_is_divided_wholly_and_nothing_is_given_twice(
    room: int, waiting: dict[int, int], taken: int
) -> None:
    share = divide(room, waiting, taken)
    assert sum(share.values()) == min(room, sum(waiting.values()))
    assert all(0 <= share[run_class] <= waiting.get(run_class, 0) for run_class in share)
    for run_class, floor in floors(room, taken).items():
        assert share[run_class] >= min(floor, waiting.get(run_class, 0))


@given(ROOMS, WAITING, TAKEN)
def test_nothing_beyond_its_floor_goes_before_a_higher_class(
    room: int, waiting: dict[int, int], taken: int
) -> None:
    share = divide(room, waiting, taken)
    owed = floors(room, taken)
    for higher, lower in pairwise(CLASSES):
        if share[lower] > owed[lower]:
            assert share[higher] == waiting.get(higher, 0)
