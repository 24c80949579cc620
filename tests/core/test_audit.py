"""The equation of one job: every kind of line, live run and gap, and what does not fit is named."""

import msgspec
import pytest

from hourhand.core.audit import (
    CODE_BASE,
    LAG_BUDGET_US,
    MAX_FINDINGS,
    STATES,
    AuditedJob,
    ClockFacts,
    Duty,
    JobRuns,
    Kind,
    LiveRun,
    Place,
    Reconciliation,
    Schedule,
    Span,
    Tally,
)
from hourhand.core.instant import HOUR_US, SECOND_US, parse_instant
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    FOREVER,
    AfterTiming,
    CronTiming,
    EveryTiming,
    Misfire,
    MisfirePolicy,
    OnceTiming,
    Timing,
    Trigger,
)
from hourhand.core.plan import MAX_LEAD_US, Gap
from hourhand.core.reconciling import (
    Expectations,
    followed_times,
    judge_followed,
    judge_missing,
    natural_times,
    reconcile,
)
from hourhand.core.run import TRIGGER_CODES

S = SECOND_US
TEN = EveryTiming(interval_us=10 * S, phase_at=0)
RULE_KEY = f"every {10 * S} 0"
SCHEDULED, REQUEUED, MANUAL, UPSTREAM = (
    Trigger.SCHEDULED,
    Trigger.REQUEUED,
    Trigger.MANUAL,
    Trigger.UPSTREAM,
)
SUCCEEDED, FAILED, SKIPPED, CANCELLED, RETRYING = (
    State.SUCCEEDED,
    State.FAILED,
    State.SKIPPED,
    State.CANCELLED,
    State.RETRYING,
)


def span(timing: Timing = TEN, from_at: int = 0, to_at: int | None = None, **fields: object) -> Span:
    misfire = fields.pop("misfire", Misfire())
    schedule = Schedule(timing=timing, name="it", starts_at=fields.pop("starts_at", None), misfire=misfire)  # type: ignore[arg-type]
    return Span(schedule=schedule, from_at=from_at, to_at=to_at, **{"until": FOREVER, "since": 0, **fields})  # type: ignore[arg-type]


def job(*spans: Span) -> AuditedJob:
    return AuditedJob(id=1, tenant="default", spans=spans or (span(),))


def runs(*lines: tuple[int, State, Trigger], live: tuple[tuple[int, Place, Trigger], ...] = ()) -> JobRuns:
    return JobRuns(
        job_id=1,
        ats=[at for at, _, _ in lines],
        codes=[STATES.index(state) * CODE_BASE + TRIGGER_CODES[trigger] for _, state, trigger in lines],
        live=tuple(LiveRun(at, place, TRIGGER_CODES[trigger]) for at, place, trigger in live),
    )


def times(audited: AuditedJob, from_s: float = 0, to_s: float = 60) -> list[int]:
    found = Expectations(round(from_s * S), round(to_s * S), 1_000).times(audited)
    assert found is not None
    return [at // S for at in found]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ((span(),), [10, 20, 30, 40, 50]),
        ((span(from_at=20 * S),), [30, 40, 50]),
        ((span(starts_at=20 * S),), [20, 30, 40, 50]),
        ((span(until=30 * S),), [10, 20, 30]),
        ((span(paused=True),), []),
        ((span(to_at=25 * S), span(paused=True, from_at=25 * S, to_at=45 * S), span(from_at=45 * S)), [10, 20, 50]),
        ((span(to_at=25 * S), span(EveryTiming(interval_us=5 * S, phase_at=0), from_at=25 * S, until=40 * S)),
            [10, 20, 30, 35, 40]),
        ((span(to_at=30 * S), span(from_at=30 * S, deleted=True)), [10, 20, 30]),
        ((span(OnceTiming(at=30 * S)),), [30]),
        ((span(OnceTiming(at=30 * S), from_at=40 * S),), [30]),  # made for a time that had passed
        ((span(OnceTiming(at=30 * S), paused=True),), [30]),
        ((span(OnceTiming(at=30 * S), to_at=20 * S), span(OnceTiming(at=50 * S), from_at=20 * S)), [50]),
        ((span(OnceTiming(at=60 * S)),), []),
        ((span(AfterTiming(parents=(2,))),), []),
    ],
)  # fmt: skip
def test_expected_times(spans: tuple[Span, ...], expected: list[int]) -> None:
    found = times(job(*spans))
    assert [at for at in found if at] == expected


