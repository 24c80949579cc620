"""Every verdict by the facts it is made from, without a store; lateness and its parts; who is missing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hourhand.core.dag import Missing
from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US, format_instant, parse_instant
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    FOREVER,
    AfterTiming,
    CronTiming,
    Job,
    JobSpec,
    MisfirePolicy,
    OnceTiming,
    Overlap,
    PythonTarget,
    ShellTarget,
    Timing,
    Trigger,
    Version,
)
from hourhand.core.plan import Gap
from hourhand.core.run import AttemptRow, Progress, RunView
from hourhand.core.serving import Serves
from hourhand.core.skipping import Skip
from hourhand.core.why import (
    Cause,
    DeadFact,
    KeptGap,
    LiveWorker,
    ParentFact,
    RunFacts,
    Serving,
    Verdict,
    Word,
    judge,
    nearest_times,
)

NOW = parse_instant("2026-11-16T12:00:00Z")
CREATED = NOW - 10 * DAY_US
KEEP = 30 * DAY_US
JOB = 77
DAILY = CronTiming(expression="0 9 * * *")
TODAY = parse_instant("2026-11-16T09:00:00Z")
TOMORROW = TODAY + DAY_US
WORKING = Serving(workers=(LiveWorker(name="w1"),), schedulers=("s1",), horizon_us=60 * SECOND_US)
PARENT = ParentFact(job_id=5, name="load", since_at=CREATED)


def spec_(timing: Timing = DAILY, **fields: Any) -> JobSpec:
    return JobSpec(timing=timing, target=fields.pop("target", PythonTarget(function="app:run")), **fields)


def version(number: int = 1, *, timing: Timing = DAILY, **fields: Any) -> Version:
    known = {"paused", "note", "from_at", "until", "to_at", "deleted"}
    own = {name: fields.pop(name) for name in known & fields.keys()}
    defaults: dict[str, Any] = {
        "paused": False,
        "note": None,
        "from_at": CREATED,
        "until": FOREVER,
        "to_at": None,
    }
    return Version(job_id=JOB, version=number, spec=spec_(timing, **fields), **(defaults | own))


def run(state: State, *attempts: AttemptRow, **fields: Any) -> RunView:
    defaults: dict[str, Any] = {
        "job_id": JOB,
        "scheduled_at": TODAY,
        "tenant": "default",
        "state": state,
        "trigger": Trigger.SCHEDULED,
        "due_at": TODAY,
        "tries": 0,
        "fence": len(attempts),
        "version": 1,
        "worker": "w1",
        "attempts": attempts,
    }
    return RunView(**(defaults | fields))


def attempt(
    state: State = State.SUCCEEDED,
    *,
    late_s: float | None = 0,
    took_s: float = 1,
    number: int = 1,
    **detail: Any,
) -> AttemptRow:
    started_at = None if late_s is None else TODAY + round(late_s * SECOND_US)
    return AttemptRow(
        attempt=number,
        state=state,
        due_at=TODAY,
        started_at=started_at,
        finished_at=(started_at or TODAY) + round(took_s * SECOND_US),
        worker=None if late_s is None else "w1",
        version=1,
        detail=detail or None,
    )


def facts(at: int = TODAY, found: RunView | None = None, *versions: Version, **fields: Any) -> RunFacts:
    versions = versions or (version(),)
    last = versions[-1]
    job = Job(
        id=JOB, tenant="default", spec=last.spec, since=last.from_at, created_at=CREATED, updated_at=CREATED
    )
    defaults: dict[str, Any] = {"job": None if last.deleted else job, "unplanned_from": TOMORROW}
    return RunFacts(
        job_id=JOB, at=at, now_at=NOW, keep_us=KEEP, versions=versions, run=found, **(defaults | fields)
    )


def skipped(**detail: Any) -> RunView:
    return run(State.SKIPPED, attempt(State.SKIPPED, late_s=None, **detail))


GAP = KeptGap(
    gap=Gap(
        from_at=TODAY - DAY_US,
        to_at=TODAY,
        policy=MisfirePolicy.RUN_ONCE,
        grace_us=60 * SECOND_US,
        limit=100,
        missed=2,
        ran=1,
    ),
    decided_at=TODAY + HOUR_US,
)
DEAD = DeadFact(failed_at=TODAY + HOUR_US, tries=3, error="gave up\nat line 1")
AFTER = version(timing=AfterTiming(parents=(5,)))

TABLE: list[tuple[str, RunFacts, Word, Cause, str]] = [
    ("on time", facts(TODAY, run(State.SUCCEEDED, attempt())), Word.RAN, Cause.SUCCEEDED, "first attempt"),
    (
        "second attempt",
        facts(TODAY, run(State.SUCCEEDED, attempt(State.RETRYING, error="refused"), attempt(number=2))),
        Word.RAN,
        Cause.SUCCEEDED,
        "attempt 2",
    ),
    (
        "failed",
        facts(TODAY, run(State.FAILED, attempt(State.FAILED, error="no disk"))),
        Word.RAN,
        Cause.FAILED,
        "dlq requeue",
    ),
    (
        "misfire",
        facts(TODAY, skipped(reason="misfire", policy="skip")),
        Word.SKIPPED,
        Cause.MISFIRE,
        "grace of 1m",
    ),
    (
        "overlap",
        facts(TODAY, skipped(reason="overlap", policy="skip", held_by=["J-1@1"])),
        Word.SKIPPED,
        Cause.OVERLAP,
        "J-1@1",
    ),
    (
        "upstream",
        facts(
            TODAY, skipped(reason="upstream", parent=format_job_id(5), outcome="FAILED"), parents=(PARENT,)
        ),
        Word.SKIPPED,
        Cause.UPSTREAM,
        f"since load ({format_job_id(5)}), which it follows, ended as FAILED\nits nominal time",
    ),
    (
        "expired",
        facts(TODAY, skipped(reason="expired", waited_for=[format_job_id(5)])),
        Word.SKIPPED,
        Cause.EXPIRED,
        f"too long for {format_job_id(5)}",
    ),
    (
        "cancelled for the next",
        facts(
            TODAY,
            run(State.CANCELLED, attempt(State.CANCELLED, reason="asked for")),
            version(overlap=Overlap.CANCEL_RUNNING),
            others=(run(State.RUNNING, scheduled_at=TODAY + 2, due_at=TODAY + 2, began_at=NOW),),
        ),
        Word.CANCELLED,
        Cause.OVERLAP,
        f"cancel_running, in favour of {format_run_id(JOB, TODAY + 2)}",
    ),
    (
        "cancelled by somebody, with that policy",
        facts(
            TODAY,
            run(State.CANCELLED, attempt(State.CANCELLED, reason="asked for")),
            version(overlap=Overlap.CANCEL_RUNNING),
            others=(run(State.PENDING, scheduled_at=TODAY + DAY_US, due_at=TODAY + DAY_US),),
        ),
        Word.CANCELLED,
        Cause.ASKED,
        "somebody asked for it",
    ),
    ("paused once", facts(TODAY, skipped(reason="paused", note="INC")), Word.SKIPPED, Cause.PAUSED, "INC"),
    (
        "asked for",
        facts(TODAY, skipped(reason="asked for", note="holiday")),
        Word.SKIPPED,
        Cause.ASKED,
        "holiday",
    ),
    ("function", facts(TODAY, skipped(reason="no orders")), Word.SKIPPED, Cause.FUNCTION, "no orders"),
    (
        "deleted",
        facts(TODAY, run(State.CANCELLED, attempt(State.CANCELLED, late_s=None, reason="job deleted"))),
        Word.CANCELLED,
        Cause.DELETED,
        "deleted",
    ),
    (
        "running",
        facts(
            TODAY,
            run(
                State.RUNNING,
                began_at=TODAY,
                deadline_at=NOW,
                progress=Progress(fraction=0.4, message="loading", noted_at=NOW),
            ),
        ),
        Word.RUNNING,
        Cause.EXECUTING,
        "40% loading",
    ),
    (
        "accepted",
        facts(TODAY, run(State.RUNNING, began_at=TODAY, awaits_report=True, worker=None)),
        Word.RUNNING,
        Cause.REPORT,
        "report is awaited",
    ),
    (
        "retrying",
        facts(
            TODAY,
            run(State.RETRYING, attempt(State.RETRYING, error="refused"), tries=1, due_at=NOW + HOUR_US),
            live=True,
        ),
        Word.WAITING,
        Cause.RETRY,
        "refused",
    ),
    (
        "to be tried again, and nowhere",
        facts(TODAY, run(State.RETRYING, attempt(State.RETRYING, error="refused"), tries=1)),
        Word.LOST,
        Cause.MISSING,
        "LOST: attempt 1 failed (refused)",
    ),
    (
        "to be tried again, and dead",
        facts(TODAY, run(State.RETRYING, attempt(State.RETRYING, error="refused"), tries=1), dead=DEAD),
        Word.RAN,
        Cause.FAILED,
        "in the dead letters: gave up; its last line of history is missing",
    ),
    (
        "dead without any history",
        facts(TODAY, dead=DEAD),
        Word.RAN,
        Cause.FAILED,
        "its last line of history is missing",
    ),
    (
        "dead for longer than history is kept",
        facts(
            TODAY - 40 * DAY_US,
            None,
            version(from_at=0),
            dead=structs.replace(DEAD, failed_at=TODAY - 40 * DAY_US),
        ),
        Word.RAN,
        Cause.FAILED,
        "kept for 30d only",
    ),
    (
        "dead once, and sent back",
        facts(TODAY, run(State.RUNNING, began_at=TODAY), dead=DEAD, live=True),
        Word.RUNNING,
        Cause.EXECUTING,
        "running on w1",
    ),
    (
        "unserved",
        facts(TODAY, run(State.PENDING, offered_at=NOW)),
        Word.WAITING,
        Cause.UNSERVED,
        "no function app:run, or no thread left",
    ),
    (
        "failed once, and now unserved",
        facts(TODAY, run(State.RETRYING, attempt(State.RETRYING, error="refused"), tries=1, offered_at=NOW)),
        Word.WAITING,
        Cause.UNSERVED,
        "it is offered again",
    ),
    (
        "behind one that is unserved",
        facts(
            TODAY,
            run(State.PENDING, waits_for_slot=True),
            others=(run(State.PENDING, scheduled_at=TODAY - DAY_US, offered_at=NOW),),
        ),
        Word.WAITING,
        Cause.SLOT,
        f"held by {format_run_id(JOB, TODAY - DAY_US)}",
    ),
    (
        "slot",
        facts(
            TODAY,
            run(State.PENDING, waits_for_slot=True),
            others=(
                run(State.RUNNING, scheduled_at=TODAY - DAY_US, began_at=TODAY - DAY_US),
                run(State.PENDING, scheduled_at=TODAY - 1, waits_for_slot=True),
                run(State.PENDING, scheduled_at=TODAY - 2, waits_for_slot=True, trigger=Trigger.MANUAL),
            ),
        ),
        Word.WAITING,
        Cause.SLOT,
        f"{format_run_id(JOB, TODAY - DAY_US)} holds a slot, RUNNING on w1\nruns of the job that wait before it: 1",
    ),
    (
        "parents",
        facts(TODAY, run(State.PENDING, waits_for=(5,), wait_until=NOW), AFTER, parents=(PARENT,)),
        Word.WAITING,
        Cause.PARENT,
        "waits for load",
    ),
    (
        "to be skipped",
        facts(
            TODAY,
            run(State.PENDING, skip_asked=True),
            skip=Skip(job_id=JOB, scheduled_at=TODAY, note="holiday", made_at=CREATED),
        ),
        Word.WAITING,
        Cause.ASKED,
        "holiday",
    ),
    ("queue", facts(TODAY, run(State.PENDING)), Word.WAITING, Cause.QUEUE, "more room"),
    (
        "planned",
        facts(TODAY, run(State.PENDING, due_at=NOW + HOUR_US)),
        Word.WAITING,
        Cause.NOT_DUE,
        "due in 1h",
    ),
    ("to come", facts(TOMORROW), Word.WAITING, Cause.NOT_DUE, "to come, in 21h"),
    (
        "not planned",
        facts(TODAY, unplanned_from=TODAY),
        Word.WAITING,
        Cause.NOT_PLANNED,
        "no scheduler has planned",
    ),
    ("missed", facts(TODAY, gap=GAP), Word.SKIPPED, Cause.MISFIRE, "of 2 missed times 1 ran"),
    (
        "was paused",
        facts(TODAY, None, version(paused=True, note="INC")),
        Word.NOT_EXPECTED,
        Cause.PAUSED,
        "INC",
    ),
    (
        "is paused",
        facts(TOMORROW, None, version(paused=True, note="INC")),
        Word.WAITING,
        Cause.PAUSED,
        "jobs resume",
    ),
    ("another time", facts(TODAY + HOUR_US), Word.NOT_EXPECTED, Cause.NO_SUCH_TIME, "at 09:00"),
    (
        "once",
        facts(TODAY, None, version(timing=OnceTiming(at=NOW))),
        Word.NOT_EXPECTED,
        Cause.NO_SUCH_TIME,
        "once",
    ),
    ("before", facts(CREATED - DAY_US), Word.NOT_EXPECTED, Cause.BEFORE_CREATION, "did not exist"),
    (
        "starts_at",
        facts(TODAY, None, version(starts_at=NOW)),
        Word.NOT_EXPECTED,
        Cause.BEFORE_START,
        "starts_at",
    ),
    (
        "max_runs",
        facts(TODAY, None, version(until=TODAY - 1)),
        Word.NOT_EXPECTED,
        Cause.AFTER_END,
        "max_runs",
    ),
    (
        "ends_at",
        facts(TODAY, None, version(until=TODAY - 1, ends_at=TODAY - 1)),
        Word.NOT_EXPECTED,
        Cause.AFTER_END,
        "by its ends_at",
    ),
    (
        "gone",
        facts(TODAY, None, version(to_at=TODAY - 1), version(2, from_at=TODAY - 1, deleted=True)),
        Word.NOT_EXPECTED,
        Cause.DELETED,
        "was deleted",
    ),
    (
        "parent to come",
        facts(TODAY, None, AFTER, parents=(PARENT,), unplanned_from=None),
        Word.WAITING,
        Cause.PARENT,
        "has not ended",
    ),
    (
        "parent without it",
        facts(
            TODAY,
            None,
            AFTER,
            parents=(ParentFact(job_id=5, name="load", since_at=CREATED, outcome=Missing.MISSING),),
        ),
        Word.NOT_EXPECTED,
        Cause.NO_SUCH_TIME,
        "will have none",
    ),
    ("forgotten", facts(TODAY - 40 * DAY_US, None, version(from_at=0)), Word.UNKNOWN, Cause.RETENTION, "30d"),
    (
        "lost by a deleted job",
        facts(TODAY, None, version(to_at=NOW), version(2, from_at=NOW, deleted=True), unplanned_from=None),
        Word.LOST,
        Cause.MISSING,
        "the job was deleted: create it again",
    ),
    ("lost", facts(TODAY), Word.LOST, Cause.MISSING, "LOST"),
    (
        "lost by an earlier version",
        facts(TODAY, None, version(to_at=NOW), version(2, from_at=NOW, paused=True), unplanned_from=None),
        Word.LOST,
        Cause.MISSING,
        "LOST",
    ),
]


def told(verdict: Verdict) -> str:
    return "\n".join([verdict.summary, *(one.text for one in verdict.evidence), *verdict.change])


@pytest.mark.parametrize(
    ("known", "word", "cause", "words"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_verdict_by_its_facts(known: RunFacts, word: Word, cause: Cause, words: str) -> None:
    verdict = judge(known, WORKING)
    assert (verdict.word, verdict.cause) == (word, cause)
    assert words in told(verdict)
    assert all(verdict.change)
    assert verdict.evidence
    assert "\n" not in verdict.summary


@pytest.mark.parametrize("gap", [None, GAP])
@pytest.mark.parametrize("found", [None, run(State.RETRYING, attempt(State.RETRYING))])
def test_nothing_that_needs_the_job_is_advised_for_a_deleted_one(
    gap: KeptGap | None, found: RunView | None
) -> None:
    versions = (version(to_at=NOW), version(2, from_at=NOW, deleted=True))
    verdict = judge(facts(TODAY, found, *versions, unplanned_from=None, gap=gap), WORKING)
    assert not any("hourhand " in one for one in verdict.change)
    kept = judge(facts(TODAY, found, gap=gap), WORKING)
    assert any("hourhand backfill create" in one or "hourhand jobs run" in one for one in kept.change)


def test_attempts_that_never_began_are_counted() -> None:
    ran = run(State.SUCCEEDED, attempt(late_s=600, number=4))
    assert "workers took it 3 times before and gave it back unstarted" in told(
        judge(facts(TODAY, ran), WORKING)
    )


def test_the_table_meets_every_word_and_cause() -> None:
    assert {row[2] for row in TABLE} == set(Word)
    assert set(Cause) - {row[3] for row in TABLE} == {Cause.NO_WORKER, Cause.DST}  # below


@pytest.mark.parametrize(
    ("serves", "target", "change"),
    [
        (Serves(pools=("a", "b")), None, "HOURHAND_WORKER_POOLS=a,b,default hourhand up"),
        (Serves(pools=("default",), functions=()), None, "hourhand up --import app"),
        (Serves(pools=("default",)), ShellTarget(argv=("true",)), "hourhand up --allow-shell"),
        (Serves(pools=("default",)), None, "hourhand up --concurrency N"),
    ],
)
def test_where_one_process_does_it_all_no_worker_is_asked_for(
    serves: Serves, target: ShellTarget | None, change: str
) -> None:
    spec = {} if target is None else {"target": target}
    known = facts(TODAY, run(State.PENDING), version(**spec))
    verdict = judge(known, Serving(workers=(LiveWorker(name="up-1", serves=serves),), alone=True))
    assert change in told(verdict)
    assert "hourhand worker" not in told(verdict)


@pytest.mark.parametrize(
    ("workers", "spec", "cause", "words"),
    [
        ((), {}, Cause.NO_WORKER, "no worker lives"),
        ((Serves(pools=("a", "b")),), {}, Cause.NO_WORKER, "they serve a and b"),
        ((Serves(pools=("default",), functions=()),), {}, Cause.UNSERVED, "has the function app:run"),
        (
            (Serves(pools=("default",)),),
            {"target": ShellTarget(argv=("true",))},
            Cause.UNSERVED,
            "may run commands",
        ),
        ((Serves(pools=("default",), functions=("app:run",)),), {}, Cause.QUEUE, "no worker has taken it"),
        ((Serves(pools=("other",)), None), {}, Cause.QUEUE, "no worker has taken it"),  # one does not say
    ],
)
def test_who_is_missing(
    workers: tuple[Serves | None, ...], spec: dict[str, Any], cause: Cause, words: str
) -> None:
    serving = Serving(workers=tuple(LiveWorker(name="w", serves=one) for one in workers))
    verdict = judge(facts(TODAY, run(State.PENDING), version(**spec)), serving)
    assert verdict.cause is cause
    assert words in verdict.summary


@pytest.mark.parametrize(
    ("gap", "expression", "at", "words"),
    [
        ("skip", "30 2 * * *", "2027-03-28T01:30:00Z", "dropped by DST: 02:30 does not exist that day"),
        ("after", "30 2 * * *", "2027-03-28T01:30:00Z", "moved by DST: 02:30 does not exist that day"),
        ("after", "30 2 * * *", "2026-10-25T01:30:00Z", "the second pass of 02:30 does not fire"),
    ],
)
def test_what_dst_did_to_a_wall_time(gap: str, expression: str, at: str, words: str) -> None:
    timing = CronTiming(expression=expression, tz="Europe/Berlin", gap=gap)
    verdict = judge(facts(parse_instant(at), None, version(timing=timing, from_at=0)), WORKING)
    assert (verdict.word, verdict.cause) == (Word.NOT_EXPECTED, Cause.DST)
    assert words in verdict.summary


def test_a_parent_that_ended_before_it_was_followed_or_alone_loses_nothing() -> None:
    for fact in (
        ParentFact(job_id=5, name="", since_at=TODAY, outcome=State.CANCELLED, ended_at=TODAY - 1),
        ParentFact(
            job_id=5,
            name="",
            since_at=CREATED,
            outcome=State.SUCCEEDED,
            ended_at=TODAY,
            trigger=Trigger.BACKFILL,
        ),
    ):
        assert judge(facts(TODAY, None, AFTER, parents=(fact,)), WORKING).word is Word.NOT_EXPECTED
    lost = ParentFact(
        job_id=5,
        name="",
        since_at=CREATED,
        outcome=State.SUCCEEDED,
        ended_at=TODAY,
        trigger=Trigger.SCHEDULED,
    )
    assert judge(facts(TODAY, None, AFTER, parents=(lost,)), WORKING).word is Word.LOST


def test_nearest_times_go_over_versions_and_pauses() -> None:
    versions = (
        version(to_at=TODAY - 1),
        version(2, from_at=TODAY - 1, to_at=TODAY + 3 * DAY_US, paused=True),
        version(3, from_at=TODAY + 3 * DAY_US, timing=CronTiming(expression="30 9 * * *")),
    )
    assert nearest_times(versions, TODAY + HOUR_US) == (TODAY - DAY_US, TODAY + 3 * DAY_US + HOUR_US // 2)


# --- lateness


def late_run(late_s: float, claimed_s: float | None) -> RunView:
    detail = {} if claimed_s is None else {"claimed_at": format_instant(TODAY + round(claimed_s * SECOND_US))}
    return run(State.SUCCEEDED, attempt(late_s=late_s, **detail))


def other(from_s: float, to_s: float) -> RunView:
    row = attempt(late_s=from_s, took_s=to_s - from_s)
    return run(State.SUCCEEDED, row, scheduled_at=TODAY - DAY_US)


@pytest.mark.parametrize(
    ("late_s", "claimed_s", "fields", "parts_s"),
    [
        (0.05, 0.01, {}, (None, None, None, None)),  # not worth it
        (5, None, {}, (None, None, None, None)),  # not measured
        (5, -1, {}, (0, 0, 0, 5)),  # taken ahead of time
        (5, 4, {}, (0, 0, 4, 1)),
        (5, 4, {"others": (other(-10, 3),)}, (0, 3, 1, 1)),
        (5, 4, {"others": (other(-10, -5),)}, (0, 0, 4, 1)),  # was over by then
        (3700, 3650, {"gap": GAP}, (3600, 0, 50, 50)),
        (3700, 3650, {"gap": GAP, "others": (other(-10, 3620),)}, (3600, 20, 30, 50)),
    ],
)
def test_where_the_time_went(
    late_s: float, claimed_s: float | None, fields: dict[str, Any], parts_s: tuple[float | None, ...]
) -> None:
    lateness = judge(facts(TODAY, late_run(late_s, claimed_s), **fields), WORKING).lateness
    assert lateness is not None
    parts = (lateness.planning_us, lateness.slot_us, lateness.queue_us, lateness.worker_us)
    assert parts == tuple(None if part is None else part * SECOND_US for part in parts_s)


@given(
    late=st.integers(101, 7_200_000),
    claimed=st.integers(-2_000, 8_000_000),
    held_to=st.integers(-1_000, 8_000_000),
    outage=st.booleans(),
)
def test_parts_are_never_negative_and_add_up(late: int, claimed: int, held_to: int, outage: bool) -> None:
    known = facts(
        TODAY,
        late_run(late / 1_000, claimed / 1_000),
        gap=GAP if outage else None,
        others=(other(-2, held_to / 1_000),),
    )
    lateness = judge(known, WORKING).lateness
    assert lateness is not None
    parts = (lateness.planning_us, lateness.slot_us, lateness.queue_us, lateness.worker_us)
    assert all(part is not None and part >= 0 for part in parts)
    assert sum(part or 0 for part in parts) == lateness.total_us
