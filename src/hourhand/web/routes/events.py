"""The stream of events: what happens to runs and jobs while somebody watches."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from hourhand.core.identity import parse_job_id
from hourhand.core.instant import parse_given_instant
from hourhand.ports.events import Event, EventData, EventType
from hourhand.services.event_log import EventFilter
from hourhand.web.context import caller_of, user_of
from hourhand.web.event_stream import CONTENT_TYPE, EventStream, frame
from hourhand.web.faults import refusal, unknown_field
from hourhand.web.openapi import problems
from hourhand.web.requests import StrictRoute, job_filter_in

router = APIRouter(tags=["events"], route_class=StrictRoute)

_MAX_ID = 100
_MAX_FAULTS = 10
_FAMILIES = {
    name: frozenset(kind for kind in EventType if kind.startswith(name[:-1]))
    for name in ("*", "run.*", "job.*")
}
_NAMES = {**_FAMILIES, **{kind.value: frozenset({kind}) for kind in EventType}}
_EXAMPLE = Event(
    id="1794819600025000-1f3c5a7b9d0e2f41",
    type=EventType.RUN_SUCCEEDED,
    tenant="acme",
    at=parse_given_instant("2026-11-16T09:00:00.025Z"),
    job_id=parse_job_id("J-0d3x8m2k7q1vt"),
    scheduled_at=parse_given_instant("2026-11-16T09:00:00Z"),
    data=EventData(state="SUCCEEDED", name="daily-report", lag_ms=5, took_ms=20, attempt=1, version=1),
)


@router.get(
    "/events",
    summary="What happens, as it happens",
    response_class=Response,
    responses={
        200: {
            "description": "A stream that ends only when one side ends it.",
            "content": {CONTENT_TYPE: {"schema": {"type": "string"}, "example": frame(_EXAMPLE).decode()}},
        },
        **problems(429),
    },
)
async def follow_events(
    request: Request,
    types: Annotated[
        str | None,
        Query(
            description="Only these, parted by commas; `run.*` and `job.*` mean all of a kind.",
            examples=["run.*"],
        ),
    ] = None,
    job_id: Annotated[str | None, Query(description="Only of this job.")] = None,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", description="Go on after this event, of the last five minutes."),
    ] = None,
) -> Response:
    """Server-sent events. A `reset` says that some are missing, a `stats` how many there were in a second with too many."""
    web, tenant = caller_of(request)
    asked = EventFilter(tenant=tenant, types=types_in(types), job_id=job_filter_in(job_id))
    return EventStream(
        web.events.follow(asked, (last_event_id or "")[:_MAX_ID], user_of(request)),
        lambda: web.identity.still_knows(request),
    )


def types_in(text: str | None) -> frozenset[EventType]:
    """The types that a client names; Invalid where one does not exist."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if not names:
        return _NAMES["*"]
    unknown = [name for name in names if name not in _NAMES]
    if unknown:
        raise refusal(
            [unknown_field("?types", name, _NAMES, "names of events") for name in unknown[:_MAX_FAULTS]]
        )
    return frozenset().union(*(_NAMES[name] for name in names))
