"""What else fires in the second of a job's next time, among the newest jobs of its tenant; never a scan of all."""

from typing import Any

from hourhand.core.identity import format_job_id
from hourhand.core.instant import SECOND_US, format_instant
from hourhand.core.model import Job, JobState
from hourhand.core.moves import fires_of
from hourhand.ports.reading import JobQuery
from hourhand.web.context import WebContext

MOST_LOOKED_AT = 1_000
MOST_NAMED = 5


async def beside(web: WebContext, job: Job) -> dict[str, Any] | None:
    """How many others, the first of them, and whether there may be more; None where it has no time to come."""
    at = web.jobs.next_at(job)
    if at is None:
        return None
    start = at - at % SECOND_US
    page = await web.jobs.page(job.tenant, JobQuery(state=JobState.ACTIVE, limit=MOST_LOOKED_AT))
    others = [
        one
        for one in page.jobs
        if one.id != job.id and fires_of(one, start - 1, start + SECOND_US - 1).count()
    ]
    return {
        "at": format_instant(at),
        "count": len(others),
        "is_exact": page.next_before_id is None and not page.missing,
        "jobs": [
            {"job_id": format_job_id(one.id), "name": one.spec.name or one.spec.key}
            for one in others[:MOST_NAMED]
        ],
    }
