"""Facts about one job that fires daily at nine, as a verdict is made from them; what a test does not name is ordinary."""

from typing import Any

from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US, parse_instant
from hourhand.core.lifecycle import State
from hourhand.core.model import (
    FOREVER,
    AfterTiming,
    CronTiming,
    Job,
    JobSpec,
    MisfirePolicy,
    PythonTarget,
    Timing,
    Trigger,
    Version,
)
from hourhand.core.plan import Gap
from hourhand.core.run import AttemptRow, RunView
from hourhand.core.why import (
    DeadFact,
    KeptGap,
    LiveWorker,
    ParentFact,
    RunFacts,
    Serving,
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
