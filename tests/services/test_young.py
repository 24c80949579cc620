"""The line of attempts that began a moment ago: out of it when they are old or over, and never walked as a whole."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from hourhand.services.attempt import Attempt
from hourhand.services.young import MOST_AT_ONCE, OLD_AFTER_US, Young
from tests.targets.runs import SCHEDULED_AT, python_run

Begin = Callable[[], Attempt]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Attempts that go on until a test says that they are over."""
    loop = asyncio.new_event_loop()

    async def go_on() -> None:
        await loop.create_future()

    def begun() -> Attempt:
        attempt = Attempt(python_run("f"))
        attempt.task = loop.create_task(go_on())
        started.append(attempt.task)
        return attempt

    started: list[asyncio.Task[None]] = []
    yield begun
    for task in started:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*started, return_exceptions=True))
    loop.close()


def end(*attempts: Attempt) -> None:
    for attempt in attempts:
        attempt.task = None


def test_nobody_is_waited_for_in_an_empty_line() -> None:
    young = Young()
    assert (young.next_at(), young.grown(SCHEDULED_AT), len(young)) == (None, [], 0)


def test_who_still_goes_on_comes_out_once_at_its_time(begin: Begin) -> None:
    young, first, second = Young(), begin(), begin()
    young.add(first, SCHEDULED_AT)
    young.add(second, SCHEDULED_AT + 7)
    assert young.next_at() == SCHEDULED_AT + OLD_AFTER_US
    assert young.grown(SCHEDULED_AT + OLD_AFTER_US - 1) == []
    assert young.grown(SCHEDULED_AT + OLD_AFTER_US) == [first]
    assert young.next_at() == SCHEDULED_AT + 7 + OLD_AFTER_US
    assert young.grown(SCHEDULED_AT + 2 * OLD_AFTER_US) == [second]
    assert (young.next_at(), young.grown(SCHEDULED_AT + 3 * OLD_AFTER_US)) == (None, [])


def test_who_has_ended_never_comes_out(begin: Begin) -> None:
    young, ended, going = Young(), begin(), begin()
    young.add(ended, SCHEDULED_AT)
    young.add(going, SCHEDULED_AT)
    end(ended)
    assert young.grown(SCHEDULED_AT) == []  # and is let go before its time
    assert len(young) == 1
    assert young.grown(SCHEDULED_AT + OLD_AFTER_US) == [going]


def test_of_a_long_line_only_a_part_comes_out_at_once_and_the_rest_at_the_same_moment(begin: Begin) -> None:
    young, many = Young(), [begin() for _ in range(2 * MOST_AT_ONCE + 1)]
    for attempt in many:
        young.add(attempt, SCHEDULED_AT)
    now_at, out = SCHEDULED_AT + OLD_AFTER_US, []
    for expected in (MOST_AT_ONCE, MOST_AT_ONCE, 1):
        assert young.next_at() == now_at  # so that somebody comes back without waiting
        out.append(young.grown(now_at))
        assert len(out[-1]) == expected
    assert [attempt for part in out for attempt in part] == many


def test_of_those_that_ended_too_only_a_part_is_let_go_at_once(begin: Begin) -> None:
    young, many = Young(), [begin() for _ in range(MOST_AT_ONCE + 1)]
    for attempt in many:
        young.add(attempt, SCHEDULED_AT)
    end(*many)
    assert (young.grown(SCHEDULED_AT + OLD_AFTER_US), len(young)) == ([], 1)


def test_the_line_grows_short_while_others_come(begin: Begin) -> None:
    """Runs that end at once come by the thousand before any of them is old."""
    young, many = Young(), [begin() for _ in range(100)]
    for attempt in many:
        young.add(attempt, SCHEDULED_AT)
    end(*many)
    for _ in range(200):
        newcomer = begin()
        young.add(newcomer, SCHEDULED_AT + 1)
        end(newcomer)
    assert len(young) <= 2


def test_one_that_takes_its_time_holds_up_nobody_for_longer_than_until_it_is_old(begin: Begin) -> None:
    young, slow = Young(), begin()
    young.add(slow, SCHEDULED_AT)
    quick = [begin() for _ in range(10)]
    for attempt in quick:
        young.add(attempt, SCHEDULED_AT + 1)
    end(*quick)
    assert young.grown(SCHEDULED_AT + OLD_AFTER_US) == [slow]
    assert (young.next_at(), len(young)) == (None, 0)


def test_a_clock_that_is_set_back_keeps_nobody_young(begin: Begin) -> None:
    young, before, after = Young(), begin(), begin()
    young.add(before, SCHEDULED_AT)
    back_at = SCHEDULED_AT - 3_600_000_000
    young.add(after, back_at)
    assert young.next_at() == back_at + OLD_AFTER_US
    assert young.grown(back_at + OLD_AFTER_US - 1) == []
    assert young.grown(back_at + OLD_AFTER_US) == [before, after]
