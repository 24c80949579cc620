"""The verdict about a run that has ended: it ran, was skipped or cancelled, and what that was due to. Pure."""

from typing import Any

from hourhand.core.identity import format_job_id, parse_job_id
from hourhand.core.lifecycle import Reason, State
from hourhand.core.model import Overlap, Trigger
from hourhand.core.run import AttemptRow, RunView
from hourhand.core.why.facts import Cause, Evidence, Lateness, RunFacts, Verdict, Word
from hourhand.core.why.known import attempts_of, error_of, origin, slots_of, spec_of
from hourhand.core.why.lateness import WORTH_SPLITTING_US, lateness_of, slot_holder, span_of
from hourhand.core.why.phrases import length, listed

_SPENT = {
    "planning": "until a scheduler planned it",
    "slot": "waiting for a slot of the job",
    "queue": "until a worker took it",
    "worker": "until its worker started it",
}

_Told = tuple[Cause, str, tuple[str, ...], tuple[str, ...]]


def judge_ran(facts: RunFacts, run: RunView) -> Verdict:
    last = run.attempts[-1]
    lateness = lateness_of(facts)
    succeeded = run.state is State.SUCCEEDED
    count = f"attempt {len(run.attempts)}" if len(run.attempts) > 1 else "its first attempt"
    how = f"it ran and succeeded with {count}" if succeeded else f"it ran and failed: {error_of(last)}"
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
        evidence=(*origin(facts, run), *_late_evidence(facts, lateness), *attempts_of(run)),
        change=tuple(change),
        lateness=lateness,
        **_decided(run, last),
    )


def judge_unrun(facts: RunFacts, run: RunView) -> Verdict:
    """Skipped or cancelled, as the reason that was kept says."""
    last = run.attempts[-1]
    detail = last.detail or {}
    cause, summary, change, blocked_by = _reason(facts, run, detail)
    return Verdict(
        word=Word.SKIPPED if run.state is State.SKIPPED else Word.CANCELLED,
        cause=cause,
        summary=summary,
        evidence=(*origin(facts, run), *attempts_of(run)),
        change=change
        if facts.job is None
        else (*change, f"a run in its place: hourhand runs rerun {run.run_id}"),
        lateness=lateness_of(facts),
        blocked_by=blocked_by,
        **_decided(run, last),
    )


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
            return _not_followed(facts, detail)
        case Reason.EXPIRED.value:
            waited = tuple(map(str, detail.get("waited_for") or ()))
            named = [facts.parent(parse_job_id(one)) for one in waited]
            said = f"skipped, since it waited too long for {listed(named) if named else 'its parents'}"
            return Cause.EXPIRED, said, ("a longer wait of the job, or parents that end sooner",), waited
        case Reason.PAUSED.value:
            resume = f"resuming it before its time: hourhand jobs resume {format_job_id(run.job_id)}"
            return Cause.PAUSED, f"{verb}, since the job was paused{noted}", (resume,), ()
        case Reason.DELETED.value:
            return Cause.DELETED, f"{verb}, since the job was deleted", ("not deleting the job",), ()
        case Reason.ASKED.value if (next_one := _in_favour_of(facts, run)) is not None:
            policy = Overlap.CANCEL_RUNNING.value
            said = f"cancelled by the overlap policy {policy}, in favour of {next_one.run_id}, which was due"
            change = (
                "runs that end before the next is due",
                "another --overlap policy, or a higher --concurrency",
            )
            return Cause.OVERLAP, said, change, (next_one.run_id,)
        case Reason.ASKED.value:
            said = f"{verb}, since somebody asked for it{noted}"
            return Cause.ASKED, said, ("nobody asking for it",), ()
        case told:
            words = told or detail.get("message") or "its function said so"
            return Cause.FUNCTION, f"{verb}: {words}{noted}", ("what the function decides by",), ()


def _not_followed(facts: RunFacts, detail: dict[str, Any]) -> _Told:
    parent = parse_job_id(str(detail.get("parent")))
    said = f"skipped, since {facts.parent(parent)}, which it follows, ended as {detail.get('outcome')}"
    change = f"that one succeeding for this time; why it did not: hourhand why {facts.parent_run(parent)}"
    return Cause.UPSTREAM, said, (change,), (format_job_id(parent),)


def _in_favour_of(facts: RunFacts, run: RunView) -> RunView | None:
    """The scheduled run that fell due while this one ran: then the policy has cancelled it, whoever else has."""
    began_at, ended_at = run.attempts[-1].started_at, run.attempts[-1].finished_at
    if spec_of(facts, run).overlap is not Overlap.CANCEL_RUNNING or began_at is None:
        return None
    due = [one for one in facts.others if one.trigger is Trigger.SCHEDULED and one.scheduled_at > facts.at]
    due = [one for one in due if began_at < _first_due_at(one) <= ended_at]
    return min(due, key=_first_due_at, default=None)


def _first_due_at(run: RunView) -> int:
    return run.attempts[0].due_at if run.attempts else run.due_at


def _misfired(facts: RunFacts, run: RunView, policy: object) -> _Told:
    spec = spec_of(facts, run)
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
        f"{slots_of(spec_of(facts, run))} held by {listed(held_by)}"
        if held_by
        else "the job had no free slot"
    )
    if replaced_by:
        said += f", and {replaced_by} took its place in the queue"
    change = (
        "runs that end before the next is due",
        "a higher --concurrency, or --overlap queue, which lets up to 100 wait",
    )
    return Cause.OVERLAP, said, change, (*held_by, *([str(replaced_by)] if replaced_by else ()))


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
        holder = slot_holder(
            facts.others, first.due_at, first.started_at or 0, spec_of(facts, run).concurrency
        )
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
    return f"{words}, most of it {_SPENT[max(parts, key=lambda part: part[1])[0]]}" if parts else words


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


def _holds(run: RunView, at: int) -> bool:
    span = span_of(run)
    return span is not None and span[0] <= at < span[1]


def _last(run: RunView) -> int | None:
    return run.attempts[-1].finished_at if run.attempts else None
