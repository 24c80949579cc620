"""Applies many wanted jobs by key: creates those that are not there, changes those that differ, leaves the rest.

Each stands for itself, and none is un-paused or taken from another set. Whether all of them are right before
the first is written, and what is no longer wanted, is for the caller, who sees all parts of a set.
"""

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from hourhand.core.model import Job, OnceTiming
from hourhand.errors import Conflict, HourhandError
from hourhand.services.jobs import Jobs, NewJob

_TOGETHER = 64  # at once: enough to share commits, few enough to leave room for others


class Action(StrEnum):
    """What applying did to a job, or would do."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    PASSED = "passed"  # a one-time job that is not there, and whose time is over: it may well have run


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A job as somebody wants it: its key, and what to make of the present one."""

    key: str
    change: Callable[[Job | None, int], NewJob]


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A job before and after."""

    action: Action
    before: Job | None = None
    after: Job | None = None  # None where it passed


class _Passed(HourhandError):
    """A one-time job would be created after its time: finished ones are forgotten some day, and must not run again."""


async def apply(
    jobs: Jobs, tenant: str, wanted: Sequence[Wanted], *, dry_run: bool = False, take_over: bool = False
) -> list[Applied | HourhandError]:
    """What became of each, in order. Keys must differ."""
    answers: list[Applied | HourhandError] = []
    for start in range(0, len(wanted), _TOGETHER):
        part = wanted[start : start + _TOGETHER]
        answers += await asyncio.gather(*(_apply(jobs, tenant, one, dry_run, take_over) for one in part))
    return answers


async def _apply(
    jobs: Jobs, tenant: str, wanted: Wanted, dry_run: bool, take_over: bool
) -> Applied | HourhandError:
    before: Job | None = None

    def change(job: Job | None, now_at: int) -> NewJob:
        nonlocal before
        before = job
        new = wanted.change(job, now_at)
        if job is None and isinstance(new.spec.timing, OnceTiming) and new.spec.timing.at <= now_at:
            raise _Passed("its one time is over")
        _check_set(job, new, take_over)
        return new

    try:
        changed, created = await jobs.upsert(tenant, wanted.key, change, dry_run=dry_run)
    except _Passed:
        return Applied(action=Action.PASSED)
    except HourhandError as error:
        return error
    if created:
        return Applied(action=Action.CREATED, after=changed.job)
    same = before is not None and before.version == changed.job.version
    return Applied(action=Action.UNCHANGED if same else Action.CHANGED, before=before, after=changed.job)


def _check_set(job: Job | None, new: NewJob, take_over: bool) -> None:
    if job is None or take_over or job.spec.set_name in (None, new.spec.set_name):
        return
    raise Conflict(
        f"the job with the key {job.spec.key!r} belongs to the set {job.spec.set_name!r}; "
        "take it out of those files, or apply with take_over"
    )
