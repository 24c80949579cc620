"""The verdict about a run that exists, wherever it is in its life. Pure."""

from typing import Any

from hourhand.core.identity import format_job_id
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import FINAL, Reason, State
from hourhand.core.model import JobSpec, PythonTarget, ShellTarget, Trigger
from hourhand.core.run import AttemptRow, RunView
from hourhand.core.why.facts import Cause, Evidence, Lateness, RunFacts, Verdict, Word
from hourhand.core.why.lateness import WORTH_SPLITTING_US, lateness_of, slot_holder, span_of
from hourhand.core.why.phrases import length, listed, local, zone_name
from hourhand.core.why.serving import Serving, obstacle

QUEUE_PATIENCE_US = SECOND_US  # a due run that nobody has taken for longer wants an explanation
_MOST_ATTEMPTS = 20  # that are told one by one

_BESIDE = {
    Trigger.MANUAL: "somebody asked for it by hand",
    Trigger.BACKFILL: "a backfill made it",
    Trigger.CATCH_UP: "the misfire policy catch_up made up for it after an outage",
    Trigger.REQUEUED: "somebody sent it back from the dead letters",
    Trigger.RERUN: "it repeats an earlier run",
    Trigger.UPSTREAM: "the jobs that it follows had this time",
}


def judge_run(facts: RunFacts, serving: Serving) -> Verdict:
    """What became of a run, or what it waits for."""
    run = facts.run
    assert run is not None
    match run.state:
        case State.SUCCEEDED | State.FAILED:
            return _ran(facts, run)
        case State.SKIPPED | State.CANCELLED:
            return _ended_unrun(facts, run)
        case State.RUNNING:
            return _running(facts, run)
        case State.RETRYING:
            return _retrying(facts, run)
        case State.PENDING:
            return _pending(facts, run, serving)


def _ran(facts: RunFacts, run: RunView) -> Verdict:
    last = run.attempts[-1]
    lateness = lateness_of(facts)
    succeeded = run.state is State.SUCCEEDED
    count = f"attempt {len(run.attempts)}" if len(run.attempts) > 1 else "its first attempt"
    how = f"it ran and succeeded with {count}" if succeeded else f"it ran and failed: {_error(last)}"
    late = "" if lateness is None or lateness.total_us <= WORTH_SPLITTING_US else _late_words(lateness)
    change = _sooner(lateness) if late else []
    if not succeeded:
        change.append(f"once its cause is gone, send it back: hourhand dlq requeue {run.run_id}")
    if not change:
        change.append("nothing: it ran on time")
    return Verdict(
        word=Word.RAN,
        cause=Cause.SUCCEEDED if succeeded else Cause.FAILED,
        summary=how + late,
        evidence=(*_origin(facts, run), *_late_evidence(facts, lateness), *_attempts(run)),
        change=tuple(change),
        lateness=lateness,
        **_decided(run, last),
    )


def _ended_unrun(facts: RunFacts, run: RunView) -> Verdict:
    """Skipped or cancelled, as the reason that was kept says."""
    last = run.attempts[-1]
    detail = last.detail or {}
    cause, summary, change, blocked_by = _reason(facts, run, detail)
    return Verdict(
        word=Word.SKIPPED if run.state is State.SKIPPED else Word.CANCELLED,
        cause=cause,
        summary=summary,
        evidence=(*_origin(facts, run), *_attempts(run)),
        change=change,
        lateness=lateness_of(facts),
        blocked_by=blocked_by,
        **_decided(run, last),
    )


_Told = tuple[Cause, str, tuple[str, ...], tuple[str, ...]]


