"""What verdicts about runs have in common: why a run exists, its attempts, what its job was for it. Pure."""

from hourhand.core.instant import HOUR_US
from hourhand.core.lifecycle import FINAL, State
from hourhand.core.model import JobSpec, Trigger
from hourhand.core.run import AttemptRow, RunView
from hourhand.core.why.facts import Evidence, RunFacts
from hourhand.core.why.phrases import length, local, zone_name

MOST_LISTED = 20  # attempts, or runs, that are told one by one
REPORT_IT = (
    "somebody has changed or restored the database behind the scheduler's back, or this is a bug: "
    "keep the database as it is and report it"
)

_FORGOTTEN_US = HOUR_US  # what is about to be dropped may be gone already: rows go in batches


_BESIDE = {
    Trigger.MANUAL: "somebody asked for it by hand",
    Trigger.BACKFILL: "a backfill made it",
    Trigger.CATCH_UP: "the misfire policy catch_up made up for it after an outage",
    Trigger.REQUEUED: "somebody sent it back from the dead letters",
    Trigger.RERUN: "it repeats an earlier run",
    Trigger.UPSTREAM: "the jobs that it follows had this time",
}


def origin(facts: RunFacts, run: RunView) -> list[Evidence]:
    """Why there is such a run at all, and under which version."""
    zone = zone_of(facts, run)
    evidence = [Evidence(text="its nominal time", at=facts.at)]
    if run.trigger in _BESIDE:
        evidence.append(Evidence(text=_BESIDE[run.trigger]))
    first_due_at = run.attempts[0].due_at if run.attempts else run.due_at
    spread_us = first_due_at - facts.at
    spec = spec_of(facts, run)
    if run.trigger is Trigger.SCHEDULED and 0 < spread_us <= spec.jitter_us:
        evidence.append(Evidence(text=f"its jitter made it due {length(spread_us)} later", at=first_due_at))
    if facts.gap is not None:
        text = f"nobody planned from {local(facts.gap.gap.from_at, zone)} on, until then"
        evidence.append(Evidence(text=text, at=facts.gap.decided_at))
    return evidence


def attempts_of(run: RunView) -> list[Evidence]:
    """Each attempt, and the end without one; of many the last."""
    rows = run.attempts[-MOST_LISTED:]
    left_out = len(run.attempts) - len(rows)
    evidence = [Evidence(text=f"{left_out} earlier attempts are left out here")] if left_out else []
    given_back = rows[0].attempt - 1 if rows and rows[0].started_at is not None and not left_out else 0
    if given_back > 0:
        evidence.append(
            Evidence(text=f"workers took it {given_back} times before and gave it back unstarted")
        )
    return evidence + [Evidence(text=_attempt_words(row), at=row.finished_at) for row in rows]


def is_forgotten(facts: RunFacts, at: int) -> bool:
    """Whether the history of what happened then may have been dropped."""
    return at < facts.now_at - facts.keep_us + _FORGOTTEN_US


def lost_with_job(facts: RunFacts) -> str | None:
    """What is left to do about a time of a deleted job, of which nobody can have a run made; None where there is one."""
    if facts.job is not None:
        return None
    return "nothing makes up for it, since the job was deleted: create it again, or do its work by hand elsewhere"


def spec_of(facts: RunFacts, run: RunView) -> JobSpec:
    """What the job was for this run: its own version, else the newest."""
    of_run = next((one for one in facts.versions if one.version == run.version), None)
    return (of_run or facts.versions[-1]).spec


def zone_of(facts: RunFacts, run: RunView) -> str:
    return zone_name(spec_of(facts, run).timing)


def slots_of(spec: JobSpec) -> str:
    return "the job's only slot" if spec.concurrency == 1 else f"one of the job's {spec.concurrency} slots"


def error_of(row: AttemptRow) -> str:
    detail = row.detail or {}
    return str(detail.get("error") or detail.get("reason") or "it does not say why").splitlines()[0][:500]


def _attempt_words(row: AttemptRow) -> str:
    if row.started_at is None:
        return f"decided: {row.state.value.lower()}" + (f" by {row.worker}" if row.worker else "")
    took = length(max(0, row.finished_at - row.started_at))
    words = (
        f"attempt {row.attempt} on {row.worker or 'an unknown worker'} took {took}: {row.state.value.lower()}"
    )
    failed = row.state not in FINAL or row.state is State.FAILED
    return f"{words}, {error_of(row)}" if failed else words
