"""The routes, one module per thing they are about. Each reads a request, asks a service and answers."""

from fastapi import APIRouter
from fastapi.routing import APIRoute

from hourhand.web.routes import actions, bulk, dead_letters, jobs, operations, runs, schedules

# Fixed paths come before those with a job id in the same place.
API: tuple[APIRouter, ...] = (
    bulk.router,
    jobs.router,
    actions.router,
    runs.router,
    dead_letters.router,
    schedules.router,
    operations.router,
)
PROCESS: APIRouter = operations.process_router
PREFIX = "/api/v1"
ALIAS = "/v1"


def methods_at(path: str) -> list[str]:
    """Every method that some route has at this path."""
    rest = path.removeprefix(PREFIX) if path.startswith(PREFIX) else path.removeprefix(ALIAS)
    routes = [route for router in (*API, PROCESS) for route in router.routes if isinstance(route, APIRoute)]
    return sorted({method for route in routes if route.path_regex.match(rest) for method in route.methods})


__all__ = ["ALIAS", "API", "PREFIX", "PROCESS", "methods_at"]
