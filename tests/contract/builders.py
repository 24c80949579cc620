"""Jobs, drafts and outcomes for the contract suite, with only what a test cares about spelt out."""

import itertools
from typing import Any

import msgspec

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import (
    DEFAULT_TENANT,
    CronTiming,
    EveryTiming,
    JobSpec,
    OnceTiming,
    PythonTarget,
    Timing,
)
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.ports.store import HeldRun, JobDraft, StrayRun

NOOP = PythonTarget(function="tests:noop")

_ids = itertools.count(5_000_000_000, 7)


def every(seconds: float, phase_at: int = 0) -> EveryTiming:
    return EveryTiming(interval_us=int(seconds * SECOND_US), phase_at=phase_at)


def cron(expression: str, tz: str = "UTC") -> CronTiming:
    return CronTiming(expression=expression, tz=tz)


def once(at: int) -> OnceTiming:
    return OnceTiming(at=at)


def spec(timing: Timing | None = None, **fields: Any) -> JobSpec:
    """A job that does nothing every minute, unless told otherwise."""
    return JobSpec(timing=timing or every(60), target=fields.pop("target", NOOP), **fields)


def draft(
    spec_: JobSpec | None = None, *, tenant: str = DEFAULT_TENANT, id: int | None = None, **fields: Any
) -> JobDraft:
    """A job to be created, under an id of its own."""
    return JobDraft(
        id=next(_ids) if id is None else id, tenant=tenant, spec=spec() if spec_ is None else spec_, **fields
    )


def outcome(
    run: ClaimedRun,
    event: Event = Event.SUCCEED,
    *,
    now_at: int,
    tries: int | None = None,
    due_at: int = 0,
    detail: Any = None,
    **fields: Any,
) -> Settlement:
    """What became of a claimed run."""
    return Settlement(
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        slot=fields.get("slot", run.slot),
        fence=fields.get("fence", run.fence),
        event=event,
        version=run.version,
        tries=run.tries if tries is None else tries,
        due_at=due_at,
        started_at=fields.get("started_at", now_at),
        finished_at=now_at,
        detail=None if detail is None else msgspec.json.encode(detail).decode(),
    )


def outcome_of_stray(
    run: StrayRun | HeldRun, event: Event, *, now_at: int, tries: int = 0, due_at: int = 0
) -> Settlement:
    """What the sweeper makes of a run that its worker left behind."""
    return Settlement(
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        slot=run.slot,
        fence=run.fence,
        event=event,
        version=0,
        tries=tries,
        due_at=due_at,
        finished_at=now_at,
    )