def test_the_first_instant_of_a_window_belongs_to_it_and_the_last_does_not() -> None:
    assert times(job(span(from_at=-1)), 10, 30) == [10, 20]


def test_a_day_on_which_an_hour_comes_twice() -> None:
    day = parse_instant("2026-10-24T22:00:00Z")
    hourly = CronTiming(expression="0 * * * *", tz="Europe/Berlin")
    found = Expectations(day, day + 25 * HOUR_US, 1_000).times(job(span(hourly)))
    assert found is not None
    assert len(found) == 25


def test_more_times_than_are_wanted_are_none() -> None:
    assert Expectations(0, 60 * S, 3).times(job(span(from_at=-1))) is None


@pytest.mark.parametrize(
    ("found", "tally", "kinds"),
    [
        (runs((10, SUCCEEDED, SCHEDULED)), Tally(succeeded=1), {}),
        (runs((10, SKIPPED, SCHEDULED)), Tally(skipped=1), {}),
        (runs((10, CANCELLED, Trigger.CATCH_UP)), Tally(cancelled=1), {}),
        (runs((10, FAILED, SCHEDULED)), Tally(failed=1), {}),
        (runs((10, RETRYING, SCHEDULED), (10, SUCCEEDED, SCHEDULED)), Tally(succeeded=1), {}),
        (runs((10, FAILED, SCHEDULED), (10, SUCCEEDED, REQUEUED)), Tally(succeeded=1), {}),
        (runs((10, SKIPPED, UPSTREAM), (10, SUCCEEDED, REQUEUED)), Tally(succeeded=1), {}),
        (runs((10, SUCCEEDED, Trigger.BACKFILL)), Tally(succeeded=1), {}),
        (runs((10, FAILED, SCHEDULED), live=((10, Place.DEAD, SCHEDULED),)), Tally(failed=1), {}),
        (runs((10, FAILED, SCHEDULED), live=((10, Place.PLANNED, REQUEUED),)), Tally(waiting=1), {}),
        (runs((10, RETRYING, SCHEDULED), live=((10, Place.RUNNING, SCHEDULED),)), Tally(waiting=1), {}),
        (runs(live=((10, Place.PLANNED, SCHEDULED),)), Tally(waiting=1), {}),
        (runs(live=((10, Place.BLOCKED, SCHEDULED),)), Tally(waiting=1), {}),
        (runs(live=((10, Place.WAITING, UPSTREAM),)), Tally(waiting=1), {}),
        (runs((7, SUCCEEDED, MANUAL), (10, SUCCEEDED, SCHEDULED)), Tally(succeeded=1, beside=1), {}),
        (runs((10, SUCCEEDED, SCHEDULED), live=((7, Place.RUNNING, Trigger.RERUN),)), Tally(succeeded=1, beside=1), {}),
        (runs((10, RETRYING, SCHEDULED)), Tally(lost=1), {Kind.LOST: 1}),
        (runs((7, SUCCEEDED, SCHEDULED), (10, SUCCEEDED, SCHEDULED)), Tally(succeeded=1), {Kind.PHANTOM: 1}),
        (runs((10, SUCCEEDED, SCHEDULED), live=((7, Place.RUNNING, SCHEDULED),)), Tally(succeeded=1), {Kind.PHANTOM: 1}),
        (runs((10, SUCCEEDED, SCHEDULED), (10, SUCCEEDED, SCHEDULED)), Tally(succeeded=1), {Kind.DOUBLE: 1}),
        (runs((10, FAILED, SCHEDULED), (10, SUCCEEDED, SCHEDULED)), Tally(succeeded=1), {Kind.DOUBLE: 1}),
        (runs((10, CANCELLED, SCHEDULED), (10, SUCCEEDED, REQUEUED)), Tally(succeeded=1), {Kind.DOUBLE: 1}),
        (runs((10, SUCCEEDED, SCHEDULED), (10, RETRYING, SCHEDULED)), Tally(lost=1), {Kind.BROKEN: 1, Kind.LOST: 1}),
        (runs((10, SUCCEEDED, SCHEDULED), live=((10, Place.RUNNING, SCHEDULED),)), Tally(waiting=1), {Kind.DOUBLE: 1}),
        (runs(live=((10, Place.DEAD, SCHEDULED),)), Tally(failed=1), {Kind.BROKEN: 1}),
        (runs((10, RETRYING, SCHEDULED), live=((10, Place.DEAD, SCHEDULED),)), Tally(failed=1), {Kind.BROKEN: 1}),
        (runs((10, SKIPPED, UPSTREAM), live=((10, Place.DEAD, REQUEUED),)), Tally(failed=1), {Kind.BROKEN: 1}),
        (runs((10, SUCCEEDED, SCHEDULED), live=((7, Place.DEAD, MANUAL),)), Tally(succeeded=1, beside=1), {Kind.BROKEN: 1}),
        (runs((10, SUCCEEDED, SCHEDULED), live=((7, Place.DEAD, SCHEDULED),)), Tally(succeeded=1), {Kind.BROKEN: 1, Kind.PHANTOM: 1}),
        (runs((7, FAILED, MANUAL), (10, SUCCEEDED, SCHEDULED), live=((7, Place.DEAD, MANUAL),)), Tally(succeeded=1, beside=1), {}),
    ],
)  # fmt: skip
def test_one_expected_time(found: JobRuns, tally: Tally, kinds: dict[Kind, int]) -> None:
    result = reconcile(job(), [10], found)
    tally.expected = 1
    assert (result.tally, result.kinds, result.missing) == (tally, kinds, [])
    assert tally.accounted + tally.lost == tally.expected


