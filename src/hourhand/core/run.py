"""The nouns of a run: what a worker gets, what it gives back, and what people read afterwards.

Records only. Who may change which is in `core.lifecycle`; the policies are beside it.
"""

from typing import Any

import msgspec

from hourhand.core.identity import RunKey, format_run_id
from hourhand.core.lifecycle import Event, State
from hourhand.core.model import JobSpec, Trigger

TRIGGERS = tuple(Trigger)
TRIGGER_CODES = {trigger: code for code, trigger in enumerate(TRIGGERS)}


class ClaimedRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One run in a worker's hand, with the job as it is now. Field order is the claim's column order."""

    job_id: int
    slot: int
    scheduled_at: int
    due_at: int
    fence: int
    tries: int
    trigger_code: int
    deadline_at: int
    version: int
    tenant: str
    spec: JobSpec

    @property
    def key(self) -> RunKey:
        """Its identity."""
        return RunKey(self.job_id, self.scheduled_at)

    @property
    def run_id(self) -> str:
        """Its public id, and the idempotency key for targets."""
        return format_run_id(self.job_id, self.scheduled_at)

    @property
    def trigger(self) -> Trigger:
        """Why it exists."""
        return TRIGGERS[self.trigger_code]


class Settlement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of a claimed run, already decided; the store only checks slot and fence."""

    job_id: int
    scheduled_at: int
    slot: int
    fence: int
    event: Event
    version: int
    tries: int
    due_at: int = (
        0  # of the next attempt, with Event.RETRY; with Event.RELEASE when it is offered again, 0: at once
    )
    started_at: int | None = None
    finished_at: int
    detail: str | None = None  # JSON: {"response": …} or {"error": …} or {"reason": …}


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of history: an attempt, or a run's end without one."""

    attempt: int
    state: State
    due_at: int
    started_at: int | None
    finished_at: int
    worker: str | None
    version: int
    detail: dict[str, Any] | None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far an attempt is, as it was last told."""

    fraction: float | None  # from 0 to 1
    message: str | None
    noted_at: int


class ProgressNote(msgspec.Struct, frozen=True, kw_only=True):
    """How far an attempt is, to be kept while it is under way."""

    job_id: int
    scheduled_at: int
    slot: int
    fence: int
    fraction: float | None = None
    message: str | None = None
    deadline_at: int | None = None  # where it is to be moved


class OpenAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt under way, executing or waiting for its report, with what decides about it."""

    run: ClaimedRun
    began_at: int  # as the store sees it
    deleted: bool  # its job is gone, so it is not tried again


class AttemptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a run: under way, ended, or neither where there was none."""

    now_at: int
    open: OpenAttempt | None = None
    ended: AttemptRow | None = None


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run as people read it, wherever it is in its life."""

    job_id: int
    scheduled_at: int
    tenant: str
    state: State
    trigger: Trigger
    due_at: int
    tries: int
    fence: int
    version: int | None
    worker: str | None
    began_at: int | None = None  # the present attempt's start, as the store sees it, while it runs
    offered_at: int | None = None  # no worker could run it so far; when it is offered to one again
    waits_for_slot: bool = False
    waits_for: tuple[int, ...] = ()  # parents that have not ended
    wait_until: int | None = None  # when it waits for them no longer
    cancel_asked: bool = False
    deadline_at: int | None = None  # of the present attempt, while it runs
    awaits_report: bool = False  # its target accepted it, and nobody holds it
    progress: Progress | None = None  # of the present attempt
    skip_asked: bool = False  # it will end as skipped when its time comes
    rerun_of: int | None = None  # the nominal time of the run that it repeats
    reruns: tuple[int, ...] = ()  # the nominal times of the runs that repeat it
    attempts: tuple[AttemptRow, ...] = ()  # oldest first

    @property
    def key(self) -> RunKey:
        """Its identity."""
        return RunKey(self.job_id, self.scheduled_at)

    @property
    def run_id(self) -> str:
        """Its public id."""
        return format_run_id(self.job_id, self.scheduled_at)


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A run that used up its tries and waits for a person."""

    job_id: int
    scheduled_at: int
    tenant: str
    job_name: str
    failed_at: int
    tries: int
    fence: int
    trigger: Trigger
    error: str
    fingerprint: str  # alike errors have the same

    @property
    def run_id(self) -> str:
        """Its public id."""
        return format_run_id(self.job_id, self.scheduled_at)
