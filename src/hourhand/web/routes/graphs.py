"""Graphs of jobs: who follows whom, and how their runs stand."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hourhand.web.answers import graph_answer, json_answer
from hourhand.web.context import caller_of
from hourhand.web.openapi import problems
from hourhand.web.requests import StrictRoute, instant_in, job_id_in
from hourhand.web.routes.jobs import JobIdText
from hourhand.web.shapes.graphs import GraphAnswer

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

LATEST = "latest"


@router.get(
    "/jobs/{job_id}/graph",
    summary="A job with all that hang together with it",
    response_model=GraphAnswer,
    responses=problems(404),
)
async def job_graph(
    request: Request,
    job_id: JobIdText,
    at: Annotated[
        str | None,
        Query(description="Show the runs for this nominal time, or the `latest`; else each job's newest."),
    ] = None,
) -> Response:
    """In any direction, by level. Of more than 1,000 jobs those that are nearest, and `truncated` is true."""
    web, tenant = caller_of(request)
    latest = at == LATEST
    view = await web.graphs.view(
        tenant, job_id_in(job_id), at=None if latest else instant_in(at, "at"), latest=latest
    )
    return json_answer(graph_answer(view))
