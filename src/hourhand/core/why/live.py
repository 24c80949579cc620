"""The verdict about a run that has not ended: who has it, or what it waits for. Pure."""

from typing import Any

from hourhand.core.identity import format_job_id
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.lifecycle import State
from hourhand.core.model import JobSpec, PythonTarget, ShellTarget, Trigger
from hourhand.core.run import RunView
from hourhand.core.why.facts import Cause, Evidence, RunFacts, Verdict, Word
from hourhand.core.why.known import MOST_LISTED, attempts_of, error_of, origin, slots_of, spec_of, zone_of
from hourhand.core.why.lateness import span_of
from hourhand.core.why.phrases import length, listed, local
from hourhand.core.why.serving import Obstacle, Serving, for_target, obstacle

_PATIENCE_US = SECOND_US  # a run that nobody takes for longer wants more than a worker with room


def judge_running(facts: RunFacts, run: RunView) -> Verdict:
    evidence = [*origin(facts, run)]
    if run.began_at is not None:
        evidence.append(Evidence(text=f"attempt {run.fence} began", at=run.began_at))
    if run.progress is not None:
        far = "" if run.progress.fraction is None else f" {run.progress.fraction:.0%}"
        message = "" if run.progress.message is None else f" {run.progress.message}"
        evidence.append(Evidence(text=f"it told how far it is:{far}{message}", at=run.progress.noted_at))
    if run.deadline_at is not None:
        evidence.append(Evidence(text="it must have ended, or counts as timed out", at=run.deadline_at))
    if run.cancel_asked:
        evidence.append(Evidence(text="somebody asked for its cancellation"))
    reported = run.awaits_report
    where = "its target accepted it, and its report is awaited" if reported else f"running on {run.worker}"
    since = "" if run.began_at is None else f" for {length(max(0, facts.now_at - run.began_at))}"
    return Verdict(
        word=Word.RUNNING,
        cause=Cause.REPORT if reported else Cause.EXECUTING,
        summary=where + since,
        evidence=(*evidence, *attempts_of(run)),
        change=(
            "its target's report" if reported else "its target's answer",
            f"ending it: hourhand runs cancel {run.run_id}",
        ),
        **_now(run),
    )


def judge_retrying(facts: RunFacts, run: RunView) -> Verdict:
    last = run.attempts[-1] if run.attempts else None
    zone = zone_of(facts, run)
    wait = f"tries again at {local(run.due_at, zone)}"
    why = "" if last is None else f"; attempt {last.attempt} failed: {error_of(last)}"
    return Verdict(
        word=Word.WAITING,
        cause=Cause.RETRY,
        summary=wait + why,
        evidence=(
            *origin(facts, run),
            *attempts_of(run),
            Evidence(text=f"failures so far: {run.tries} of {spec_of(facts, run).retry.max + 1}"),
            Evidence(text="the next attempt", at=run.due_at),
        ),
        change=(f"nothing: it goes on by itself, or end it: hourhand runs cancel {run.run_id}",),
        **_now(run),
    )


def judge_pending(facts: RunFacts, run: RunView, serving: Serving) -> Verdict:
    if run.skip_asked:
        return _to_be_skipped(facts, run)
    if run.waits_for:
        return _waits_for_parents(facts, run)
    if run.waits_for_slot:
        return _waits_for_slot(facts, run)
    if run.due_at > facts.now_at:
        return _not_due(facts, run, serving)
    return _queued(facts, run, serving)


def judge_unserved(facts: RunFacts, run: RunView, serving: Serving) -> Verdict:
    """Workers took it and gave it back, since they cannot run what it names; it is no failure, and no try."""
    spec = spec_of(facts, run)
    missing = obstacle(serving, spec) or _could_not(serving, spec)
    return Verdict(
        word=Word.WAITING,
        cause=missing.cause,
        summary=f"due for {length(max(0, facts.now_at - run.due_at))}, and {missing.text}",
        evidence=(
            *origin(facts, run),
            *attempts_of(run),
            Evidence(text="it was due", at=run.due_at),
            *_live_workers(serving),
            Evidence(
                text="the last worker that took it gave it back; it is offered again", at=run.offered_at
            ),
        ),
        change=(missing.change, f"ending it: hourhand runs cancel {run.run_id}"),
        **_now(run),
    )


def _to_be_skipped(facts: RunFacts, run: RunView) -> Verdict:
    note = "" if facts.skip is None or not facts.skip.note else f": {facts.skip.note}"
    asked = () if facts.skip is None else (Evidence(text="somebody asked for it", at=facts.skip.made_at),)
    return Verdict(
        word=Word.WAITING,
        cause=Cause.ASKED,
        summary=f"will be skipped when its time comes, since somebody asked for it{note}",
        evidence=(*origin(facts, run), *asked),
        change=(
            f"letting it run: hourhand jobs skip {format_job_id(run.job_id)} {format_instant(facts.at)} --undo",
        ),
        **_now(run),
    )