GAP = Gap(from_at=5, to_at=15, policy=MisfirePolicy.RUN_ONCE, grace_us=60 * S, limit=100, missed=1, ran=0)
LATER_GAP = msgspec.structs.replace(GAP, from_at=11)
LATE_S = (60 * S + LAG_BUDGET_US) // S


@pytest.mark.parametrize(
    ("clock", "now_s", "spans", "tally", "kinds"),
    [
        (None, LATE_S, (span(),), Tally(waiting=1), {}),
        (None, LATE_S + 1, (span(),), Tally(lost=1), {Kind.LOST: 1}),
        (ClockFacts(next_at=20), LATE_S + 1, (span(),), Tally(lost=1), {Kind.LOST: 1}),
        (ClockFacts(next_at=10), LATE_S, (span(),), Tally(waiting=1), {}),
        (ClockFacts(next_at=10), LATE_S + 1, (span(),), Tally(waiting=1), {Kind.UNPLANNED: 1}),
        (ClockFacts(next_at=None), LATE_S + 1, (span(),), Tally(lost=1), {Kind.LOST: 1}),
        (ClockFacts(next_at=20, gaps=(GAP,)), LATE_S + 1, (span(),), Tally(skipped=1, missed=1), {}),
        (ClockFacts(next_at=20, gaps=(GAP,)), LATE_S + 1, (span(misfire=Misfire(limit=7)),), Tally(lost=1), {Kind.LOST: 1}),
        (ClockFacts(next_at=20, gaps=(LATER_GAP,)), LATE_S + 1, (span(),), Tally(lost=1), {Kind.LOST: 1}),
        (ClockFacts(next_at=10), LATE_S + 1, (span(to_at=15), span(from_at=15, since=15)), Tally(lost=1), {Kind.LOST: 1}),
        (ClockFacts(next_at=10), LATE_S + 1, (span(to_at=15), span(from_at=15)), Tally(waiting=1), {Kind.UNPLANNED: 1}),
        (ClockFacts(next_at=10), LATE_S + 1, (span(to_at=15), span(paused=True, from_at=15)), Tally(lost=1), {Kind.LOST: 1}),
        (ClockFacts(next_at=10), LATE_S + 1, (span(to_at=15), span(deleted=True, from_at=15)), Tally(lost=1), {Kind.LOST: 1}),
        (None, LATE_S + 1, (span(OnceTiming(at=10), paused=True),), Tally(waiting=1), {Kind.UNPLANNED: 1}),
        (None, LATE_S + 1, (span(OnceTiming(at=10), paused=True, to_at=15), span(OnceTiming(at=10), paused=True, from_at=15)), Tally(waiting=1), {Kind.UNPLANNED: 1}),
        (None, LATE_S + 1, (span(OnceTiming(at=10), paused=True, to_at=15), span(OnceTiming(at=10), from_at=15)), Tally(lost=1), {Kind.LOST: 1}),
        (None, LATE_S + 1, (span(OnceTiming(at=10), paused=True, to_at=15), span(OnceTiming(at=30), paused=True, from_at=15)), Tally(lost=1), {Kind.LOST: 1}),
        (None, LATE_S + 1, (span(to_at=15), span(OnceTiming(at=10), paused=True, from_at=15)), Tally(waiting=1), {Kind.UNPLANNED: 1}),
        (None, LATE_S + 1, (span(OnceTiming(at=10)),), Tally(lost=1), {Kind.LOST: 1}),
        (None, LATE_S + 1, (span(misfire=Misfire(grace_us=HOUR_US)),), Tally(waiting=1), {}),
    ],
)  # fmt: skip
def test_an_expected_time_that_is_nowhere(
    clock: ClockFacts | None, now_s: int, spans: tuple[Span, ...], tally: Tally, kinds: dict[Kind, int]
) -> None:
    audited = job(*spans)
    result = reconcile(audited, [10], runs())
    assert result.missing == [10]
    judge_missing(audited, result, {} if clock is None else {RULE_KEY: clock}, now_s * S + 10)
    tally.expected = 1
    assert (result.tally, result.kinds) == (tally, kinds)