def _reason(facts: RunFacts, run: RunView, detail: dict[str, Any]) -> _Told:
    verb = "skipped" if run.state is State.SKIPPED else "cancelled"
    policy, note = detail.get("policy"), detail.get("note")
    noted = f": {note}" if note else ""
    match detail.get("reason"):
        case Reason.MISFIRE.value:
            return _misfired(facts, run, policy)
        case Reason.OVERLAP.value:
            return _overlapped(facts, run, detail, verb)
        case Reason.UPSTREAM.value:
            parent, outcome = detail.get("parent"), detail.get("outcome")
            change = (
                f"the run of {parent} for this time succeeding; ask why it did not: hourhand why {parent}"
            )
            said = f"skipped, since {parent}, which it follows, ended as {outcome}"
            return Cause.UPSTREAM, said, (change,), (str(parent),)
        case Reason.EXPIRED.value:
            waited = tuple(map(str, detail.get("waited_for") or ()))
            said = f"skipped, since it waited too long for {listed(waited) if waited else 'its parents'}"
            return Cause.EXPIRED, said, ("a longer wait of the job, or parents that end sooner",), waited
        case Reason.PAUSED.value:
            resume = f"resuming it before its time: hourhand jobs resume {format_job_id(run.job_id)}"
            return Cause.PAUSED, f"{verb}, since the job was paused{noted}", (resume,), ()
        case Reason.DELETED.value:
            return Cause.DELETED, f"{verb}, since the job was deleted", ("not deleting the job",), ()
        case Reason.ASKED.value:
            said = f"{verb}, since somebody asked for it{noted}"
            again = f"running it now: hourhand jobs run {format_job_id(run.job_id)}"
            return Cause.ASKED, said, (again,), ()
        case told:
            words = told or detail.get("message") or "its function said so"
            return Cause.FUNCTION, f"{verb}: {words}{noted}", ("what the function decides by",), ()


def _misfired(facts: RunFacts, run: RunView, policy: object) -> _Told:
    spec = _spec(facts, run)
    grace = length(spec.misfire.grace_us)
    said = f"skipped by the misfire policy {policy}: nobody took it within its grace of {grace}"
    if policy == "run_once":
        said += ", and a newer time was due by then"
    change = (
        "enough workers for its pool at that time",
        f"a longer grace (--misfire-grace), or the policy catch_up: now {spec.misfire.policy} with {grace}",
    )
    return Cause.MISFIRE, said, change, ()


def _overlapped(facts: RunFacts, run: RunView, detail: dict[str, Any], verb: str) -> _Told:
    policy = detail.get("policy")
    held_by = tuple(map(str, detail.get("held_by") or ()))
    if not held_by:  # rows of older versions do not say so
        decided_at = run.attempts[-1].finished_at
        held_by = tuple(one.run_id for one in facts.others if _holds(one, decided_at))
    replaced_by = detail.get("replaced_by")
    said = f"{verb} by the overlap policy {policy}: "
    said += (
        f"{_slots(_spec(facts, run))} held by {listed(held_by)}" if held_by else "the job had no free slot"
    )
    if replaced_by:
        said += f", and {replaced_by} took its place in the queue"
    change = (
        "runs that end before the next is due",
        "a higher --concurrency, or --overlap queue, which lets up to 100 wait",
    )
    return Cause.OVERLAP, said, change, (*held_by, *([str(replaced_by)] if replaced_by else ()))


def _running(facts: RunFacts, run: RunView) -> Verdict:
    evidence = [*_origin(facts, run)]
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
        evidence=(*evidence, *_attempts(run)),
        change=(
            "its target's report" if reported else "its target's answer",
            f"ending it: hourhand runs cancel {run.run_id}",
        ),
        **_now(run),
    )


def _retrying(facts: RunFacts, run: RunView) -> Verdict:
    last = run.attempts[-1] if run.attempts else None
    zone = _zone(facts, run)
    unserved = _unserved(facts, run)
    wait = f"tries again at {local(run.due_at, zone)}"
    why = "" if last is None else f"; attempt {last.attempt} failed: {_error(last)}"
    change = [f"nothing: it goes on by itself, or end it: hourhand runs cancel {run.run_id}"]
    if unserved:
        change.insert(0, unserved)
    return Verdict(
        word=Word.WAITING,
        cause=Cause.UNSERVED if unserved else Cause.RETRY,
        summary=wait + why,
        evidence=(
            *_origin(facts, run),
            *_attempts(run),
            Evidence(text=f"failures so far: {run.tries} of {_spec(facts, run).retry.max + 1}"),
            Evidence(text="the next attempt", at=run.due_at),
        ),
        change=tuple(change),
        **_now(run),
    )


def _pending(facts: RunFacts, run: RunView, serving: Serving) -> Verdict:
    if run.skip_asked:
        return _to_be_skipped(facts, run)
    if run.waits_for:
        return _waits_for_parents(facts, run)
    if run.waits_for_slot:
        return _waits_for_slot(facts, run)
    if run.due_at > facts.now_at:
        return _not_due(facts, run, serving)
    return _queued(facts, run, serving)


