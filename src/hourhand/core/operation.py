"""An operation: one action on everything that matches a filter, page by page at a pace of its own.

Owns its shape, its limits, and how many may be done at a moment. It is bound to what was there when it was asked for:
jobs that are made later, and letters that fail later, are not its. It has a **mark**, at first the newest that
matched: everything newer is done, or not its. An
action on one thing may be repeated without harm, so whoever finds the mark behind goes on from there.
"""

from enum import StrEnum

import msgspec

from hourhand.core.access import Via
from hourhand.core.instant import SECOND_US
from hourhand.core.model import JobState

PAGE = 100  # things of one step
MAX_UNFINISHED = 20  # operations of a tenant that are not over
MAX_NOTE = 500
MAX_TOLD = 20  # failures that are kept with their reasons
MAX_EXPECTED = 100_000  # of `expected_count`, which is counted before anything is done
FIRST_COUNT = 10_000  # counted at most where nobody says how many are expected
_BURST_US = SECOND_US  # what was not done in time is made up for by no more than this


class Action(StrEnum):
    """What is done with each."""

    PAUSE = "pause"
    RESUME = "resume"
    RUN = "run"
    DELETE = "delete"
    REQUEUE = "requeue"
    DISCARD = "discard"

    @property
    def is_of_letters(self) -> bool:
        """Whether it is about dead letters; the others are about jobs."""
        return self in (Action.REQUEUE, Action.DISCARD)


class OperationState(StrEnum):
    """Where an operation is."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class JobFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which jobs; all conditions must hold, none means all."""

    state: JobState | None = None
    tag: str | None = None
    set_name: str | None = None
    name_prefix: str | None = None
    failing: bool = False


class LetterFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which dead letters; all conditions must hold, none means all."""

    job_id: int | None = None
    fingerprint: str | None = None
    failed_from: int | None = None
    failed_to: int | None = None


class OperationSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody asks for."""

    action: Action
    jobs: JobFilter = JobFilter()
    letters: LetterFilter = LetterFilter()
    pace_us: int | None = None  # between two; None: as fast as it goes
    note: str | None = None


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """What could not be done, and why."""

    what: str
    why: str


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An operation and how far it is."""

    id: int
    tenant: str
    spec: OperationSpec
    subject: str
    via: Via
    matched: int  # when it was asked for
    is_all: bool  # whether that is all of them, or at least so many
    created_at: int
    updated_at: int
    next_at: int
    state: OperationState = OperationState.RUNNING
    mark: tuple[int, ...] = ()
    done: int = 0
    left_alone: int = 0  # they were already as they should be, or gone
    failed: int = 0
    failures: tuple[Failure, ...] = ()  # the first of them
    finished_at: int | None = None
    revision: int = 0


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What one page came to."""

    mark: tuple[int, ...] | None  # None: that was the last
    done: int = 0
    left_alone: int = 0
    failures: tuple[Failure, ...] = ()

    @property
    def looked_at(self) -> int:
        """Things that cost a turn."""
        return self.done + self.left_alone + len(self.failures)


def allowance(operation: Operation, now_at: int) -> int:
    """How many may be done now."""
    if operation.spec.pace_us is None:
        return PAGE
    if operation.next_at > now_at:
        return 0
    since = max(operation.next_at, now_at - _BURST_US)
    return min(PAGE, 1 + (now_at - since) // operation.spec.pace_us)


def advanced(operation: Operation, step: Step, now_at: int) -> Operation:
    """The operation after a page."""
    next_at = operation.next_at
    if operation.spec.pace_us is not None:
        next_at = max(next_at, now_at - _BURST_US) + step.looked_at * operation.spec.pace_us
    is_over = step.mark is None
    return msgspec.structs.replace(
        operation,
        mark=operation.mark if step.mark is None else step.mark,
        done=operation.done + step.done,
        left_alone=operation.left_alone + step.left_alone,
        failed=operation.failed + len(step.failures),
        failures=(*operation.failures, *step.failures)[:MAX_TOLD],
        next_at=next_at,
        updated_at=now_at,
        state=OperationState.DONE if is_over else operation.state,
        finished_at=now_at if is_over else None,
    )


def cancelled(operation: Operation, now_at: int) -> Operation:
    """The operation, ended where it is."""
    return msgspec.structs.replace(
        operation, state=OperationState.CANCELLED, updated_at=now_at, finished_at=now_at
    )


def joined(parts: list[Operation]) -> Operation:
    """An operation whose parts are carried out by several databases, as one."""
    first = parts[0]
    over = [part.finished_at for part in parts if part.finished_at is not None]
    is_over = len(over) == len(parts)
    states = {part.state for part in parts}
    state = OperationState.DONE
    if OperationState.CANCELLED in states:
        state = OperationState.CANCELLED
    elif OperationState.RUNNING in states:
        state = OperationState.RUNNING
    pace_us = first.spec.pace_us
    return msgspec.structs.replace(
        first,
        spec=msgspec.structs.replace(first.spec, pace_us=None if pace_us is None else pace_us // len(parts)),
        done=sum(part.done for part in parts),
        left_alone=sum(part.left_alone for part in parts),
        failed=sum(part.failed for part in parts),
        failures=tuple(one for part in parts for one in part.failures)[:MAX_TOLD],
        updated_at=max(part.updated_at for part in parts),
        state=state,
        finished_at=max(over) if is_over else None,
    )
