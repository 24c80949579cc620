"""Why a nominal time of a job ran, waits, was skipped or is none: facts in, a verdict with its evidence out. Pure."""

from hourhand.core.why.facts import (
    Cause,
    Evidence,
    KeptGap,
    Lateness,
    ParentFact,
    RunFacts,
    Verdict,
    Word,
)
from hourhand.core.why.lateness import CLAIMED_AT, WORTH_SPLITTING_US
from hourhand.core.why.runs import judge_run
from hourhand.core.why.serving import LiveWorker, Serving
from hourhand.core.why.times import in_force, judge_time, nearest_times, promised_by


def judge(facts: RunFacts, serving: Serving) -> Verdict:
    """What became, or will become, of a nominal time."""
    return judge_time(facts, serving) if facts.run is None else judge_run(facts, serving)


__all__ = [
    "CLAIMED_AT",
    "WORTH_SPLITTING_US",
    "Cause",
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