def _waits_for_parents(facts: RunFacts, run: RunView) -> Verdict:
    waits = [facts.parent(one) for one in run.waits_for]
    until = () if run.wait_until is None else (Evidence(text="it waits no longer than", at=run.wait_until),)
    return Verdict(
        word=Word.WAITING,
        cause=Cause.PARENT,
        summary=f"waits for {listed(waits)}, which it follows",
        evidence=(*origin(facts, run), *until),
        change=(f"their end; what keeps them: hourhand why {facts.parent_run(run.waits_for[0])}",),
        blocked_by=tuple(format_job_id(one) for one in run.waits_for),
        **_now(run),
    )


def _waits_for_slot(facts: RunFacts, run: RunView) -> Verdict:
    holders = [one for one in facts.others if _has_slot(one)]
    evidence = [*origin(facts, run)]
    for one in holders[:MOST_LISTED]:
        span = span_of(one)
        text = f"{one.run_id} holds a slot, {one.state}" + (f" on {one.worker}" if one.worker else "")
        evidence.append(Evidence(text=text, at=None if span is None else span[0]))
    ahead = sum(one.waits_for_slot and _turn(one) < _turn(run) for one in facts.others)
    if ahead:
        evidence.append(Evidence(text=f"runs of the job that wait before it: {ahead}"))
    ids = tuple(one.run_id for one in holders)
    held = f", held by {listed(ids)}" if ids else ""
    change = ["a run of the job ending", "a higher --concurrency"]
    if ids:
        change.append(f"ending what holds it: hourhand runs cancel {ids[0]}")
    return Verdict(
        word=Word.WAITING,
        cause=Cause.SLOT,
        summary=f"waits for {slots_of(spec_of(facts, run))}{held}",
        evidence=tuple(evidence),
        change=tuple(change),
        blocked_by=ids,
        **_now(run),
    )


def _not_due(facts: RunFacts, run: RunView, serving: Serving) -> Verdict:
    zone = zone_of(facts, run)
    missing = obstacle(serving, spec_of(facts, run))
    evidence = [*origin(facts, run), Evidence(text="it is due", at=run.due_at)]
    if missing is not None:
        evidence.append(Evidence(text=missing.text))
    return Verdict(
        word=Word.WAITING,
        cause=Cause.NOT_DUE,
        summary=f"planned; due in {length(run.due_at - facts.now_at)}, at {local(run.due_at, zone)}"
        + (f"; but {missing.text}" if missing else ""),
        evidence=tuple(evidence),
        change=("its time coming", *((missing.change,) if missing else ())),
        **_now(run),
    )


def _queued(facts: RunFacts, run: RunView, serving: Serving) -> Verdict:
    """Due, and nobody has it in hand."""
    late_us = facts.now_at - run.due_at
    spec = spec_of(facts, run)
    missing = obstacle(serving, spec)
    evidence = [*origin(facts, run), Evidence(text="it was due", at=run.due_at), *_live_workers(serving)]
    summary = f"due for {length(late_us)}, and "
    if missing is not None:
        cause, change = missing.cause, [missing.change]
        summary += missing.text
    else:
        cause, change = Cause.QUEUE, ["a worker with room"]
        summary += "no worker has taken it yet"
        if late_us > _PATIENCE_US:
            more = "up --concurrency N" if serving.alone else f"worker --pool {spec.pool}"
            change = [f"more room for its pool: hourhand {more}"]
            change.append("a higher --priority, where workers are full")
    return Verdict(
        word=Word.WAITING,
        cause=cause,
        summary=summary,
        evidence=tuple(evidence),
        change=tuple(change),
        **_now(run),
    )


def _could_not(serving: Serving, spec: JobSpec) -> Obstacle:
    """What may be missing, where those who live say that they can run such a job."""
    match spec.target:
        case PythonTarget(function=function):
            lacks = f"has no function {function}, or no thread left to run it on"
        case ShellTarget():
            lacks = "may not run commands, or has no room for another process"
        case _:
            lacks = "could not run it"
    text = f"the last worker that took it {lacks}"
    return Obstacle(cause=Cause.UNSERVED, text=text, change=for_target(serving, spec))


def _live_workers(serving: Serving) -> list[Evidence]:
    return [Evidence(text=f"live workers: {listed(serving.names)}")] if serving.workers else []


def _turn(run: RunView) -> tuple[bool, int]:
    """Who gets the next free slot: scheduled runs in their order, the others behind them."""
    return run.trigger is not Trigger.SCHEDULED, run.scheduled_at


def _has_slot(run: RunView) -> bool:
    return run.began_at is not None or run.state is State.RETRYING or run.offered_at is not None


def _now(run: RunView) -> dict[str, Any]:
    return {"state": run.state, "version": run.version, "decided_by": run.worker or None}
