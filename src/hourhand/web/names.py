"""Names of the jobs that answers mention beside their own: parents of jobs, and whom runs wait for.

One look for a whole page, and none where nothing of it follows anything.
"""

from collections.abc import Iterable, Mapping

from hourhand.core.dag import parents_of
from hourhand.core.identity import parse_job_id
from hourhand.core.lifecycle import Reason
from hourhand.core.model import Job
from hourhand.core.run import RunView
from hourhand.web.context import WebContext

Names = Mapping[int, str]


async def parents_of_jobs(web: WebContext, tenant: str, jobs: Iterable[Job]) -> Names:
    """Of the jobs that some follow."""
    ids = {parent for job in jobs for parent in parents_of(job.spec.timing)}
    return await web.graphs.names(tenant, sorted(ids))


async def parents_of_runs(web: WebContext, tenant: str, runs: Iterable[RunView]) -> Names:
    """Of the jobs that some runs wait for, or were skipped because of."""
    ids: set[int] = set()
    for run in runs:
        ids.update(run.waits_for)
        culprit = upstream_of(run)
        if culprit is not None:
            ids.add(culprit[0])
    return await web.graphs.names(tenant, sorted(ids))


def upstream_of(run: RunView) -> tuple[int, str] | None:
    """The parent because of whom a run was skipped, and how that one ended."""
    detail = (run.attempts[-1].detail if run.attempts else None) or {}
    if detail.get("reason") != Reason.UPSTREAM or "parent" not in detail:
        return None
    return parse_job_id(detail["parent"]), str(detail.get("outcome"))
