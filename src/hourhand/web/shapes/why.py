"""The shape of the answer to why, as OpenAPI shows it; `why_answer` builds it."""

from typing import Any

from pydantic import ConfigDict

from hourhand.core.identity import format_job_id
from hourhand.core.instant import format_instant
from hourhand.core.why import Cause, Lateness, Word
from hourhand.core.why.phrases import local, zone_name
from hourhand.services.why import Explanation
from hourhand.web.answers import instant
from hourhand.web.shapes.parts import A_JOB, A_RUN, A_TIME, Shape, StateWord, always


class EvidenceAnswer(Shape):
    """One thing that is known."""

    at: str | None = always("When it happened, or will.", A_TIME)
    text: str = always("What.", "attempt 1 on worker-1 took 12ms: succeeded")


class LatenessAnswer(Shape):
    """How late the first attempt started, and where that went; null where it was not measured."""

    total_ms: int = always("From due time to start.", 1200)
    planning_ms: int | None = always("Until somebody planned it.", 0)
    slot_ms: int | None = always("Then until another run of the job made room.", 0)
    queue_ms: int | None = always("Then until a worker took it.", 1190)
    worker_ms: int | None = always("Then until the worker started it.", 10)


class NearestAnswer(Shape):
    """The job's nearest times by its schedule; given where there is no run."""

    before: str | None = always("The one before.", "2026-11-15T08:00:00Z")
    after: str | None = always("The one after.", "2026-11-17T08:00:00Z")


class WhyAnswer(Shape):
    """What became, or will become, of a nominal time of a job."""

    model_config = ConfigDict(strict=False)  # two of its fields are enums, whose words are text in JSON

    job_id: str = always("The job.", A_JOB)
    name: str = always("Its label.", "daily-report")
    run_id: str = always("The id that its run for this time has, or would have.", A_RUN)
    at: str = always("The nominal time.", A_TIME)
    tz: str = always("The zone that people read it in.", "Europe/Berlin")
    local: str = always("It, in that zone.", "2026-11-16 09:00:00 +01:00")
    now: str = always("As of when this is known.", "2026-11-16T08:05:00Z")
    verdict: Word = always("In a word.", "ran")
    cause: Cause = always("Why, in a word.", "succeeded")
    summary: str = always("In a sentence.", "it ran and succeeded with its first attempt")
    status: StateWord | None = always("Of its run; null where there is none.", "SUCCEEDED")
    version: int | None = always("The job's version that decided, or ran.", 3)
    decided_at: str | None = always("When it was decided.", A_TIME)
    decided_by: str | None = always(
        "The worker that did, or that has it in hand; who paused the job.", "worker-1"
    )
    lateness: LatenessAnswer | None = always("How late it started.", None)
    blocked_by: list[str] = always("Runs, or jobs that it follows, that were or are in its way.", [])
    evidence: list[EvidenceAnswer] = always("What is known.", [])
    change: list[str] = always("What would change it.", ["nothing: it ran on time"])
    nearest: NearestAnswer | None = always("The job's nearest times; null where it has a run.", None)


def why_answer(explanation: Explanation) -> dict[str, Any]:
    """An explanation as JSON."""
    facts, verdict = explanation.facts, explanation.verdict
    zone = zone_name(explanation.version.spec.timing)
    return {
        "job_id": format_job_id(facts.job_id),
        "name": facts.versions[-1].spec.name,
        "run_id": facts.run_id,
        "at": format_instant(facts.at),
        "tz": zone,
        "local": local(facts.at, zone),
        "now": format_instant(facts.now_at),
        "verdict": verdict.word,
        "cause": verdict.cause,
        "summary": verdict.summary,
        "status": verdict.state,
        "version": verdict.version,
        "decided_at": instant(verdict.decided_at),
        "decided_by": verdict.decided_by,
        "lateness": None if verdict.lateness is None else _lateness(verdict.lateness),
        "blocked_by": verdict.blocked_by,
        "evidence": [{"at": instant(one.at), "text": one.text} for one in verdict.evidence],
        "change": verdict.change,
        "nearest": None
        if facts.run is not None
        else {"before": instant(verdict.before_at), "after": instant(verdict.after_at)},
    }


def _lateness(lateness: Lateness) -> dict[str, int | None]:
    return {
        "total_ms": lateness.total_us // 1_000,
        "planning_ms": _milliseconds(lateness.planning_us),
        "slot_ms": _milliseconds(lateness.slot_us),
        "queue_ms": _milliseconds(lateness.queue_us),
        "worker_ms": _milliseconds(lateness.worker_us),
    }


def _milliseconds(us: int | None) -> int | None:
    return None if us is None else us // 1_000
