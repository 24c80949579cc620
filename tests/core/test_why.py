"""Every verdict by the facts it is made from, without a store; and who is missing."""

from typing import Any

import pytest
from msgspec import structs

from hourhand.core.dag import Missing
from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import DAY_US, HOUR_US, parse_instant
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    CronTiming,
    OnceTiming,
    Overlap,
    ShellTarget,
    Trigger,
)
from hourhand.core.run import Progress, RunView
from hourhand.core.serving import Serves
from hourhand.core.skipping import Skip
from hourhand.core.why import (
    Cause,
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
from tests.core.why_facts import (
    AFTER,
    CREATED,
    DEAD,
    GAP,
    JOB,
    NOW,
    PARENT,
    TODAY,
    TOMORROW,
    WORKING,
    attempt,
    facts,
    run,
    skipped,
    version,
)

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
