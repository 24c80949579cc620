"""The table of transitions: what may follow what, what people see, and the page printed from it."""

import pytest

from hourhand.core.lifecycle import (
    FINAL,
    TRANSITIONS,
    Event,
    IllegalTransition,
    Phase,
    State,
    after,
    as_markdown,
    shown_state,
)


def test_every_state_can_be_reached_and_left_or_is_final() -> None:
    reached = {State.PENDING, *(target for target, _ in TRANSITIONS.values())}
    assert reached == set(State)
    left = {state for state, _ in TRANSITIONS}
    assert set(State) - left == FINAL - {State.FAILED, State.SKIPPED}


def test_every_event_has_its_place() -> None:
    assert {event for _, event in TRANSITIONS} == set(Event)


@pytest.mark.parametrize("state", sorted(FINAL - {State.FAILED, State.SKIPPED}))
@pytest.mark.parametrize("event", list(Event))
def test_nothing_happens_to_what_has_ended(state: State, event: Event) -> None:
    with pytest.raises(IllegalTransition, match="nothing"):
        after(state, event)


@pytest.mark.parametrize("event", sorted(set(Event) - {Event.REQUEUE}))
def test_what_was_skipped_can_only_be_brought_back(event: Event) -> None:
    assert after(State.SKIPPED, Event.REQUEUE) is State.PENDING
    with pytest.raises(IllegalTransition, match="possible: requeue"):
        after(State.SKIPPED, event)


def test_the_ways_of_the_design() -> None:
    way = [Event.CLAIM, Event.RETRY, Event.CLAIM, Event.EXHAUST, Event.REQUEUE, Event.CLAIM, Event.SUCCEED]
    seen = [State.PENDING]
    for event in way:
        seen.append(after(seen[-1], event))
    assert [str(state) for state in seen] == (
        ["PENDING", "RUNNING", "RETRYING", "RUNNING", "FAILED", "PENDING", "RUNNING", "SUCCEEDED"]
    )
    assert after(State.RUNNING, Event.RELEASE) is State.PENDING
    assert after(State.RUNNING, Event.SKIP) is State.SKIPPED
    assert after(State.FAILED, Event.DISCARD) is State.FAILED


def test_an_illegal_way_says_what_is_possible() -> None:
    with pytest.raises(IllegalTransition, match=r"RETRYING cannot succeed; possible: cancel, claim"):
        after(State.RETRYING, Event.SUCCEED)


@pytest.mark.parametrize(
    ("phase", "due_at", "tries", "shown"),
    [
        (Phase.READY, 5, 0, State.PENDING),
        (Phase.EXECUTING, 10, 0, State.RUNNING),
        (Phase.EXECUTING, 11, 0, State.PENDING),  # in a worker's hand, but not begun
        (Phase.EXECUTING, 11, 1, State.RETRYING),
        (Phase.EXECUTING, 5, 1, State.RUNNING),
        (Phase.REPORTED, 5, 0, State.RUNNING),
        (Phase.RETRYING, 5, 1, State.RETRYING),
        (Phase.RETRYING, 50, 2, State.RETRYING),
    ],
)
def test_what_people_see_of_a_run_that_holds_a_slot(
    phase: Phase, due_at: int, tries: int, shown: State
) -> None:
    assert shown_state(phase, due_at, 10, tries) is shown


def test_the_page_has_a_line_for_every_way() -> None:
    lines = as_markdown().splitlines()
    for (state, event), (target, why) in TRANSITIONS.items():
        assert f"| {state} | {event} | {target} | {why} |" in lines
