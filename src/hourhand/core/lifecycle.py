"""The states of a run and the only ways between them.

One table says which (state, event) leads where. Stores apply changes that were decided with it and
only check that the run is still what the decision was made on. `docs/states.md` is printed from here.
"""

import sys
from enum import IntEnum, StrEnum


class State(StrEnum):
    """What people see of a run."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"


class Event(StrEnum):
    """What can happen to a run."""

    CLAIM = "claim"
    SUCCEED = "succeed"
    RETRY = "retry"
    EXHAUST = "exhaust"
    SKIP = "skip"
    RELEASE = "release"
    REPORT_LATER = "report_later"
    CANCEL = "cancel"
    REQUEUE = "requeue"
    DISCARD = "discard"


class Phase(IntEnum):
    """Where a run in the `running` table is on its way. Ready and retrying ones can be claimed."""

    READY = 0
    EXECUTING = 1
    REPORTED = 2
    RETRYING = 3


class Reason(StrEnum):
    """Why a run was skipped or cancelled."""

    MISFIRE = "misfire"
    OVERLAP = "overlap"
    UPSTREAM = "upstream"
    PAUSED = "paused"
    EXPIRED = "expired"
    ASKED = "asked for"
    FUNCTION = "the function said so"
    DELETED = "job deleted"


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.SKIPPED, State.CANCELLED})

TRANSITIONS: dict[tuple[State, Event], tuple[State, str]] = {
    (State.PENDING, Event.CLAIM): (State.RUNNING, "a worker took it"),
    (State.PENDING, Event.SKIP): (
        State.SKIPPED,
        "misfire, overlap, upstream, pause or expiry; the reason is kept",
    ),
    (State.PENDING, Event.CANCEL): (State.CANCELLED, "asked for before it started, or its job was deleted"),
    (State.RUNNING, Event.SUCCEED): (State.SUCCEEDED, "the target did it"),
    (State.RUNNING, Event.RETRY): (
        State.RETRYING,
        "it failed, timed out or lost its worker, and tries are left",
    ),
    (State.RUNNING, Event.EXHAUST): (State.FAILED, "no tries left, or it must not be retried; a dead letter"),
    (State.RUNNING, Event.SKIP): (State.SKIPPED, "the function said so"),
    (State.RUNNING, Event.RELEASE): (
        State.PENDING,
        "given back before it started: its worker stops, or cannot run it, and then it is offered again later",
    ),
    (State.RUNNING, Event.REPORT_LATER): (State.RUNNING, "the target accepted it and will report"),
    (State.RUNNING, Event.CANCEL): (State.CANCELLED, "asked for; the worker confirmed or is gone"),
    (State.RETRYING, Event.CLAIM): (State.RUNNING, "a worker took it again"),
    (State.RETRYING, Event.CANCEL): (State.CANCELLED, "asked for between two attempts"),
    (State.FAILED, Event.REQUEUE): (
        State.PENDING,
        "sent back from the dead letters, tries reset, fence kept",
    ),
    (State.SKIPPED, Event.REQUEUE): (
        State.PENDING,
        "a run that it follows was sent back with what hangs on it; it waits for its parents again",
    ),
    (State.FAILED, Event.DISCARD): (State.FAILED, "removed from the dead letters; history keeps it"),
}


class IllegalTransition(Exception):
    """An event that cannot happen to a run in that state."""

    def __init__(self, state: State, event: Event) -> None:
        allowed = ", ".join(sorted(known.value for at, known in TRANSITIONS if at is state)) or "nothing"
        super().__init__(f"a run that is {state} cannot {event}; possible: {allowed}")
        self.state = state
        self.event = event


def after(state: State, event: Event) -> State:
    """The state an event leads to; IllegalTransition where there is no such way."""
    way = TRANSITIONS.get((state, event))
    if way is None:
        raise IllegalTransition(state, event)
    return way[0]


def shown_state(phase: Phase, due_at: int, now_at: int, tries: int) -> State:
    """What people see of a row in `running`: a run that a worker holds for later has not begun (again)."""
    if phase in (Phase.EXECUTING, Phase.REPORTED) and due_at <= now_at:
        return State.RUNNING
    return State.RETRYING if phase is Phase.RETRYING or tries else State.PENDING


def as_markdown() -> str:
    """The table for people, as it stands in docs/states.md."""
    lines = [
        "# States of a run",
        "",
        "Printed from `src/hourhand/core/lifecycle.py` by `make docs`; a test compares the two.",
        "",
        "| from | event | to | when |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {state} | {event} | {target} | {why} |" for (state, event), (target, why) in TRANSITIONS.items()
    ]
    lines += [
        "",
        "Final: " + ", ".join(sorted(FINAL)) + ". Every expected fire time ends in one of these.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
