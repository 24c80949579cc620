"""Why a nominal time of a job ran, waits, was skipped or is none: facts in, a verdict with its evidence out. Pure."""

from hourhand.core.lifecycle import State
from hourhand.core.why.ended import judge_ran, judge_unrun
from hourhand.core.why.facts import (
    Cause,
    DeadFact,
    Evidence,
    KeptGap,
    Lateness,
    ParentFact,
    RunFacts,
    Verdict,
    Word,
)
from hourhand.core.why.gone import judge_dead, judge_vanished
from hourhand.core.why.lateness import CLAIMED_AT, WORTH_SPLITTING_US
from hourhand.core.why.live import judge_pending, judge_retrying, judge_running, judge_unserved
from hourhand.core.why.serving import LiveWorker, Serving
from hourhand.core.why.times import in_force, judge_time, nearest_times, promised_by


def judge(facts: RunFacts, serving: Serving) -> Verdict:
    """What became, or will become, of a nominal time."""
    run = facts.run
    if facts.dead is not None and not facts.live and (run is None or run.state is not State.FAILED):
        return judge_dead(facts, facts.dead)
    if run is None:
        return judge_time(facts, serving)
    if run.offered_at is not None:
        return judge_unserved(facts, run, serving)
    match run.state:
        case State.SUCCEEDED | State.FAILED:
            return judge_ran(facts, run)
        case State.SKIPPED | State.CANCELLED:
            return judge_unrun(facts, run)
        case State.RUNNING:
            return judge_running(facts, run)
        case State.RETRYING:
            return judge_retrying(facts, run) if facts.live else judge_vanished(facts, run)
        case State.PENDING:
            return judge_pending(facts, run, serving)


__all__ = [
    "CLAIMED_AT",
    "WORTH_SPLITTING_US",
    "Cause",
    "DeadFact",
    "Evidence",
    "KeptGap",
    "Lateness",
    "LiveWorker",
    "ParentFact",
    "RunFacts",
    "Serving",
    "Verdict",
    "Word",
    "in_force",
    "judge",
    "judge_time",
    "nearest_times",
    "promised_by",
]
