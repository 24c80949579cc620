"""The process itself: nodes, health, readiness, metrics."""

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from hourhand import __version__
from hourhand.core.access import Role
from hourhand.errors import HourhandError
from hourhand.web.access import needs, open_to_all
from hourhand.web.answers import json_answer, node_answer, overview_answer, segment_answer
from hourhand.web.context import caller_of, context_of, is_ready, sees_everything
from hourhand.web.openapi import describe, problems
from hourhand.web.requests import GuardedRoute, StrictRoute
from hourhand.web.shapes.system import Health, NodeList, OverviewAnswer, Readiness, SegmentList

router = APIRouter(tags=["operations"], route_class=StrictRoute)
process_router = APIRouter(tags=["operations"], route_class=GuardedRoute)
_METRICS = """\
# HELP hourhand_jobs Jobs known.
# TYPE hourhand_jobs gauge
hourhand_jobs 40.0
"""


@router.get("/nodes", summary="The processes of the cluster", response_model=NodeList, responses=problems())
@needs(Role.VIEWER, of_system=True)
async def list_nodes(request: Request) -> Response:
    """For those who run the system. Processes whose lease has run out are shown until they are forgotten."""
    web = context_of(request)
    now_at = await web.store.now()
    return json_answer({"data": [node_answer(node, now_at) for node in await web.store.nodes()]})


@router.get(
    "/segments",
    summary="Which scheduler plans which part of all clocks",
    response_model=SegmentList,
    responses=problems(),
)
@needs(Role.VIEWER, of_system=True)
async def list_segments(request: Request) -> Response:
    """For those who run the system. One whose owner is not alive waits to be taken over; with several databases each has its own segments."""
    web = context_of(request)
    now_at = await web.store.now()
    known = {node.id: node for node in await web.store.nodes()}
    return json_answer({"data": [segment_answer(one, known, now_at) for one in await web.store.segments()]})


@router.get(
    "/overview",
    summary="How everything stands, in one look",
    response_model=OverviewAnswer,
    responses=problems(),
)
async def overview(request: Request) -> Response:
    """Sizes as last counted, processes, what happened in each minute of the last hour, and what changed of jobs.

    All of it is the tenant's own, but for the processes. Who runs the system and names no tenant gets the sizes of everything.
    """
    web, tenant = caller_of(request)
    whose = None if sees_everything(request) else tenant
    sizes, hour = await web.overview.sizes(whose), web.overview.hour(tenant)
    parts = {name: str(wrong or "ok") for name, wrong in web.parts().items()}
    return json_answer(overview_answer(sizes, whose, hour, parts, web.clock.now()))


# Some load balancers ask by HEAD. It is not described by itself: it answers as GET does, and the server leaves out the body.
@process_router.head("/healthz", include_in_schema=False)
@process_router.get("/healthz", summary="The process is up", response_model=Health, responses=problems())
@open_to_all
async def health() -> Response:
    """Says nothing about the store; see /readyz. HEAD answers alike, without the body."""
    return json_answer({"status": "ok", "version": __version__})


@process_router.head("/readyz", include_in_schema=False)
@process_router.get(
    "/readyz",
    summary="The process can do its work",
    response_model=Readiness,
    responses={**problems(), 503: {"model": Readiness, "description": "Some part does not work."}},
)
@open_to_all
async def readiness(request: Request) -> Response:
    """Asks the store for a write, and each part how it is. HEAD answers alike, without the body."""
    web = context_of(request)
    found = dict(web.parts())
    try:
        await web.store.ping()
        found["store"] = None
    except HourhandError as error:
        found["store"] = error.message
    ready = is_ready(found)
    parts = {name: str(wrong or "ok") for name, wrong in found.items()}
    return json_answer({"status": "ready" if ready else "not ready", "parts": parts}, 200 if ready else 503)


@process_router.get(
    "/metrics",
    summary="Metrics in Prometheus' text format",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": _METRICS}}},
        **problems(),
    },
)
@needs(Role.VIEWER, of_system=True)
async def metrics(request: Request) -> Response:
    """Sizes, lags, fires, and requests by route."""
    web = context_of(request)
    return Response(generate_latest(web.registry), media_type=CONTENT_TYPE_LATEST)


@process_router.get("/openapi.json", include_in_schema=False, summary="This API's description")
async def openapi(request: Request) -> Response:
    """OpenAPI 3.1."""
    return json_answer(describe(request.app))
