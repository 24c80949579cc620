"""The verdict about a run whose history breaks off: dead letters have its end, or nobody has. Pure.

In a sound store an end is written together with what it leads to, so neither must happen.
"""

from hourhand.core.identity import format_job_id
from hourhand.core.lifecycle import State
from hourhand.core.run import RunView
from hourhand.core.why.facts import Cause, DeadFact, Evidence, RunFacts, Verdict, Word
from hourhand.core.why.known import REPORT_IT, attempts_of, error_of, is_forgotten, lost_with_job, origin
from hourhand.core.why.phrases import length


def judge_dead(facts: RunFacts, dead: DeadFact) -> Verdict:
    """It failed, by its dead letter; the line that says so is not in history."""
    run = facts.run
    error = (dead.error.splitlines() or [""])[0][:500] or "it does not say why"
    change = [f"once its cause is gone, send it back: hourhand dlq requeue {facts.run_id}"]
    if is_forgotten(facts, dead.failed_at):
        missing = f"its history is gone, since it is kept for {length(facts.keep_us)} only"
    else:
        missing = "its last line of history is missing. This must not happen"
        change.append(REPORT_IT)
    known = [Evidence(text="its nominal time", at=facts.at)] if run is None else origin(facts, run)
    return Verdict(
        word=Word.RAN,
        cause=Cause.FAILED,
        summary=f"it failed and is in the dead letters: {error}; {missing}",
        evidence=(
            *known,
            *([] if run is None else attempts_of(run)),
            Evidence(text=f"its dead letter, after {dead.tries} failures: {error}", at=dead.failed_at),
        ),
        change=tuple(change),
        state=State.FAILED,
        version=None if run is None else run.version,
        decided_at=dead.failed_at,
    )


def judge_vanished(facts: RunFacts, run: RunView) -> Verdict:
    """It was to be tried again, and is neither where such runs are nor among the dead."""
    last = run.attempts[-1]
    # a backfill passes over times with history, and a rerun wants a run that has ended
    instead = f"a run in its place: hourhand jobs run {format_job_id(facts.job_id)}"
    return Verdict(
        word=Word.LOST,
        cause=Cause.MISSING,
        summary=f"LOST: attempt {last.attempt} failed ({error_of(last)}), it was to be tried again, and is nowhere. "
        "This must not happen",
        evidence=(
            *origin(facts, run),
            *attempts_of(run),
            Evidence(text="there is no run for it: not planned, blocked, waiting, running or dead"),
            Evidence(text="nor an end of it in history", at=facts.now_at),
        ),
        change=(lost_with_job(facts) or instead, REPORT_IT),
        state=run.state,
        version=run.version,
    )
