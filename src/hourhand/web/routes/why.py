"""Why a nominal time of a job ran, waits, was skipped, is none, or was lost."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hourhand.services.why import Which
from hourhand.web.answers import json_answer
from hourhand.web.context import caller_of
from hourhand.web.openapi import problems
from hourhand.web.requests import StrictRoute, instant_in, job_id_in
from hourhand.web.routes.jobs import JobIdText
from hourhand.web.shapes.why import WhyAnswer, why_answer

router = APIRouter(tags=["jobs"], route_class=StrictRoute)


@router.get(
    "/jobs/{job_id}/why",
    summary="Why a time ran, waits or did not",
    response_model=WhyAnswer,
    responses=problems(404),
)
async def job_why(
    request: Request,
    job_id: JobIdText,
    at: Annotated[
        str | None,
        Query(
            description="The nominal time; or `last`, the newest that is due, which is the default; or `next`."
        ),
    ] = None,
) -> Response:
    """A verdict with its evidence and what would change it, for any time, past, present or coming; of deleted jobs too."""
    web, tenant = caller_of(request)
    asked = Which(at or Which.LAST) if at in (None, *Which) else instant_in(at, "at")
    assert asked is not None
    return json_answer(why_answer(await web.why.explain(tenant, job_id_in(job_id), asked)))
