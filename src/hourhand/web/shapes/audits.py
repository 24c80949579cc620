"""The shape of audits in answers, as OpenAPI shows them, and how they are built."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from hourhand.core.audit import AuditReport, Kind, Tally
from hourhand.core.identity import format_job_id, format_run_id
from hourhand.core.instant import format_instant
from hourhand.web.shapes.parts import A_JOB, A_RUN, A_TIME, Shape, always


class FindingAnswer(Shape):
    """Something that does not fit."""

    kind: Literal["lost", "unplanned", "phantom", "double", "broken"] = always("What it is.", "lost")
    run_id: str = always("The run.", A_RUN)
    job_id: str = always("Its job.", A_JOB)
    job_name: str = always("How people know the job.", "daily-report")
    scheduled_at: str = always("Its nominal time.", A_TIME)
    words: str = always(
        "What is wrong, in words.", "expected, and neither run, skipped, cancelled nor waiting"
    )


class EquationAnswer(Shape):
    """Expected = succeeded + skipped + failed + cancelled + waiting, unless something is lost."""

    expected: int = always("Times by the versions in force.", 1440)
    succeeded: int = always("Of them, those that ran.", 1432)
    skipped: int = always("Skipped with a reason, those included that an outage swallowed.", 6)
    failed: int = always("In the dead letters, or discarded from there.", 1)
    cancelled: int = always("Cancelled.", 0)
    waiting: int = always("Planned, running, or to be planned yet.", 1)
    missed: int = always("Of the skipped, those that nobody planned in time.", 0)
    lost: int = always("Accounted for nowhere.", 0)
    beside: int = always("Runs beside the schedule: manual ones, reruns, backfills.", 3)


class JobEquationAnswer(EquationAnswer):
    """One job's part."""

    job_id: str = always("The job.", A_JOB)
    job_name: str = always("How people know it.", "daily-report")


class AuditAnswer(EquationAnswer):
    """An audit, or a part of one."""

    model_config = ConfigDict(populate_by_name=True)

    from_: str = Field(alias="from", description="Times from here on", examples=[A_TIME])
    to: str = always("up to here, which is left out.", "2026-11-16T09:00:00Z")
    jobs_checked: int = always("How many jobs were looked at, deleted ones included.", 12)
    findings: list[FindingAnswer] = always("What does not fit; the first 1,000.", [])
    kinds: dict[str, int] = always("How many findings of each kind there are.", {"lost": 0})
    by_job: list[JobEquationAnswer] = always(
        "Jobs with findings, or the one that was asked for; every job with `by_job`.", []
    )
    unread: list[str] = always("Jobs that have too much to be audited.", [])
    partial: list[str] = always("Databases that did not answer.", [])
    complete: bool = always("Whether everything was looked at.", True)
    next_cursor: str | None = always("Goes on with the other jobs; null at the end.", None)


def audit_answer(report: AuditReport, next_cursor: str | None) -> dict[str, Any]:
    """An audit as it is answered."""
    return {
        "from": format_instant(report.window.from_at),
        "to": format_instant(report.window.to_at),
        **_equation(report.tally),
        "jobs_checked": report.jobs_checked,
        "findings": [
            {
                "kind": one.kind.value,
                "run_id": format_run_id(one.job_id, one.scheduled_at),
                "job_id": format_job_id(one.job_id),
                "job_name": one.job_name,
                "scheduled_at": format_instant(one.scheduled_at),
                "words": one.words,
            }
            for one in report.findings
        ],
        "kinds": {kind.value: report.kinds.get(kind, 0) for kind in Kind},
        "by_job": [
            {"job_id": format_job_id(one.job_id), "job_name": one.job_name, **_equation(one.tally)}
            for one in report.by_job
        ],
        "unread": [format_job_id(one) for one in report.unread],
        "partial": [f"shard {one}" for one in report.missing],
        "complete": report.complete,
        "next_cursor": next_cursor,
    }


def _equation(tally: Tally) -> dict[str, int]:
    return {name: getattr(tally, name) for name in tally.__struct_fields__}
