"""The few routes of a process without an API: is it up, does it work, and its metrics.

Health is for everybody; metrics are for those who run the system, as at the API.
"""

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hourhand import __version__
from hourhand.core.access import Role
from hourhand.errors import HourhandError
from hourhand.web.access import Access, admitted
from hourhand.web.answers import json_answer
from hourhand.web.context import Parts, is_ready
from hourhand.web.identity import Identity
from hourhand.web.problems import answer_error

_OF_METRICS = Access(role=Role.VIEWER, of_system=True)


def create_probes(registry: CollectorRegistry, parts: Parts, identity: Identity | None = None) -> Starlette:
    """/healthz, /readyz and /metrics; readiness is what `parts` tells, and asks nobody. No `identity`: for loopback."""
    known = identity or Identity()

    async def health(request: Request) -> Response:
        return json_answer({"status": "ok", "version": __version__})

    async def readiness(request: Request) -> Response:
        found = parts()
        states = {name: str(wrong or "ok") for name, wrong in found.items()}
        ready = bool(found) and is_ready(found)
        status = "ready" if ready else "not ready"
        return json_answer({"status": status, "parts": states}, 200 if ready else 503)

    async def metrics(request: Request) -> Response:
        try:
            admitted(await known.of(request), _OF_METRICS, request)
        except HourhandError as error:
            return answer_error(error, request.scope)
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[Route("/healthz", health), Route("/readyz", readiness), Route("/metrics", metrics)]
    )
