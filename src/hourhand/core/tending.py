"""When somebody must look at a job again although nothing fires, and what to do then.

A pause that ends, a one-time job whose time passes while it is paused, a job that has had its last
time, a finished one-time job that leaves with its history. Pure; the store keeps `attend_at` by it.
"""

from enum import StrEnum

from hourhand.core.model import FOREVER, Job, JobState, OnceTiming


class Care(StrEnum):
    """What a job needs."""

    NOTHING = "nothing"
    RESUME = "resume"
    SKIP_AS_PAUSED = "skip_as_paused"
    LEAVE_CLOCK = "leave_clock"
    FORGET = "forget"


def attend_at(job: Job, keep_us: int, seen_at: int | None = None) -> int | None:
    """The earliest time at which a job may need care, None for never; where it got some at `seen_at`, the next one.

    What has passed unseen is named as well, so that it comes at once, also by a clock that is set back meanwhile.
    """
    moments = []
    if isinstance(job.spec.timing, OnceTiming):
        moments.append(max(job.spec.timing.at, job.created_at) + keep_us)
        if job.state is JobState.PAUSED:
            moments.append(job.spec.timing.at)
    elif job.until < FOREVER:
        moments.append(job.until + 1)
    if job.state is JobState.PAUSED and job.paused_until is not None:
        moments.append(job.paused_until)
    return min((moment for moment in moments if seen_at is None or moment > seen_at), default=None)


def care_for(job: Job, now_at: int, keep_us: int) -> Care:
    """What a job needs now; asked again until it needs nothing."""
    timing = job.spec.timing
    if isinstance(timing, OnceTiming) and max(timing.at, job.created_at) + keep_us <= now_at:
        return Care.FORGET
    if job.state is JobState.PAUSED:
        if isinstance(timing, OnceTiming) and timing.at <= now_at and not _ended_before(job, timing.at):
            return Care.SKIP_AS_PAUSED
        if job.paused_until is not None and job.paused_until <= now_at:
            return Care.RESUME
    elif not isinstance(timing, OnceTiming) and job.until < now_at:
        return Care.LEAVE_CLOCK
    return Care.NOTHING


def _ended_before(job: Job, at: int) -> bool:
    return job.paused_until is not None and job.paused_until <= at
