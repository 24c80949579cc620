"""The life of a run that nothing gets in the way of: known beforehand from schedule, script and retry policy. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hourhand.core.identity import jitter_us
from hourhand.core.lifecycle import Event
from hourhand.core.model import Job
from hourhand.core.retry import Outcome, decide

Drawn = Callable[[int, int], tuple[int, bool]]  # nominal time, attempt -> how long it takes, whether it fails


class Life(NamedTuple):
    """A run that the schedule promises, and how it goes if it never has to wait."""

    scheduled_at: int
    due_at: int
    end_at: int
    job_id: int
    limit: int | None  # how many of its job may run at once
    is_known: bool  # else this says only where it begins
    attempts: tuple[tuple[int, int], ...]  # from when to when
    succeeds: bool


def lives(job: Job, times: Sequence[int], drawn: Drawn, *, end_at: int, leads: bool) -> list[Life]:
    """One for each nominal time. Nothing is known of what goes on after the end, nor of what others follow."""
    return [
        _life(job, at, _due_at(job, times, place), drawn, end_at, leads) for place, at in enumerate(times)
    ]


def _due_at(job: Job, times: Sequence[int], place: int) -> int:
    at = times[place]
    if not job.spec.jitter_us:
        return at
    room_us = times[place + 1] - at if place + 1 < len(times) else job.spec.jitter_us
    return at + jitter_us(job.id, at, min(job.spec.jitter_us, room_us))


def _life(job: Job, at: int, due_at: int, drawn: Drawn, end_at: int, leads: bool) -> Life:
    spec = job.spec
    attempts: list[tuple[int, int]] = []
    begin_at, tries = due_at, 0
    while True:
        took_us, fails = drawn(at, len(attempts) + 1)
        late = took_us >= spec.timeout_us
        over_at = begin_at + min(took_us, spec.timeout_us)
        attempts.append((begin_at, over_at))
        outcome = Outcome.TIMED_OUT if late else Outcome.FAILED if fails else Outcome.SUCCEEDED
        if outcome is Outcome.SUCCEEDED or over_at >= end_at:
            break
        verdict = decide(outcome, spec, job_id=job.id, scheduled_at=at, tries=tries, now_at=over_at)
        if verdict.event is Event.EXHAUST:
            break
        begin_at, tries = verdict.due_at, verdict.tries
    is_known = not leads and over_at < end_at
    succeeds = outcome is Outcome.SUCCEEDED
    return Life(at, due_at, over_at, job.id, spec.concurrency, is_known, tuple(attempts), succeeds)
