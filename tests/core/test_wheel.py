"""The wheel hands out exactly what a sorted list would, whatever the order of adds, cancels and times."""

import gc
import sys
import tracemalloc
from bisect import bisect_right, insort
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hourhand.core import wheel as wheel_module
from hourhand.core.wheel import LEVELS, SLOT_US, Wheel

NOW_AT = 1_760_000_000_123_456
HOUR_US = 3_600_000_000
YEAR_US = 365 * 24 * HOUR_US
BLOCKS_US = [256**level * SLOT_US for level in range(LEVELS)]

# Times that hit the seams: around multiples of every level's width, inside one millisecond, and anywhere.
starts = st.one_of(
    st.just(NOW_AT),
    st.integers(-2_000, 2_000),
    st.builds(
        lambda width, count, off: width * count + off,
        st.sampled_from(BLOCKS_US[:6]),
        st.integers(1, 300),
        st.integers(-1_500, 1_500),
    ),
)
offsets = st.one_of(
    st.integers(-3_000, 3_000),
    st.integers(0, 600_000),
    st.integers(0, 3 * YEAR_US),
    st.builds(
        lambda width, count, off: width * count + off,
        st.sampled_from(BLOCKS_US),
        st.integers(1, 3),
        st.integers(-1_001, 1_001),
    ),
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), offsets),
        st.tuples(st.just("add_at_start"), offsets),
        st.tuples(st.just("cancel"), st.integers(0, 1_000)),
        st.tuples(st.just("advance"), offsets),
        st.tuples(st.just("go_back"), offsets),
        st.tuples(st.just("sleep"), st.just(0)),
        st.tuples(st.just("ask"), st.just(0)),
    ),
    max_size=60,
)


