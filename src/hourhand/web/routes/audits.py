"""Audits: whether every time that was promised is accounted for."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hourhand.core.instant import SECOND_US
from hourhand.web.answers import json_answer
from hourhand.web.context import caller_of
from hourhand.web.cursors import read_cursor, write_cursor
from hourhand.web.openapi import problems
from hourhand.web.requests import CursorText, StrictRoute, instant_in, job_filter_in
from hourhand.web.shapes.audits import AuditAnswer, audit_answer

WITHIN_US = 10 * SECOND_US  # of one request; then the answer says where to go on

router = APIRouter(tags=["audits"], route_class=StrictRoute)


@router.get(
    "/audit",
    summary="Hold what ran against what was expected",
    response_model=AuditAnswer,
    responses=problems(404),
)
async def audit(
    request: Request,
    from_: Annotated[
        str | None,
        Query(alias="from", description="Nominal times from here on; an hour before `to` unless given."),
    ] = None,
    to: Annotated[str | None, Query(description="Up to here; now unless given, and at most.")] = None,
    job_id: Annotated[str | None, Query(description="Only of this job.")] = None,
    by_job: Annotated[
        bool,
        Query(description="Tell each job's own equation too; the answer then comes 1,000 jobs at a time."),
    ] = False,
    cursor: CursorText = None,
) -> Response:
    """All expected times are computed anew from the versions of the jobs, and each must be somewhere. A window is at
    most 31 days, and as far back as history is kept. With very many jobs the answer comes in parts, to be added up."""
    web, tenant = caller_of(request)
    place = read_cursor(cursor, "audit", numbers=3, or_more=True, instants=2)
    if place is None:
        window = await web.audit.opened(
            tenant, instant_in(from_, "from"), instant_in(to, "to"), job_filter_in(job_id), by_job=by_job
        )
        after = None
    else:
        window = web.audit.reopened(tenant, place[0], place[1], by_job=by_job)
        after = tuple(place[2:])
    report = await web.audit.window(window, after=after, within_us=WITHIN_US)
    onward = (
        None
        if report.next_after is None
        else write_cursor("audit", window.from_at, window.to_at, *report.next_after)
    )
    return json_answer(audit_answer(report, onward), headers={"Cache-Control": "no-store"})
