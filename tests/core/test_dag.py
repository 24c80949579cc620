"""Which graphs may be, and when a dependent run goes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.dag import (
    MAX_DEPTH,
    MAX_PARENTS,
    Decision,
    GraphFault,
    GraphJob,
    Missing,
    Step,
    check,
    decide,
    goes_down,
    levels,
    trigger_below,
)
from hourhand.core.instant import MINUTE_US
from hourhand.core.lifecycle import State
from hourhand.core.model import AfterTiming, CronTiming, EveryTiming, OnceTiming, Timing, Trigger

NINE = CronTiming(expression="0 9 * * *")
TEN = CronTiming(expression="0 10 * * *")


def job(id: int, *parents: int, timing: Timing = NINE, name: str | None = None) -> GraphJob:
    own = AfterTiming(parents=tuple(sorted(parents))) if parents else timing
    return GraphJob(id=id, name=f"job-{id}" if name is None else name, timing=own)


def among(*jobs: GraphJob) -> dict[int, GraphJob]:
    return {one.id: one for one in jobs}


@pytest.mark.parametrize(
    ("outcomes", "decision"),
    [
        ({}, Decision(step=Step.WAIT)),
        ({1: State.SUCCEEDED}, Decision(step=Step.WAIT)),
        ({1: State.FAILED}, Decision(step=Step.WAIT)),
        ({1: State.SUCCEEDED, 2: State.SUCCEEDED}, Decision(step=Step.RUN)),
        (
            {1: State.SUCCEEDED, 2: State.FAILED},
            Decision(step=Step.SKIP, parent=2, outcome=State.FAILED),
        ),
        (
            {1: State.SKIPPED, 2: State.FAILED},
            Decision(step=Step.SKIP, parent=2, outcome=State.FAILED),
        ),
        (
            {1: State.SKIPPED, 2: State.CANCELLED},
            Decision(step=Step.SKIP, parent=2, outcome=State.CANCELLED),
        ),
        (
            {1: Missing.MISSING, 2: State.SUCCEEDED},
            Decision(step=Step.SKIP, parent=1, outcome=Missing.MISSING),
        ),
    ],
)
def test_a_child_is_decided_when_all_parents_have_ended(outcomes, decision) -> None:
    assert decide([1, 2], outcomes) == decision


def test_every_outcome_of_every_parent_is_decided() -> None:
    ends = (*(state for state in (State.SUCCEEDED, State.FAILED, State.SKIPPED, State.CANCELLED)), *Missing)
    for pair in itertools.product(ends, repeat=2):
        step = decide([1, 2], dict(enumerate(pair, 1))).step
        assert step is (Step.RUN if set(pair) == {State.SUCCEEDED} else Step.SKIP)


def test_what_goes_down_by_itself_and_what_only_when_asked() -> None:
    assert {trigger for trigger in Trigger if goes_down(trigger)} == {
        Trigger.SCHEDULED,
        Trigger.CATCH_UP,
        Trigger.UPSTREAM,
    }
    assert trigger_below(Trigger.SCHEDULED) is Trigger.UPSTREAM
    assert trigger_below(Trigger.CATCH_UP) is Trigger.CATCH_UP


def test_a_diamond_may_be() -> None:
    check(job(4, 2, 3), among(job(1), job(2, 1), job(3, 1)))


def test_a_job_cannot_follow_itself() -> None:
    with pytest.raises(GraphFault, match="'job-1' cannot follow itself"):
        check(job(1, 1), {})


def test_a_circle_is_named_all_the_way_round() -> None:
    with pytest.raises(GraphFault, match="in a circle: 'job-1' after 'job-3' after 'job-2' after 'job-1'"):
        check(job(1, 3), among(job(2, 1), job(3, 2)))


def test_a_nameless_job_is_named_by_its_id() -> None:
    with pytest.raises(GraphFault, match="J-0000000000001 cannot follow itself"):
        check(job(1, 1, name=""), {})


def test_whom_there_is_not_cannot_be_followed() -> None:
    with pytest.raises(GraphFault, match="no job J-0000000000007"):
        check(job(2, 7), {})


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (NINE, TEN, "'0 9 * * *' in UTC, 'job-2' has '0 10 * * *' in UTC"),
        (NINE, CronTiming(expression="0 9 * * *", tz="Europe/Berlin"), "in Europe/Berlin"),
        (
            EveryTiming(interval_us=15 * MINUTE_US, phase_at=0),
            EveryTiming(interval_us=15 * MINUTE_US, phase_at=MINUTE_US),
            "every 15m counted from 1970-01-01T00:00:00Z",
        ),
        (OnceTiming(at=0), OnceTiming(at=1), "once at 1970-01-01T00:00:00Z"),
        (NINE, OnceTiming(at=0), "'job-2' has once at"),
    ],
)
def test_roots_with_different_times_are_refused_by_name(first: Timing, second: Timing, words: str) -> None:
    with pytest.raises(GraphFault) as refused:
        check(job(3, 1, 2), among(job(1, timing=first), job(2, timing=second)))
    assert words in str(refused.value)
    assert "'job-1'" in str(refused.value)


def test_roots_written_differently_that_fire_alike_agree() -> None:
    check(
        job(3, 1, 2),
        among(
            job(1, timing=EveryTiming(interval_us=MINUTE_US, phase_at=0)),
            job(2, timing=EveryTiming(interval_us=MINUTE_US, phase_at=MINUTE_US)),
        ),
    )


def test_limits() -> None:
    roots = [job(n) for n in range(1, MAX_PARENTS + 2)]
    check(job(1000, *(one.id for one in roots[:-1])), among(*roots))
    with pytest.raises(GraphFault, match=f"follows 1 to {MAX_PARENTS} others"):
        check(job(1000, *(one.id for one in roots)), among(*roots))
    chain = [job(0), *(job(n, n - 1) for n in range(1, MAX_DEPTH + 1))]
    check(chain[-1], among(*chain[:-1]))
    with pytest.raises(GraphFault, match="levels deep"):
        check(job(5000, MAX_DEPTH), among(*chain))


@given(st.data())
def test_a_circle_is_found_wherever_it_is_closed(data: st.DataObject) -> None:
    """Each job may follow any before it; letting the first follow any of its descendants closes a circle."""
    count = data.draw(st.integers(2, 12))
    jobs = {0: job(0)}
    for number in range(1, count):
        parents = data.draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=4))
        jobs[number] = job(number, *parents)
        check(jobs[number], jobs)
    below = {0}
    for number in range(1, count):
        if below & set(jobs[number].parents):
            below.add(number)
    last = data.draw(st.sampled_from(sorted(below)))
    with pytest.raises(GraphFault, match=r"itself|circle"):
        check(job(0, last), jobs)


def test_levels_lie_below_all_parents() -> None:
    assert levels({1: [], 2: [1], 3: [1, 2], 4: [9]}) == {1: 0, 2: 1, 3: 2, 4: 0}


def test_many_ways_up_cost_no_more_than_few() -> None:
    """Layers where each follows the whole layer above have as many ways as atoms in the universe."""
    jobs = {n: job(n) for n in range(10)}
    for layer in range(1, 40):
        above = range(layer * 10 - 10, layer * 10)
        jobs |= {n: job(n, *above) for n in range(layer * 10, layer * 10 + 10)}
    check(jobs[395], jobs)
