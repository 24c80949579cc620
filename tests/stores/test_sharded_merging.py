"""Pages of several shards as one: in order, nothing twice, nothing lost, however shards cut their pages."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.lifecycle import State
from hourhand.core.model import Trigger
from hourhand.core.run import AttemptRow, DeadLetter, RunView
from hourhand.errors import Invalid
from hourhand.ports.reading import DeadGroup, RunPage
from hourhand.stores.sharded.merging import (
    Places,
    merge_groups,
    merge_ordered,
    merge_runs,
    read_places,
    write_places,
)

NUMBERS = st.lists(st.integers(0, 300), unique=True, max_size=40)
LIMITS = st.integers(1, 12)
STEPS_MAX = 1_000


def page_below(
    numbers: Sequence[int], sieve: int, before: int, limit: int, scan: int
) -> tuple[list[int], int | None]:
    """What a shard answers that looks at `scan` numbers at most, and finds those that a filter lets through."""
    looked = sorted((n for n in numbers if n < before), reverse=True)
    found = []
    for position, number in enumerate(looked[:scan]):
        if number % sieve == 0:
            found.append(number)
        if len(found) == limit or (position == scan - 1 and len(looked) > scan):
            return found, number
    return found, None


@given(st.lists(NUMBERS, min_size=1, max_size=4), st.integers(1, 5), LIMITS, st.integers(1, 9))
def test_ordered_pages_give_everything_once_and_in_order(
    shards: list[list[int]], sieve: int, limit: int, scan: int
) -> None:
    shards = [
        [n * len(shards) + index for n in numbers] for index, numbers in enumerate(shards)
    ]  # ids differ
    everything = sorted((n for numbers in shards for n in numbers if n % sieve == 0), reverse=True)
    got: list[int] = []
    before: int | None = 10_000
    for _ in range(STEPS_MAX):
        assert before is not None
        pages = [page_below(numbers, sieve, before, limit, scan) for numbers in shards]
        found, before = merge_ordered(pages, lambda n: n, limit)
        assert len(found) <= limit
        got += found
        if before is None:
            break
    assert before is None
    assert got == everything


def run(shard: int, number: int, finished_at: int) -> RunView:
    attempt = AttemptRow(
        attempt=1,
        state=State.SUCCEEDED,
        due_at=0,
        started_at=0,
        finished_at=finished_at,
        worker=None,
        version=1,
        detail=None,
    )
    return RunView(
        job_id=shard,
        scheduled_at=number,
        tenant="t",
        state=State.SUCCEEDED,
        trigger=Trigger.SCHEDULED,
        due_at=0,
        tries=0,
        fence=1,
        version=1,
        worker=None,
        attempts=(attempt,),
    )


def run_page(runs: Sequence[RunView], before: tuple[int, ...] | None, limit: int, scan: int) -> RunPage:
    """A shard's page of a list whose places are positions; one row in `scan` ends the page early."""
    begin = 0 if before is None else before[0]
    end = min(begin + limit, begin + scan, len(runs))
    more = end < len(runs) or end - begin == limit  # a full page does not know that it is the last
    return RunPage(
        runs=tuple(runs[begin:end]),
        next_before=(end,) if more else None,
        places=tuple((position + 1,) for position in range(begin, end)),
    )


def walk(
    shards: Sequence[Sequence[RunView]], limit: int, scan: int, away: Sequence[set[int]] = ()
) -> list[RunView]:
    got: list[RunView] = []
    before: tuple[int, ...] | None = None
    for step in range(STEPS_MAX):
        places = read_places(before, len(shards))
        silent = away[step] if step < len(away) else set()
        pages = {
            index: run_page(shards[index], place, limit, scan)
            for index, place in places.items()
            if index not in silent
        }
        found, onward = merge_runs(pages, places, limit)
        assert len(found) <= limit
        got += found
        if not onward:
            return got
        before = write_places(onward, len(shards))
    raise AssertionError("the list does not end")


@given(st.lists(NUMBERS, min_size=1, max_size=4), LIMITS, st.integers(1, 9))
def test_pages_of_runs_give_everything_once_and_in_order(
    times: list[list[int]], limit: int, scan: int
) -> None:
    shards = [
        [run(index, number, at) for number, at in enumerate(sorted(ats, reverse=True))]
        for index, ats in enumerate(times)
    ]
    got = walk(shards, limit, scan)
    assert [one.attempts[-1].finished_at for one in got] == sorted(
        (at for ats in times for at in ats), reverse=True
    )
    assert len({(one.job_id, one.scheduled_at) for one in got}) == len(got)


@given(
    st.lists(NUMBERS, min_size=1, max_size=4),
    LIMITS,
    st.integers(1, 9),
    st.lists(st.sets(st.integers(0, 3)), max_size=5),
)
def test_runs_in_some_disorder_and_shards_that_are_away_for_a_while_lose_nothing(
    times: list[list[int]], limit: int, scan: int, away: list[set[int]]
) -> None:
    shards = [[run(index, number, at) for number, at in enumerate(ats)] for index, ats in enumerate(times)]
    got = walk(shards, limit, scan, away)
    for index, runs in enumerate(shards):
        assert [one for one in got if one.job_id == index] == runs


@given(st.dictionaries(st.integers(0, 4), st.none() | st.tuples(st.integers(0, 9), st.integers(-5, 5))))
def test_places_come_back(places: Places) -> None:
    assert read_places(write_places(places, 5), 5) == places


@given(st.lists(st.integers(-2, 4), max_size=12))
def test_what_are_no_places_is_refused_or_means_itself(numbers: list[int]) -> None:
    try:
        places = read_places(tuple(numbers), 3)
    except Invalid:
        return
    assert write_places(places, 3) == tuple(numbers)


@pytest.mark.parametrize("numbers", [(), (0, 0), (0, 0, 0, 0), (2, 1, 0), (-2, 0, 0), (9, 1, 1)])
def test_a_cursor_of_something_else_is_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(Invalid):
        read_places(numbers, 3)


def letter(failed_at: int) -> DeadLetter:
    return DeadLetter(
        job_id=1,
        scheduled_at=1,
        tenant="t",
        job_name="",
        failed_at=failed_at,
        tries=1,
        fence=1,
        trigger=Trigger.SCHEDULED,
        error="e",
        fingerprint="f",
    )


def test_groups_are_counted_together_and_show_their_newest() -> None:
    groups = [
        DeadGroup(value="a", count=3, sample=letter(5)),
        DeadGroup(value="b", count=4, sample=letter(1)),
        DeadGroup(value="a", count=2, sample=letter(9)),
        DeadGroup(value="c", count=1, sample=letter(2)),
    ]
    merged = merge_groups(groups, "error", 2)
    assert [(one.value, one.count, one.sample.failed_at) for one in merged] == [("a", 5, 9), ("b", 4, 1)]