def test_a_parents_runs_of_the_schedule() -> None:
    found = natural_times(
        runs(
            (10, RETRYING, SCHEDULED),
            (20, FAILED, SCHEDULED),
            (20, SUCCEEDED, REQUEUED),
            (30, SUCCEEDED, MANUAL),
            (40, SUCCEEDED, Trigger.BACKFILL),
            (50, FAILED, UPSTREAM),
            live=(
                (10, Place.RUNNING, SCHEDULED),
                (50, Place.PLANNED, REQUEUED),
                (60, Place.WAITING, UPSTREAM),
            ),
        )
    )
    assert found == {10: False, 20: True, 50: True, 60: False}


def test_times_that_parents_bring_about() -> None:
    follows = AfterTiming(parents=(2, 3))
    old = MAX_LEAD_US
    child = job(
        span(follows, to_at=old + 100, version=1),
        span(AfterTiming(parents=(4,)), from_at=old + 100, version=2),
    )
    parents = {
        2: {5: True, old + 10: True, old + 20: False, old + 110: True},
        3: {old + 20: True, old + 30: False},
        4: {old + 10: True, old + 120: True},
    }
    duties, possible = followed_times(child, parents, 0, old + 1_000)
    assert duties == {
        5: Duty.MAY,  # a new job's edges begin with the lead
        old + 10: Duty.MUST,
        old + 20: Duty.MUST,
        old + 30: Duty.WAITS,
        old + 120: Duty.MUST,
    }
    assert old + 110 in possible
    gone = job(span(follows, to_at=old + 100), span(follows, from_at=old + 100, deleted=True))
    duties, _ = followed_times(gone, parents, 0, old + 1_000)
    assert set(duties.values()) == {Duty.MAY}


def test_what_became_of_times_that_parents_brought_about() -> None:
    child = job(span(AfterTiming(parents=(2,))))
    duties = {10: Duty.MUST, 20: Duty.MUST, 25: Duty.MUST, 30: Duty.WAITS, 40: Duty.MAY, 50: Duty.MUST}
    result = reconcile(child, sorted(duties), runs((50, SUCCEEDED, UPSTREAM)))
    judge_followed(child, result, duties, untold=[20, 25], overdue=[20])
    assert result.tally == Tally(expected=5, succeeded=1, waiting=3, lost=1)
    assert [(one.kind, one.scheduled_at) for one in result.findings] == [
        (Kind.LOST, 10),
        (Kind.UNPLANNED, 20),
    ]


def test_a_run_at_a_time_at_which_a_parent_had_one_is_no_phantom() -> None:
    found = runs((10, SUCCEEDED, UPSTREAM))
    assert reconcile(job(), [], found).kinds == {Kind.PHANTOM: 1}
    assert reconcile(job(), [], found, possible=[10]).kinds == {}


def test_parts_of_a_window_add_up_and_findings_are_bounded() -> None:
    whole = Reconciliation(tally=Tally(expected=1, lost=1))
    for at in range(MAX_FINDINGS + 5):
        whole.find(Kind.LOST, job(), at, "gone")
    other = Reconciliation(tally=Tally(expected=2, succeeded=1, waiting=1))
    other.find(Kind.DOUBLE, job(), 7, "twice")
    whole.add(other)
    assert whole.tally == Tally(expected=3, succeeded=1, waiting=1, lost=1)
    assert whole.kinds == {Kind.LOST: MAX_FINDINGS + 5, Kind.DOUBLE: 1}
    assert len(whole.findings) == MAX_FINDINGS