def _to_be_skipped(facts: RunFacts, run: RunView) -> Verdict:
    note = "" if facts.skip is None or not facts.skip.note else f": {facts.skip.note}"
    asked = () if facts.skip is None else (Evidence(text="somebody asked for it", at=facts.skip.made_at),)
    return Verdict(
        word=Word.WAITING,
        cause=Cause.ASKED,
        summary=f"will be skipped when its time comes, since somebody asked for it{note}",
        evidence=(*_origin(facts, run), *asked),
        change=("taking the mark back before its time",),
        **_now(run),
    )


def _waits_for_parents(facts: RunFacts, run: RunView) -> Verdict:
    names = {fact.job_id: fact.label for fact in facts.parents}
    waits = [names.get(one, format_job_id(one)) for one in run.waits_for]
    until = () if run.wait_until is None else (Evidence(text="it waits no longer than", at=run.wait_until),)
    return Verdict(
        word=Word.WAITING,
        cause=Cause.PARENT,
        summary=f"waits for {listed(waits)}, which it follows",
        evidence=(*_origin(facts, run), *until),
        change=(f"their end; what keeps them: hourhand why {format_job_id(run.waits_for[0])}",),
        blocked_by=tuple(format_job_id(one) for one in run.waits_for),
        **_now(run),
    )


def _waits_for_slot(facts: RunFacts, run: RunView) -> Verdict:
    holders = [one for one in facts.others if one.began_at is not None or one.state is State.RETRYING]
    evidence = [*_origin(facts, run)]
    for one in holders[:_MOST_ATTEMPTS]:
        span = span_of(one)
        text = f"{one.run_id} holds a slot, {one.state}" + (f" on {one.worker}" if one.worker else "")
        evidence.append(Evidence(text=text, at=None if span is None else span[0]))
    ids = tuple(one.run_id for one in holders)
    held = f", held by {listed(ids)}" if ids else ""
    change = ["a run of the job ending", "a higher --concurrency"]
    if ids:
        change.append(f"ending what holds it: hourhand runs cancel {ids[0]}")
    return Verdict(
        word=Word.WAITING,
        cause=Cause.SLOT,
        summary=f"waits for {_slots(_spec(facts, run))}{held}",
        evidence=tuple(evidence),
        change=tuple(change),
        blocked_by=ids,
        **_now(run),
    )


def _not_due(facts: RunFacts, run: RunView, serving: Serving) -> Verdict:
    zone = _zone(facts, run)
    missing = obstacle(serving, _spec(facts, run))
    evidence = [*_origin(facts, run), Evidence(text="it is due", at=run.due_at)]
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
    spec = _spec(facts, run)
    missing = obstacle(serving, spec)
    evidence = [*_origin(facts, run), Evidence(text="it was due", at=run.due_at)]
    if serving.workers:
        evidence.append(Evidence(text=f"live workers: {listed(serving.names)}"))
    summary = f"due for {length(late_us)}, and "
    if missing is not None:
        cause, change = missing.cause, [missing.change]
        summary += missing.text
    else:
        cause, change = Cause.QUEUE, ["a worker with room"]
        summary += "no worker has taken it yet"
        if late_us > QUEUE_PATIENCE_US:
            change = [f"more workers for its pool: hourhand worker --pool {spec.pool}"]
            change.append("a higher --priority, where workers are full")
    return Verdict(
        word=Word.WAITING,
        cause=cause,
        summary=summary,
        evidence=tuple(evidence),
        change=tuple(change),
        **_now(run),
    )


def _unserved(facts: RunFacts, run: RunView) -> str | None:
    """What is missing, where workers took a run and found that they cannot run what it names."""
    last = run.attempts[-1] if run.attempts else None
    if last is None or run.tries or last.state is not State.RETRYING:
        return None
    match _spec(facts, run).target:
        case PythonTarget(function=function):
            return f"a worker that serves {function}: hourhand worker --import MODULE"
        case ShellTarget():
            return "a worker that may run commands: hourhand worker --allow-shell"
        case _:
            return None


def _origin(facts: RunFacts, run: RunView) -> list[Evidence]:
    """Why there is such a run at all, and under which version."""
    zone = _zone(facts, run)
    evidence = [Evidence(text=f"its nominal time, {local(facts.at, zone)} {zone}", at=facts.at)]
    if run.trigger in _BESIDE:
        evidence.append(Evidence(text=_BESIDE[run.trigger]))
    first_due_at = run.attempts[0].due_at if run.attempts else run.due_at
    spread_us = first_due_at - facts.at
    spec = _spec(facts, run)
    if run.trigger is Trigger.SCHEDULED and 0 < spread_us <= spec.jitter_us:
        evidence.append(Evidence(text=f"its jitter made it due {length(spread_us)} later", at=first_due_at))
    if facts.gap is not None:
        text = f"nobody planned from {local(facts.gap.gap.from_at, zone)} on, until then"
        evidence.append(Evidence(text=text, at=facts.gap.decided_at))
    return evidence


