"""One attempt as a straight pipe: execute, decide, and hand the outcome over to be committed.

The worker enforces deadlines and cancellations by cancelling the task; why it did is read off `Attempt`.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from hourhand.clock import Clock
from hourhand.core.instant import format_instant
from hourhand.core.lifecycle import Event, Reason
from hourhand.core.retry import Failure, Outcome, settled
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.core.why import CLAIMED_AT, WORTH_SPLITTING_US
from hourhand.ports.target import Result, Target
from hourhand.telemetry import logger

Targets = Mapping[type, Target]

_encode = msgspec.json.Encoder().encode
_log = logger("hourhand.attempt")
_NO_TARGET = Failure(before_sending=True, unserved=True)


class Attempt:
    """A claimed run on its way through a worker."""

    __slots__ = ("claimed_at", "done", "ended_by", "old_at", "run", "started_at", "task", "timer")

    def __init__(self, run: ClaimedRun, claimed_at: int | None = None) -> None:
        self.run = run
        self.claimed_at = claimed_at  # when it came into the worker's hand
        self.task: asyncio.Task[None] | None = None
        self.timer: int | None = None  # its place in one of the worker's wheels
        self.started_at: int | None = None
        self.old_at = 0  # from then on it needs a deadline timer
        self.ended_by: Outcome | None = None  # why the worker cancelled it
        self.done = False  # its outcome is decided; what it says later is not heard

    def unstarted(self, event: Event, now_at: int, reason: Reason | None = None) -> Settlement:
        """The outcome of a run that was claimed and never begun."""
        run = self.run
        return Settlement(
            job_id=run.job_id,
            scheduled_at=run.scheduled_at,
            slot=run.slot,
            fence=run.fence,
            event=event,
            version=run.version,
            tries=run.tries,
            finished_at=now_at,
            detail=None if reason is None else _encode({"reason": reason.value}).decode(),
        )

    def settled(self, result: Result, now_at: int) -> Settlement:
        """The outcome of an attempt, decided by policy."""
        if result.failure.unserved:
            self.started_at = None  # what this worker cannot run has not begun
        detail = self._with_claim(result.detail)
        return settled(
            self.run,
            result.outcome,
            result.failure,
            started_at=self.started_at,
            now_at=now_at,
            detail=None if detail is None else _kept(detail, self.run),
        )

    def _with_claim(self, detail: dict[str, Any] | None) -> dict[str, Any] | None:
        """Of a late start, when the run was taken: so `why` can tell waiting in the queue from a busy worker."""
        if self.started_at is None or self.started_at - self.run.due_at <= WORTH_SPLITTING_US:
            return detail
        if self.claimed_at is None:
            return detail
        return {**(detail or {}), CLAIMED_AT: format_instant(self.claimed_at)}


async def execute(attempt: Attempt, targets: Targets, clock: Clock) -> Settlement:
    """Carry an attempt out and decide what becomes of its run."""
    run = attempt.run
    target = targets.get(type(run.spec.target))
    attempt.started_at = clock.now()
    if target is None:
        result = Result(
            outcome=Outcome.FAILED,
            detail={"error": f"this worker serves no {type(run.spec.target).__name__}"},
            failure=_NO_TARGET,
        )
        return attempt.settled(result, clock.now())
    try:
        result = await target.execute(run)
    except asyncio.CancelledError:
        result = interrupted(attempt)
    except Exception as error:
        _log.exception("target raised", run_id=run.run_id)
        result = Result(outcome=Outcome.FAILED, detail={"error": f"{type(error).__name__}: {error}"})
    return attempt.settled(result, clock.now())


def interrupted(attempt: Attempt) -> Result:
    """What an attempt that the worker cancelled ended as."""
    match attempt.ended_by:
        case Outcome.TIMED_OUT:
            timeout_s = attempt.run.spec.timeout_us / 1_000_000
            return Result(
                outcome=Outcome.TIMED_OUT,
                detail={"error": f"no outcome within its timeout of {timeout_s:g} s"},
            )
        case Outcome.CANCELLED:
            return Result(outcome=Outcome.CANCELLED, detail={"reason": Reason.ASKED.value})
        case _:
            return Result(outcome=Outcome.LOST, detail={"error": "its worker was stopped before it ended"})


def _kept(detail: dict[str, Any], run: ClaimedRun) -> str:
    """A detail as text; one that is no JSON must not keep the outcome from being committed."""
    try:
        return _encode(detail).decode()
    except Exception as error:
        _log.exception("detail cannot be kept", run_id=run.run_id)
        return _encode({"note": f"what the target told could not be kept: {type(error).__name__}"}).decode()
