"""How many things of an operation may be done at a moment, and what a page makes of it."""

import pytest

from hourhand.core.access import Via
from hourhand.core.instant import SECOND_US
from hourhand.core.operation import (
    MAX_TOLD,
    PAGE,
    Action,
    Failure,
    Operation,
    OperationSpec,
    OperationState,
    Step,
    advanced,
    allowance,
    cancelled,
    joined,
)

NOW = 1_000 * SECOND_US


def operation(pace_us: int | None = None, **more: object) -> Operation:
    given = {
        "id": 7,
        "tenant": "acme",
        "spec": OperationSpec(action=Action.PAUSE, pace_us=pace_us),
        "subject": "ann",
        "via": Via.TOKEN,
        "matched": 10,
        "is_all": True,
        "created_at": NOW,
        "updated_at": NOW,
        "next_at": NOW,
    }
    return Operation(**{**given, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pace_us", "late_us", "expected"),
    [
        (None, 0, PAGE),
        (SECOND_US, -1, 0),
        (SECOND_US, 0, 1),
        (SECOND_US, 5 * SECOND_US, 2),  # what was not done in time is not made up for at once
        (20_000, 100_000, 6),
        (1, SECOND_US, PAGE),
    ],
)
def test_how_many_may_be_done(pace_us: int | None, late_us: int, expected: int) -> None:
    assert allowance(operation(pace_us), NOW + late_us) == expected


def test_a_pace_is_kept_over_many_pages() -> None:
    one, now_at, done = operation(50_000), NOW, 0
    for _ in range(600):
        room = allowance(one, now_at)
        if room:
            one = advanced(one, Step(mark=(1,), done=room), now_at)
            done += room
        now_at += 100_000
    assert abs(done - 60 * 20) <= 20


def test_the_last_page_ends_it() -> None:
    went_on = advanced(operation(), Step(mark=(5,), done=2, left_alone=1), NOW + 1)
    assert (went_on.state, went_on.mark, went_on.done, went_on.left_alone) == ("running", (5,), 2, 1)
    ended = advanced(went_on, Step(mark=None, done=1), NOW + 2)
    assert (ended.state, ended.finished_at, ended.done) == ("done", NOW + 2, 3)


def test_failures_are_counted_and_the_first_are_told() -> None:
    failures = tuple(Failure(str(number), "no") for number in range(MAX_TOLD + 5))
    one = advanced(operation(), Step(mark=(1,), failures=failures), NOW)
    assert (one.failed, one.failures) == (MAX_TOLD + 5, failures[:MAX_TOLD])


def test_parts_of_several_databases_are_told_as_one() -> None:
    parts = [operation(100_000, done=3), advanced(operation(100_000, done=4), Step(mark=None), NOW + 5)]
    whole = joined(parts)
    assert (whole.done, whole.state, whole.finished_at) == (7, OperationState.RUNNING, None)
    assert whole.spec.pace_us == 50_000
    ended = joined([cancelled(parts[0], NOW + 9), parts[1]])
    assert (ended.state, ended.finished_at) == (OperationState.CANCELLED, NOW + 9)