class SortedTimers:
    """The model: a sorted list, and the wheel's answers held against it at every step."""

    def __init__(self, now_at: int) -> None:
        self.wheel = Wheel[int](now_at)
        self.now_at = now_at
        self.latest_at = now_at
        self.order: list[tuple[int, int]] = []
        self.handles: list[tuple[int, int, int]] = []

    def add(self, due_at: int) -> None:
        item = len(self.handles)
        self.handles.append((self.wheel.add(due_at, item), due_at, item))
        insort(self.order, (due_at, item))

    def cancel(self, pick: int) -> None:
        if self.handles:
            handle, due_at, item = self.handles[pick % len(self.handles)]
            held = (due_at, item) in self.order
            assert self.wheel.cancel(handle) is held
            if held:
                self.order.remove((due_at, item))

    def advance(self, now_at: int) -> None:
        count = bisect_right(self.order, (now_at, sys.maxsize))
        expected, self.order = self.order[:count], self.order[count:]
        assert self.wheel.advance(now_at) == [item for _, item in expected]
        self.now_at = now_at
        self.latest_at = max(self.latest_at, now_at)

    def ask(self) -> int | None:
        bound_at = self.wheel.next_due()
        if not self.order:
            assert bound_at is None
            return None
        nearest_at = self.order[0][0]
        slot_starts = {nearest_at // width * width for width in BLOCKS_US[1:]}
        assert bound_at == nearest_at or (bound_at in slot_starts and bound_at > self.latest_at)
        return bound_at

    def sleep(self) -> None:
        bound_at = self.ask()
        if bound_at is not None:
            self.advance(max(self.now_at, bound_at))


@given(start_at=starts, steps=operations)
@settings(max_examples=400, deadline=None)
@example(start_at=-1_000, steps=[("add", 3_000), ("add", 900), ("sleep", 0), ("sleep", 0)])
def test_agrees_with_a_sorted_list(start_at: int, steps: list[tuple[str, int]]) -> None:
    timers = SortedTimers(start_at)
    for verb, value in steps:
        match verb:
            case "add":
                timers.add(timers.now_at + value)
            case "add_at_start":
                timers.add(start_at + value)
            case "cancel":
                timers.cancel(value)
            case "advance":
                timers.advance(timers.now_at + abs(value))
            case "go_back":
                timers.advance(timers.now_at - abs(value))
            case "sleep":
                timers.sleep()
            case "ask":
                timers.ask()
        assert len(timers.wheel) == len(timers.order)
    timers.advance(max([timers.latest_at, *(due_at for due_at, _ in timers.order)]))
    assert not [handle for handle, _, _ in timers.handles if timers.wheel.cancel(handle)]


@given(
    start_at=starts,
    due_in=st.lists(st.integers(0, 2_000_000), max_size=300),
    step_us=st.integers(1, 400_000).map(lambda step: max(step, 2_000)),
)
@settings(max_examples=60, deadline=None)
def test_steady_ticks_over_a_crowd(start_at: int, due_in: list[int], step_us: int) -> None:
    timers = SortedTimers(start_at)
    for offset in due_in:
        timers.add(start_at + offset)
    while timers.order:
        timers.advance(timers.now_at + step_us)


@pytest.mark.parametrize("start_at", [0, 255_000, 256_000, 65_535_999, 65_536_000, NOW_AT])
@pytest.mark.parametrize("width", BLOCKS_US)
@pytest.mark.parametrize("off", [-1_000, -1, 0, 1, 999, 1_000])
def test_borders_of_levels_are_exact(start_at: int, width: int, off: int) -> None:
    for due_at in (start_at + width + off, (start_at // width + 1) * width + off):
        wheel = Wheel[str](start_at)
        wheel.add(due_at, "x")
        assert wheel.advance(due_at - 1) == []
        assert wheel.advance(due_at) == ["x"]
        assert wheel.advance(due_at) == []


def test_parts_of_a_millisecond_are_not_rounded() -> None:
    wheel = Wheel[str](0)
    for due_at, item in ((5_700, "c"), (5_200, "a"), (6_000, "d"), (5_500, "b"), (5_700, "c2")):
        wheel.add(due_at, item)
    assert wheel.advance(5_199) == []
    assert wheel.advance(5_500) == ["a", "b"]
    assert wheel.advance(5_699) == []
    assert wheel.next_due() == 5_700
    assert wheel.advance(5_999) == ["c", "c2"]
    assert wheel.advance(6_000) == ["d"]


def test_past_and_present_come_out_at_the_next_advance_by_due_time() -> None:
    wheel = Wheel[str](NOW_AT)
    wheel.add(NOW_AT, "now")
    wheel.add(NOW_AT - YEAR_US, "last year")
    wheel.add(-5, "before 1970")
    wheel.add(NOW_AT + 1, "soon")
    assert wheel.next_due() == -5
    assert wheel.advance(NOW_AT) == ["before 1970", "last year", "now"]
    assert len(wheel) == 1


def test_a_clock_that_jumps_back_neither_fires_early_nor_loses() -> None:
    wheel = Wheel[str](NOW_AT)
    wheel.add(NOW_AT + 2 * HOUR_US, "later")
    assert wheel.advance(NOW_AT + HOUR_US) == []
    wheel.add(NOW_AT + 1_000_700, "added after the jump")
    assert wheel.advance(NOW_AT) == []
    assert wheel.next_due() == NOW_AT + 1_000_700
    assert wheel.advance(NOW_AT + 1_000_699) == []
    assert wheel.advance(NOW_AT + 1_000_700) == ["added after the jump"]
    assert wheel.advance(NOW_AT + 2 * HOUR_US) == ["later"]


@pytest.mark.parametrize("due_in", [1, 999, 300_000, 2_000_000, HOUR_US, YEAR_US, 100 * YEAR_US, 1 << 62])
def test_sleeping_until_next_due_takes_a_wake_up_per_level_at_most(due_in: int) -> None:
    wheel = Wheel[str](NOW_AT)
    wheel.add(NOW_AT + due_in, "x")
    now_at, wake_ups = NOW_AT, 0
    while (bound_at := wheel.next_due()) is not None:
        assert now_at < bound_at <= NOW_AT + due_in
        now_at, wake_ups = bound_at, wake_ups + 1
        out = wheel.advance(now_at)
        assert out == (["x"] if now_at == NOW_AT + due_in else [])
    assert now_at == NOW_AT + due_in
    assert wake_ups <= LEVELS


def test_every_64_bit_instant_fits_and_more_is_refused() -> None:
    wheel = Wheel[str](0)
    wheel.add(2**63 - 1, "the last")
    with pytest.raises(ValueError, match="64-bit"):
        wheel.add(2**70, "too far")
    assert len(wheel) == 1
    assert wheel.advance(2**63 - 2) == []
    assert wheel.advance(2**80) == ["the last"]


def test_cancel_knows_what_is_held() -> None:
    wheel = Wheel[None](NOW_AT)
    far, near, out = (wheel.add(NOW_AT + offset, None) for offset in (HOUR_US, 10, 5))
    assert wheel.advance(NOW_AT + 5) == [None]
    assert [wheel.cancel(handle) for handle in (far, near, out, far, near)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [wheel.cancel(handle) for handle in (0, -1, far + 1, 1 << 200)] == [False] * 4
    assert wheel.next_due() is None
    assert wheel.advance(NOW_AT + YEAR_US) == []
    assert len(wheel) == 0


def test_a_year_ahead_costs_by_timers_not_by_slots() -> None:
    def lines_to_jump(jump_us: int) -> int:
        wheel = Wheel[int](NOW_AT)
        for item, share in enumerate((3, 2, 1)):
            wheel.add(NOW_AT + jump_us // share, item)
        return count_lines(lambda: wheel.advance(NOW_AT + jump_us), [0, 1, 2])

    assert lines_to_jump(YEAR_US) < 200
    assert lines_to_jump(100 * YEAR_US) < 200


@pytest.mark.parametrize("opened_ahead", [False, True])
def test_a_crowd_in_one_millisecond_comes_out_as_a_batch(opened_ahead: bool) -> None:
    wheel = Wheel[int](NOW_AT)
    due_at = NOW_AT + 2_000_000
    for item in range(10_000):
        wheel.add(due_at, item)
    wheel.advance(due_at - 50_000)
    if opened_ahead:
        assert wheel.next_due() == due_at
    assert count_lines(lambda: wheel.advance(due_at), list(range(10_000))) < 100


@pytest.mark.parametrize("cancelled", range(1, 10))
def test_cancelling_the_nearest_of_an_opened_slot_keeps_the_rest_in_order(cancelled: int) -> None:
    wheel = Wheel[int](0)
    handles = [wheel.add(5_000 + item, item) for item in range(20)]
    assert wheel.next_due() == 5_000
    for handle in handles[:cancelled]:
        assert wheel.cancel(handle)
    assert wheel.next_due() == 5_000 + cancelled
    assert [wheel.advance(5_000 + item) for item in range(cancelled, 20)] == [
        [i] for i in range(cancelled, 20)
    ]


def test_asking_again_does_not_scan_the_slot_again() -> None:
    class Compared(int):
        """Counts the comparisons of the handles made from it."""

        count = 0

        def __lshift__(self, bits: int) -> "Compared":
            return Compared(int(self) << bits)

        def __or__(self, bits: int) -> "Compared":
            return Compared(int(self) | bits)

        def __lt__(self, other: int) -> bool:
            Compared.count += 1
            return int(self) < int(other)

    wheel = Wheel[None](0)
    for offset in range(1_000):
        wheel.add(Compared(5_000 + offset * 7 % 1_000), None)
    assert wheel.next_due() == 5_000
    assert Compared.count >= 999
    Compared.count = 0
    assert wheel.next_due() == 5_000
    assert Compared.count < 5


def test_memory_per_timer_is_small() -> None:
    def fill() -> Wheel[None]:
        wheel = Wheel[None](NOW_AT)
        for number in range(100_000):
            wheel.add(NOW_AT + number * 7_919 % HOUR_US, None)
        return wheel

    assert traced_bytes(fill) / 100_000 < 130


@pytest.mark.parametrize("due_in", [-1, 5_000, HOUR_US, YEAR_US])
def test_cancelled_timers_leave_no_garbage(due_in: int) -> None:
    def churn() -> Wheel[None]:
        wheel = Wheel[None](NOW_AT)
        handles = [wheel.add(NOW_AT + due_in, None) for _ in range(20_000)]
        for handle in handles[10:]:
            assert wheel.cancel(handle)
        assert len(wheel) == 10
        return wheel

    empty = traced_bytes(lambda: Wheel[None](NOW_AT))
    assert traced_bytes(churn) - empty < 150_000


def count_lines(work: Callable[[], object], expected: object) -> int:
    """How many lines of the wheel's code run: a measure of work that no slow machine can change."""
    lines = 0

    def trace(frame: FrameType, event: str, _arg: object) -> Callable[..., object] | None:
        nonlocal lines
        if frame.f_code.co_filename != wheel_module.__file__:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = work()
    finally:
        sys.settrace(before)
    assert result == expected
    assert lines > 0
    return lines


def traced_bytes(make: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        kept = make()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        del kept