def _attempts(run: RunView) -> list[Evidence]:
    """Each attempt, and the end without one; of many the last."""
    rows = run.attempts[-_MOST_ATTEMPTS:]
    left_out = len(run.attempts) - len(rows)
    evidence = [Evidence(text=f"{left_out} earlier attempts are left out here")] if left_out else []
    return evidence + [Evidence(text=_attempt_words(row), at=row.finished_at) for row in rows]


def _attempt_words(row: AttemptRow) -> str:
    if row.started_at is None:
        return f"decided: {row.state.value.lower()}" + (f" by {row.worker}" if row.worker else "")
    took = length(max(0, row.finished_at - row.started_at))
    words = (
        f"attempt {row.attempt} on {row.worker or 'an unknown worker'} took {took}: {row.state.value.lower()}"
    )
    failed = row.state not in FINAL or row.state is State.FAILED
    return f"{words}, {_error(row)}" if failed else words


def _late_evidence(facts: RunFacts, lateness: Lateness | None) -> list[Evidence]:
    if lateness is None:
        return []
    evidence = [Evidence(text=f"it started {length(lateness.total_us)} after it was due")]
    parts = _parts(lateness)
    if parts:
        evidence.append(Evidence(text="of that: " + ", ".join(f"{name} {length(us)}" for name, us in parts)))
    run = facts.run
    if lateness.slot_us and run is not None:
        first = next(row for row in run.attempts if row.started_at is not None)
        holder = slot_holder(facts.others, first.due_at, first.started_at or 0, _spec(facts, run).concurrency)
        if holder is not None:
            evidence.append(Evidence(text=f"{holder.run_id} held the slot until then", at=_last(holder)))
    return evidence


def _parts(lateness: Lateness) -> list[tuple[str, int]]:
    parts = (
        ("planning", lateness.planning_us),
        ("slot", lateness.slot_us),
        ("queue", lateness.queue_us),
        ("worker", lateness.worker_us),
    )
    return [(name, us) for name, us in parts if us is not None and us >= 1_000]


def _late_words(lateness: Lateness) -> str:
    words = f", {length(lateness.total_us)} late"
    parts = _parts(lateness)
    return f"{words}, most of it {max(parts, key=lambda part: part[1])[0]}" if parts else words


def _sooner(lateness: Lateness | None) -> list[str]:
    """What would have made a late run start sooner."""
    parts = [] if lateness is None else _parts(lateness)
    if not parts:
        return ["more workers, or a higher --priority, so that it starts sooner"]
    match max(parts, key=lambda part: part[1])[0]:
        case "planning":
            return ["a scheduler that lives at its time, so that it is planned before it is due"]
        case "slot":
            return ["runs that end before the next is due, or a higher --concurrency"]
        case "queue":
            return ["more workers in its pool, or a higher --priority"]
        case _:
            return ["a worker with less on its hands: a lower worker.concurrency, or more processes"]


def _decided(run: RunView, row: AttemptRow) -> dict[str, Any]:
    decided = {"decided_at": row.finished_at, "decided_by": row.worker or None}
    return {"state": run.state, "version": row.version or run.version, **decided}


def _now(run: RunView) -> dict[str, Any]:
    return {"state": run.state, "version": run.version, "decided_by": run.worker or None}


def _spec(facts: RunFacts, run: RunView) -> JobSpec:
    """What the job was for this run: its own version, else the newest."""
    of_run = next((one for one in facts.versions if one.version == run.version), None)
    return (of_run or facts.versions[-1]).spec


def _zone(facts: RunFacts, run: RunView) -> str:
    return zone_name(_spec(facts, run).timing)


def _slots(spec: JobSpec) -> str:
    return "the job's only slot" if spec.concurrency == 1 else f"one of the job's {spec.concurrency} slots"


def _holds(run: RunView, at: int) -> bool:
    span = span_of(run)
    return span is not None and span[0] <= at < span[1]


def _last(run: RunView) -> int | None:
    return run.attempts[-1].finished_at if run.attempts else None


def _error(row: AttemptRow) -> str:
    detail = row.detail or {}
    return str(detail.get("error") or detail.get("reason") or "it does not say why").splitlines()[0][:500]
