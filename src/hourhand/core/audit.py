"""Whether every time that a job's versions promise is accounted for, and nothing else ran in their name.

Pure. Gets what the store has of one job in a window, and answers numbers that must come to the number of expected
times, with a finding for everything that does not fit. What is read, in which pages, is the service's and the store's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum

import msgspec

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import FOREVER, AfterTiming, Misfire, OnceTiming, Timing, Trigger, rule_of
from hourhand.core.plan import MAX_LEAD_US, Gap
from hourhand.core.run import TRIGGER_CODES, TRIGGERS
from hourhand.core.schedule import Rule

LAG_BUDGET_US = (
    120 * SECOND_US
)  # beyond a job's grace: takeover of a segment, a lost worker, a pause between looks
MAX_FINDINGS = 1_000  # that are listed; all are counted
STATES = tuple(State)
CODE_BASE = 8  # a line of history in one number: its state's place, times this, and its trigger's
NATURAL = frozenset({Trigger.SCHEDULED, Trigger.CATCH_UP, Trigger.UPSTREAM})

_NATURAL_CODES = frozenset(TRIGGER_CODES[trigger] for trigger in NATURAL)
_GOES_ON = frozenset({State.FAILED, State.SKIPPED})  # where it is sent back
_PLAIN: Mapping[int, State] = {
    STATES.index(state) * CODE_BASE + trigger: state for state in FINAL for trigger in _NATURAL_CODES
}


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


class Expectations:
    """Expected times of jobs in a window, each computed once for all jobs that share it."""

    _MOST_KEPT = 200_000  # times that are remembered

    def __init__(self, from_at: int, to_at: int, most: int) -> None:
        self._from_at = from_at
        self._last_at = to_at - 1
        self._most = most
        self._known: dict[tuple[Timing, int, int], list[int]] = {}
        self._kept = 0

    def times(self, job: AuditedJob) -> list[int] | None:
        """The times of a job by its own schedule, oldest first; None where they are too many. Must not be changed."""
        if len(job.spans) == 1:
            times = self._times(job.spans[0])
        else:
            times = sorted({at for span in job.spans for at in self._times(span)})
        return None if len(times) > self._most else times

    def _times(self, span: Span) -> list[int]:
        timing = span.schedule.timing
        if span.deleted:
            return []
        if isinstance(timing, OnceTiming):  # also of a paused version: passing unrun, it ends as skipped
            return [timing.at] if self._from_at <= timing.at <= min(self._last_at, span.last_at) else []
        if span.paused:
            return []
        key = (
            timing,
            max(self._from_at - 1, span.after_at),
            min(self._last_at, span.last_at, span.until),
        )
        known = self._known.get(key)
        if known is None:
            rule = rule_of(timing)
            known = [] if rule is None else rule.times(key[1], key[2], self._most + 1)
            self._kept += len(known) + 1
            if self._kept > self._MOST_KEPT:
                self._known, self._kept = {}, len(known) + 1
            self._known[key] = known
        return known


def reconcile(
    job: AuditedJob, times: list[int], runs: JobRuns, possible: Iterable[int] = ()
) -> Reconciliation:
    """Hold the expected times of a job against its runs.

    `possible` are further times at which a run of the schedule is no phantom.
    """
    if is_plain(times, runs):
        return Reconciliation(tally=plain_tally(runs.codes))
    return _Story(job, runs).told(times, frozenset(possible))


def is_plain(times: list[int], runs: JobRuns) -> bool:
    """Whether each time has one line, which is its end, and nothing else is there: nearly always so."""
    return runs.ats == times and not runs.live and _PLAIN.keys() >= set(runs.codes)


def plain_tally(codes: Iterable[int]) -> Tally:
    """What became of times that are plain, of any number of jobs."""
    tally = Tally()
    for code, number in Counter(codes).items():
        tally.expected += number
        tally.count(_PLAIN[code], number)
    return tally


def natural_times(runs: JobRuns) -> dict[int, bool]:
    """The times at which a job has a run of the schedule, each with whether it has ended once."""
    began: dict[int, int] = {}  # why there is a run, by its first sign
    ended: set[int] = set()
    for at, code in zip(runs.ats, runs.codes, strict=True):
        began.setdefault(at, code % CODE_BASE)
        if STATES[code // CODE_BASE] in FINAL:
            ended.add(at)
    for live in runs.live:
        began.setdefault(live.scheduled_at, live.trigger)
    return {at: at in ended for at, trigger in began.items() if trigger in _NATURAL_CODES}


def followed_times(
    job: AuditedJob, parents: Mapping[int, Mapping[int, bool]], from_at: int, to_at: int
) -> tuple[dict[int, Duty], set[int]]:
    """The times that a job's parents bring about, each with whether a run must be there by now.

    Second, all times at which any of them had a run of the schedule.
    """
    present = job.spans[-1]
    still_follows = isinstance(present.schedule.timing, AfterTiming) and not present.deleted
    times: dict[int, Duty] = {}
    possible: set[int] = set()
    for span in job.spans:
        timing = span.schedule.timing
        if not isinstance(timing, AfterTiming):
            continue
        after_at, last_at = max(from_at - 1, span.from_at), min(to_at - 1, span.last_at)
        firm_at = span.from_at + (
            MAX_LEAD_US if span.version == 1 else 0
        )  # a new job's edges begin with the lead
        for parent in timing.parents:
            for at, ended in parents.get(parent, {}).items():
                possible.add(at)
                if not span.deleted and after_at < at <= last_at:
                    duty = Duty.MUST if ended else Duty.WAITS
                    duty = duty if still_follows and at > firm_at else Duty.MAY
                    times[at] = max(duty, times.get(at, Duty.MAY))
    return times, possible


def judge_followed(
    job: AuditedJob, found: Reconciliation, duties: Mapping[int, Duty], fresh: Iterable[int]
) -> None:
    """Say what became of times that parents brought about and that are nowhere; `fresh` are those that one of them
    brought about just now. What is left in `missing` are times of the job's own schedule."""
    just_now, rest = set(fresh), []
    for at in found.missing:
        duty = duties.get(at)
        if duty is None:
            rest.append(at)
        elif duty is Duty.MAY:
            found.tally.expected -= 1
        elif duty is Duty.WAITS or at in just_now:
            found.tally.waiting += 1
        else:
            found.tally.lost += 1
            words = "a job that it follows had a run for this time, and it has none"
            found.find(Kind.LOST, job, at, words)
    found.missing = rest


