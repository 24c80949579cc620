"""What is known about one nominal time of a job, and what is said of it. Records only.

`RunFacts` is one snapshot of the store, so that its parts never contradict one another; `Verdict` is the answer.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from hourhand.core.dag import ParentOutcome
from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.lifecycle import State
from hourhand.core.model import Job, Trigger, Version
from hourhand.core.plan import Gap
from hourhand.core.run import RunView
from hourhand.core.skipping import Skip


class KeptGap(msgspec.Struct, frozen=True, kw_only=True):
    """What a clock missed in an outage, and when somebody planned again."""

    gap: Gap
    decided_at: int


class ParentFact(msgspec.Struct, frozen=True, kw_only=True):
    """A job that another follows, and its run for the same nominal time."""

    job_id: int
    name: str
    since_at: int  # it is followed for times after it
    outcome: ParentOutcome | None = None  # None while it may yet end, and where the job's own run has ended
    ended_at: int | None = None
    trigger: Trigger | None = None  # of its run, where it has ended
    telling: bool = False  # it has ended, and those that follow it are yet to be told

    @property
    def label(self) -> str:
        """How people know it."""
        return f"{self.name} ({format_job_id(self.job_id)})" if self.name else format_job_id(self.job_id)


class DeadFact(msgspec.Struct, frozen=True, kw_only=True):
    """What a dead letter keeps of a run that failed for good."""

    failed_at: int
    tries: int
    error: str


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is kept about one nominal time of a job, as of one moment."""

    job_id: int
    at: int
    now_at: int
    keep_us: int  # how long history is kept
    job: Job | None  # None when it was deleted
    versions: tuple[Version, ...]  # oldest first
    makers: Mapping[int, str] = {}  # who made which of them, where that is still known
    run: RunView | None
    live: bool = False  # the run is where those are that have not ended; else only history knows it
    dead: DeadFact | None = None
    others: tuple[RunView, ...] = ()  # runs of the job that are live, or ended around that time
    gap: KeptGap | None = None  # an outage of the clock that this time fell into
    skip: Skip | None = None
    unplanned_from: int | None = (
        None  # from here on nobody has planned; None: all that there is to plan is planned
    )
    parents: tuple[ParentFact, ...] = ()  # whom the job follows at that time, unless it has run

    @property
    def run_id(self) -> str:
        """The id that a run for this time has."""
        return format_run_id(self.job_id, self.at)

    def parent(self, job_id: int) -> str:
        """How people know a job that it follows."""
        known = next((fact.label for fact in self.parents if fact.job_id == job_id), None)
        return known or format_job_id(job_id)

    def parent_run(self, job_id: int) -> str:
        """The id of that job's run for this time."""
        return format_run_id(job_id, self.at)


class Word(StrEnum):
    """What became, or will become, of a nominal time."""

    RAN = "ran"
    RUNNING = "running"
    WAITING = "waiting"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    NOT_EXPECTED = "not expected"
    UNKNOWN = "no longer known"
    LOST = "lost"


class Cause(StrEnum):
    """Why, in a word that programs can rely on."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXECUTING = "executing"
    REPORT = "report"  # its target accepted it and is to report
    NOT_DUE = "not_due"
    NOT_PLANNED = "not_planned"  # due, and no scheduler has come to it
    NO_WORKER = "no_worker"
    QUEUE = "queue"  # due, and no worker has taken it
    SLOT = "slot"
    PARENT = "parent"
    RETRY = "retry"
    UNSERVED = "unserved"  # workers took it and could not run what it names
    PAUSED = "paused"
    MISFIRE = "misfire"
    OVERLAP = "overlap"
    UPSTREAM = "upstream"
    EXPIRED = "expired"
    ASKED = "asked_for"
    FUNCTION = "function"
    DELETED = "deleted"
    BEFORE_CREATION = "before_creation"
    BEFORE_START = "before_start"
    AFTER_END = "after_end"
    NO_SUCH_TIME = "no_such_time"
    DST = "dst"
    RETENTION = "retention"
    MISSING = "missing"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is known, and when it happened where it did so at an instant."""

    text: str
    at: int | None = None


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """How late a run started, and where the time went. Parts are None where nobody measured them."""

    total_us: int
    planning_us: int | None = None
    slot_us: int | None = None
    queue_us: int | None = None
    worker_us: int | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a nominal time, why, and what would change it."""

    word: Word
    cause: Cause
    summary: str
    evidence: tuple[Evidence, ...]
    change: tuple[str, ...]  # what would change it, never empty
    state: State | None = None  # of the run, where there is one
    version: int | None = None  # that decided
    decided_at: int | None = None
    decided_by: str | None = None  # a worker's name, or who paused the job
    lateness: Lateness | None = None
    blocked_by: tuple[str, ...] = ()  # ids of runs, or of jobs that it follows
    before_at: int | None = None  # the job's nearest times
    after_at: int | None = None
