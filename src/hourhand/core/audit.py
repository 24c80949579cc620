"""The nouns of an audit: what is asked for, what is read of a job, what was found, and the equation.

Records only. Which times are expected, and what fits, is `core.reconciling`'s; what is read, in which pages, the
service's and the store's.
"""

from enum import IntEnum, StrEnum

import msgspec

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import FOREVER, AfterTiming, Misfire, Timing, rule_of
from hourhand.core.plan import Gap
from hourhand.core.schedule import Rule

LAG_BUDGET_US = (
    120 * SECOND_US
)  # beyond a job's grace: takeover of a segment, a lost worker, a pause between looks
MAX_FINDINGS = 1_000  # that are listed; all are counted
STATES = tuple(State)
CODE_BASE = 8  # a line of history in one number: its state's place, times this, and its trigger's


class Place(IntEnum):
    """Where a run that has not ended is; dead letters have, and wait for a person."""

    PLANNED = 0
    RUNNING = 1
    BLOCKED = 2
    WAITING = 3
    DEAD = 4


class Kind(StrEnum):
    """What does not fit."""

    LOST = "lost"
    UNPLANNED = "unplanned"
    PHANTOM = "phantom"
    DOUBLE = "double"
    BROKEN = "broken"


class Duty(IntEnum):
    """Whether a job that follows others must have a run for a time that they have one for."""

    MAY = 0  # it was just made, is gone, or follows nobody any more
    WAITS = 1  # for a parent that has not ended
    MUST = 2


class Schedule(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """As much of a job's spec as says when it runs."""

    timing: Timing
    name: str = ""
    starts_at: int | None = None
    misfire: Misfire = Misfire()

    @property
    def rule(self) -> Rule | None:
        """When it recurs; None for a one-time job and for one that follows others."""
        return rule_of(self.timing)


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A version of a job: when it was in force, and when it ran then."""

    schedule: Schedule
    version: int = 1
    from_at: int
    to_at: int | None  # None while in force
    until: int
    paused: bool = False
    deleted: bool = False
    since: int | None = None  # of the one in force: its clock plans what lies after this

    @property
    def after_at(self) -> int:
        """Its times lie after this."""
        starts_at = self.schedule.starts_at
        return self.from_at if starts_at is None else max(self.from_at, starts_at - 1)

    @property
    def last_at(self) -> int:
        """And up to this, by the versions; `until` is the schedule's own end."""
        return FOREVER if self.to_at is None else self.to_at


class AuditedJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job with its versions that may have times in a window, oldest first."""

    id: int
    tenant: str
    spans: tuple[Span, ...]

    @property
    def name(self) -> str:
        """How people know it."""
        return self.spans[-1].schedule.name if self.spans else ""

    @property
    def follows(self) -> bool:
        """Whether it followed others in any of these versions."""
        if len(self.spans) == 1:  # nearly always
            return isinstance(self.spans[0].schedule.timing, AfterTiming)
        return any(isinstance(span.schedule.timing, AfterTiming) for span in self.spans)


class LiveRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A run that has not ended, or a dead letter."""

    scheduled_at: int
    place: int
    trigger: int


class JobRuns(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the store has of a job in a window: lines of history in order of time and attempt, and what is live."""

    job_id: int
    ats: list[int] = []
    codes: list[int] = []
    live: tuple[LiveRun, ...] = ()
    untold: frozenset[int] = frozenset()  # times that have ended, of which its children are yet to hear
    cut: bool = False  # there is more than was asked for


class ClockFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How far the clock of a rule is, and what it missed."""

    next_at: int | None
    gaps: tuple[Gap, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not fit."""

    kind: Kind
    job_id: int
    scheduled_at: int
    words: str
    job_name: str = ""


class Tally(msgspec.Struct, kw_only=True):
    """What became of expected times. Skipped counts those too that an outage swallowed; lost is in none of the others."""

    expected: int = 0
    succeeded: int = 0
    skipped: int = 0
    failed: int = 0
    cancelled: int = 0
    waiting: int = 0
    missed: int = 0  # of the skipped, those that nobody planned in time
    lost: int = 0
    beside: int = 0  # runs beside the schedule: manual ones, reruns, backfills of what was not expected

    @property
    def accounted(self) -> int:
        """The right side of the equation."""
        return self.succeeded + self.skipped + self.failed + self.cancelled + self.waiting

    def add(self, other: "Tally") -> None:
        """Count another one in."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, state: State, number: int = 1) -> None:
        """Count ended times."""
        match state:
            case State.SUCCEEDED:
                self.succeeded += number
            case State.SKIPPED:
                self.skipped += number
            case State.FAILED:
                self.failed += number
            case State.CANCELLED:
                self.cancelled += number
            case _:
                self.waiting += number


class Reconciliation(msgspec.Struct, kw_only=True):
    """One job's part of an audit; `missing` are expected times that are nowhere, which are still to be judged."""

    tally: Tally
    findings: list[Finding] = []  # the first of them
    kinds: dict[Kind, int] = {}  # all of them
    missing: list[int] = []

    def find(self, kind: Kind, job: AuditedJob, at: int, words: str) -> None:
        """Note something that does not fit."""
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if len(self.findings) < MAX_FINDINGS:
            finding = Finding(kind=kind, job_id=job.id, job_name=job.name, scheduled_at=at, words=words)
            self.findings.append(finding)

    def add(self, other: "Reconciliation") -> None:
        """Count in another part of the same job's window."""
        self.tally.add(other.tally)
        self.findings += other.findings[: max(0, MAX_FINDINGS - len(self.findings))]
        for kind, number in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + number


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """What to audit: times from one instant up to another, of one job, a tenant, or all."""

    from_at: int
    to_at: int
    tenant: str | None = None
    job_id: int | None = None
    by_job: bool = False  # whether each job's own equation is wanted too, which takes longer


class JobTally(msgspec.Struct, frozen=True, kw_only=True):
    """One job's part of the equation."""

    job_id: int
    job_name: str
    tally: Tally


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """The equation, and what does not fit."""

    window: Window
    tally: Tally
    jobs_checked: int
    findings: tuple[Finding, ...]  # the first of them
    kinds: dict[Kind, int]  # all of them
    by_job: tuple[JobTally, ...]  # of jobs with findings, or of those that were asked for
    unread: tuple[int, ...] = ()  # jobs that have too much to be read
    missing: tuple[int, ...] = ()  # shards that did not answer
    next_after: tuple[int, ...] | None = None  # where to go on, where its time was over

    @property
    def complete(self) -> bool:
        """Whether everything was read."""
        return not self.unread and not self.missing and self.next_after is None

    @property
    def is_clean(self) -> bool:
        """Whether everything was read, and all of it fits."""
        return self.complete and not self.kinds