def judge_missing(
    job: AuditedJob, found: Reconciliation, clocks: Mapping[str, ClockFacts], now_at: int
) -> None:
    """Say what became of expected times that are nowhere: missed in an outage, not planned yet, or lost."""
    tally = found.tally
    for at in found.missing:
        if _is_missed(job, clocks, at):
            tally.skipped += 1
            tally.missed += 1
            continue
        span = _span_at(job, at)
        overdue = at + span.schedule.misfire.grace_us + LAG_BUDGET_US < now_at
        pending = _is_unplanned(span, clocks, at)
        if pending or not overdue:
            tally.waiting += 1
            if overdue:
                words = "nobody has planned it, although its time and its grace have passed"
                found.find(Kind.UNPLANNED, job, at, words)
        else:
            tally.lost += 1
            words = "expected, and neither run, skipped, cancelled nor waiting"
            found.find(Kind.LOST, job, at, words)
    found.missing = []


def rule_keys(job: AuditedJob) -> set[str]:
    """The rules that a job had in these versions."""
    return {rule.key for span in job.spans if (rule := span.schedule.rule) is not None}


class _Story:
    """What is known of each time of one job."""

    def __init__(self, job: AuditedJob, runs: JobRuns) -> None:
        self._job = job
        self._lines: dict[int, list[int]] = {}
        for at, code in zip(runs.ats, runs.codes, strict=True):
            self._lines.setdefault(at, []).append(code)
        self._live = {one.scheduled_at: one for one in runs.live if one.place != Place.DEAD}
        self._dead = {one.scheduled_at for one in runs.live if one.place == Place.DEAD}
        self._told = Reconciliation(tally=Tally())

    def told(self, times: Sequence[int], possible: frozenset[int]) -> Reconciliation:
        """The whole of it."""
        told, tally = self._told, self._told.tally
        tally.expected = len(times)
        expected = set(times)
        for at in times:
            if at in self._lines or at in self._live or at in self._dead:
                state = self._state(at)
                if state is None:
                    tally.lost += 1
                else:
                    tally.count(state)
            else:
                told.missing.append(at)
        for at in sorted({*self._lines, *self._live} - expected):
            self._state(at)
            if self._is_natural(at) and at not in possible:
                self._find(Kind.PHANTOM, at, "a run of the schedule at a time that no version expected")
            else:
                tally.beside += 1
        return told

    def _state(self, at: int) -> State | None:
        """How a run stands; None where it began and is nowhere now."""
        last = self._last_line(at)
        live = self._live.get(at)
        if live is None:
            if last is None:
                self._find(Kind.BROKEN, at, "a dead letter of which history knows nothing")
                return State.FAILED
            if last is State.RETRYING:
                self._find(Kind.LOST, at, "it was to be tried again, and is nowhere")
                return None
            return last
        if last in FINAL and not (last in _GOES_ON and TRIGGERS[live.trigger] is Trigger.REQUEUED):
            self._find(Kind.DOUBLE, at, f"it has ended as {last}, and waits or runs all the same")
        return State.PENDING

    def _last_line(self, at: int) -> State | None:
        before: State | None = None
        for code in self._lines.get(at, ()):
            state, trigger = STATES[code // CODE_BASE], TRIGGERS[code % CODE_BASE]
            if before in FINAL and not (before in _GOES_ON and trigger is Trigger.REQUEUED):
                kind = Kind.DOUBLE if state in FINAL else Kind.BROKEN
                self._find(kind, at, f"history goes on with {state} after {before}, and nobody sent it back")
            before = state
        return before

    def _is_natural(self, at: int) -> bool:
        lines = self._lines.get(at)
        code = lines[0] % CODE_BASE if lines else self._live[at].trigger
        return code in _NATURAL_CODES

    def _find(self, kind: Kind, at: int, words: str) -> None:
        self._told.find(kind, self._job, at, words)


def _span_at(job: AuditedJob, at: int) -> Span:
    """The version that a time belongs to."""
    for span in job.spans:
        if at <= span.last_at:
            return span
    return job.spans[-1]


def _is_unplanned(span: Span, clocks: Mapping[str, ClockFacts], at: int) -> bool:
    """Whether somebody is still to come to it: the clock, or who ends what passes while it is paused."""
    if isinstance(span.schedule.timing, OnceTiming):
        return span.paused and span.to_at is None
    rule = span.schedule.rule
    facts = None if rule is None or span.to_at is not None else clocks.get(rule.key)
    return facts is not None and facts.next_at is not None and facts.next_at <= at


def _is_missed(job: AuditedJob, clocks: Mapping[str, ClockFacts], at: int) -> bool:
    """Whether a gap of a clock that it was a member of, under its policy, covers a time."""
    for span in job.spans:
        rule = span.schedule.rule
        if rule is None or rule.key not in clocks:
            continue
        misfire = span.schedule.misfire
        mine = (misfire.policy, misfire.grace_us, misfire.limit)
        for gap in clocks[rule.key].gaps:
            if gap.from_at <= at <= gap.to_at and (gap.policy, gap.grace_us, gap.limit) == mine:
                return True
    return False
