"""Skipping a coming time: which time is meant, and whether it is one of the job's. Pure.

What marks it, and what ends it as skipped when it comes, is the store's matter.
"""

import msgspec

from hourhand.core.dag import parents_of
from hourhand.core.fault import Fault
from hourhand.core.instant import format_instant
from hourhand.core.model import Job, JobState, OnceTiming

MAX_SKIPS = 100  # coming times of one job
MAX_NOTE = 500


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """A coming time that will not run."""

    job_id: int
    scheduled_at: int
    note: str | None = None
    made_at: int = 0


class NoSuchTime(Exception):
    """A time that is none of the job's, or has passed; the fault names the nearest."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"at: expected {fault.expected}")
        self.fault = fault


def time_to_skip(job: Job, asked_at: int | None, now_at: int, taken: frozenset[int] = frozenset()) -> int:
    """The time that is meant: the one asked for, else the next that is not skipped yet."""
    if asked_at is None:
        at = next_time(job, now_at, taken)
        if at is None:
            hint = "it runs after others: skip a time of the root" if parents_of(job.spec.timing) else None
            raise NoSuchTime(
                Fault(pointer="/at", expected="a job with a time to come", got="none", hint=hint)
            )
        return at
    if asked_at <= now_at:
        expected = "a time to come"
        raise NoSuchTime(Fault(pointer="/at", expected=expected, got=format_instant(asked_at)))
    if not has_time(job, asked_at):
        raise NoSuchTime(
            Fault(
                pointer="/at",
                expected="a time at which the job fires",
                got=format_instant(asked_at),
                hint=_nearest(job, asked_at, now_at),
            )
        )
    return asked_at


def next_time(job: Job, after_at: int, taken: frozenset[int] = frozenset()) -> int | None:
    """The first time of a job after an instant that is not among these; of at most so many there are."""
    at: int | None = after_at
    for _ in range(len(taken) + 1):
        assert at is not None
        at = _next(job, at)
        if at is None or at not in taken:
            return at
    return None


def has_time(job: Job, at: int) -> bool:
    """Whether the present version of an active job fires at an instant."""
    if job.state is not JobState.ACTIVE:
        return False
    if isinstance(job.spec.timing, OnceTiming):
        return job.spec.timing.at == at
    rule = job.spec.rule
    return rule is not None and job.since < at <= job.until and rule.newest_in(at - 1, at) is not None


def _next(job: Job, after_at: int) -> int | None:
    if job.state is not JobState.ACTIVE:
        return None
    if isinstance(job.spec.timing, OnceTiming):
        return job.spec.timing.at if job.spec.timing.at > after_at else None
    rule = job.spec.rule
    at = None if rule is None else rule.next(max(after_at, job.since))
    return at if at is not None and at <= job.until else None


def _nearest(job: Job, asked_at: int, now_at: int) -> str | None:
    after = _next(job, max(asked_at, now_at))
    rule = job.spec.rule
    before = None if rule is None else rule.newest_in(max(now_at, job.since), min(asked_at, job.until))
    found = [format_instant(at) for at in (before, after) if at is not None]
    return f"the nearest: {' and '.join(found)}" if found else None
