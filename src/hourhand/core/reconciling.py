"""Whether every time that a job's versions promise is accounted for, and nothing else ran in their name.

Pure. Gets what the store has of one job in a window, and answers numbers that must come to the number of expected
times, with a finding for everything that does not fit.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from hourhand.core.audit import (
    CODE_BASE,
    LAG_BUDGET_US,
    STATES,
    AuditedJob,
    ClockFacts,
    Duty,
    JobRuns,
    Kind,
    Place,
    Reconciliation,
    Span,
    Tally,
)
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import AfterTiming, OnceTiming, Timing, Trigger, rule_of
from hourhand.core.plan import MAX_LEAD_US
from hourhand.core.run import TRIGGER_CODES, TRIGGERS

_NATURAL = (Trigger.SCHEDULED, Trigger.CATCH_UP, Trigger.UPSTREAM)  # runs that a schedule brings about
_NATURAL_CODES = frozenset(TRIGGER_CODES[trigger] for trigger in _NATURAL)
_GOES_ON = frozenset({State.FAILED, State.SKIPPED})  # where it is sent back


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
    return _Story(job, runs).told(times, frozenset(possible))


def plain_tally(codes: Iterable[int]) -> Tally:
    """What became of times that have one line each, which is their end, of any number of jobs."""
    tally = Tally()
    for code, number in Counter(codes).items():
        tally.expected += number
        tally.count(STATES[code // CODE_BASE], number)
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
    job: AuditedJob,
    found: Reconciliation,
    duties: Mapping[int, Duty],
    untold: Container[int],
    overdue: Container[int],
) -> None:
    """Say what became of times that parents brought about and that are nowhere.

    `untold` are those of which it is yet to hear, `overdue` those of them that ended long ago. What is left in
    `missing` are times of the job's own schedule.
    """
    rest = []
    for at in found.missing:
        duty = duties.get(at)
        if duty is None:
            rest.append(at)
        elif duty is Duty.MAY:
            found.tally.expected -= 1
        elif duty is Duty.WAITS or at in untold:
            found.tally.waiting += 1
            if at in overdue:
                words = "a job that it follows has ended, and nobody has told it yet"
                found.find(Kind.UNPLANNED, job, at, words)
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
        pending = _is_owed(job.spans[-1], span, clocks, at)
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
        self._dead = {one.scheduled_at: one for one in runs.live if one.place == Place.DEAD}
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
        for at in sorted({*self._lines, *self._live, *self._dead} - expected):
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
            if at in self._dead and last is not State.FAILED:
                words = "of which history knows nothing" if last is None else f"but history ends with {last}"
                self._find(Kind.BROKEN, at, f"a dead letter {words}")
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
        code = lines[0] % CODE_BASE if lines else (self._live.get(at) or self._dead[at]).trigger
        return code in _NATURAL_CODES

    def _find(self, kind: Kind, at: int, words: str) -> None:
        self._told.find(kind, self._job, at, words)


def _span_at(job: AuditedJob, at: int) -> Span:
    """The version that a time belongs to."""
    for span in job.spans:
        if at <= span.last_at:
            return span
    return job.spans[-1]


def _is_owed(present: Span, span: Span, clocks: Mapping[str, ClockFacts], at: int) -> bool:
    """Whether somebody is still to come to a time for the version in force, whatever was edited since it was promised:
    the clock, or who ends what passes while a one-time job is paused."""
    timing = present.schedule.timing
    if present.deleted:
        return False
    if isinstance(timing, OnceTiming):
        return present.paused and timing.at == at
    rule = rule_of(timing)
    if rule is None or present.paused or present.since is None or timing != span.schedule.timing:
        return False
    facts = clocks.get(rule.key)
    return facts is not None and facts.next_at is not None and facts.next_at <= at and present.since < at


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
