"""What happens after an attempt: retry when, or give up.

Pure. The attempt hands in what it saw; the answer is a `Verdict` that `core.lifecycle` can apply, or, of a run in
somebody's hand, the `Settlement` that commits it.
"""

from enum import StrEnum

import msgspec

from hourhand.core.identity import jitter_us
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import Delivery, JobSpec
from hourhand.core.run import ClaimedRun, Settlement

LEAST_WAIT_US = 5 * SECOND_US  # for somebody who can run it; then a quarter of its age
MOST_WAIT_US = MINUTE_US


class Outcome(StrEnum):
    """How one attempt ended, as the target tells it."""

    SUCCEEDED = "succeeded"
    ACCEPTED = "accepted"  # the target works on and will report
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"  # its worker is gone; nobody knows whether the effect happened


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What a failed attempt says about trying again."""

    retryable: bool = True
    before_sending: bool = False  # known to have had no effect, so even at_most_once may try again
    retry_after_us: int | None = None
    unserved: bool = False  # nobody here can run it now: it waits, and that is no try


UNKNOWN_FAILURE = Failure()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the run."""

    event: Event
    tries: int
    due_at: int = 0  # of the next attempt, with Event.RETRY; when it is offered again, with Event.RELEASE


def decide(
    outcome: Outcome,
    spec: JobSpec,
    *,
    job_id: int,
    scheduled_at: int,
    tries: int,
    now_at: int,
    failure: Failure = UNKNOWN_FAILURE,
) -> Verdict:
    """The run's next step after one attempt."""
    match outcome:
        case Outcome.SUCCEEDED:
            return Verdict(event=Event.SUCCEED, tries=tries)
        case Outcome.ACCEPTED:
            return Verdict(event=Event.REPORT_LATER, tries=tries)
        case Outcome.SKIPPED:
            return Verdict(event=Event.SKIP, tries=tries)
        case Outcome.CANCELLED:
            return Verdict(event=Event.CANCEL, tries=tries)
        case Outcome.FAILED | Outcome.TIMED_OUT | Outcome.LOST:
            return _after_failure(outcome, spec, job_id, scheduled_at, tries + 1, now_at, failure)


def settled(
    run: ClaimedRun,
    outcome: Outcome,
    failure: Failure,
    *,
    started_at: int | None,
    now_at: int,
    detail: str | None,
) -> Settlement:
    """An attempt that ended now, with what becomes of its run."""
    verdict = decide(
        outcome,
        run.spec,
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        tries=run.tries,
        now_at=now_at,
        failure=failure,
    )
    return Settlement(
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        slot=run.slot,
        fence=run.fence,
        event=verdict.event,
        version=run.version,
        tries=verdict.tries,
        due_at=verdict.due_at,
        started_at=started_at,
        finished_at=now_at,
        detail=detail,
    )


def backoff_us(spec: JobSpec, *, job_id: int, scheduled_at: int, tries: int) -> int:
    """The pause before the next attempt after `tries` failures: exponential, spread by up to a fifth."""
    retry = spec.retry
    if retry.first_us == 0:
        return 0
    exponent = min(tries - 1, 64)  # far beyond any maximum delay, and no float overflow
    delay = min(int(retry.first_us * retry.factor**exponent), retry.max_delay_us)
    return delay - jitter_us(job_id, scheduled_at + tries * 1_000_003, delay // 5)


def _after_failure(
    outcome: Outcome, spec: JobSpec, job_id: int, scheduled_at: int, tries: int, now_at: int, failure: Failure
) -> Verdict:
    if failure.unserved:
        wait_us = min(max((now_at - scheduled_at) // 4, LEAST_WAIT_US), MOST_WAIT_US)
        return Verdict(event=Event.RELEASE, tries=tries - 1, due_at=now_at + wait_us)
    may_have_happened = not failure.before_sending
    once_only = spec.delivery is Delivery.AT_MOST_ONCE and may_have_happened
    if not failure.retryable or once_only or tries > spec.retry.max:
        return Verdict(event=Event.EXHAUST, tries=tries)
    if outcome is Outcome.LOST:  # the work was interrupted, not refused: go on at once
        return Verdict(event=Event.RETRY, tries=tries, due_at=now_at)
    delay = backoff_us(spec, job_id=job_id, scheduled_at=scheduled_at, tries=tries)
    if failure.retry_after_us is not None:
        delay = max(0, min(failure.retry_after_us, spec.retry.max_delay_us))
    return Verdict(event=Event.RETRY, tries=tries, due_at=now_at + delay)
