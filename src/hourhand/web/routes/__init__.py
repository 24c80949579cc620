"""The routes, one module per thing they are about. Each reads a request, asks a service and answers."""

from fastapi import APIRouter
from fastapi.routing import APIRoute

from hourhand.web.routes import (
    actions,
    applying,
    audits,
    backfills,
    bulk,
    bulk_operations,
    dead_letters,
    deeds,
    events,
    graphs,
    jobs,
    login,
    operations,
    page,
    quotas,
    reports,
    runs,
    schedules,
    tokens,
    webhooks,
    why,
)
from hourhand.web.switchboard import Switchboard

# One flat router, for a request is held against each router in turn. Fixed paths come before those with an
# id in the same place.
API = APIRouter()
for _module in (
    bulk,
    applying,
    jobs,
    actions,
    graphs,
    why,
    runs,
    reports,
    backfills,
    dead_letters,
    bulk_operations,
    audits,
    deeds,
    schedules,
    events,
    tokens,
    webhooks,
    quotas,
    operations,
):
    API.routes.extend(_module.router.routes)
PROCESS = operations.process_router
PAGE = APIRouter()
PAGE.routes.extend([*login.router.routes, *page.router.routes])
PREFIX = "/api/v1"
ALIAS = "/v1"

# All of them where they are found. Built once: what the framework works out for a route at a place takes a
# millisecond, and is the same for every application of the process.
PLACED = APIRouter(generate_unique_id_function=lambda route: route.name)
PLACED.routes.append(Switchboard(API.routes, (PREFIX, ALIAS)))
PLACED.routes.append(Switchboard(PROCESS.routes, ("", PREFIX, ALIAS)))
PLACED.include_router(API, prefix=PREFIX)
PLACED.include_router(API, prefix=ALIAS, include_in_schema=False)
PLACED.include_router(PROCESS)
for _prefix in (PREFIX, ALIAS):
    PLACED.include_router(PROCESS, prefix=_prefix, include_in_schema=False)
PLACED.include_router(PAGE)


def methods_at(path: str) -> list[str]:
    """Every method that some route has at this path."""
    prefix = next((one for one in (PREFIX, ALIAS) if path.startswith(f"{one}/")), "")
    routers = (API, PROCESS) if prefix else (PROCESS, PAGE)
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    rest = path.removeprefix(prefix)
    at = [route for route in routes if route.path_regex.match(rest)]
    fixed = [route for route in at if route.path == rest]  # a path of its own is no id
    return sorted({method for route in fixed or at for method in route.methods or ()})


__all__ = ["ALIAS", "API", "PAGE", "PLACED", "PREFIX", "PROCESS", "methods_at"]
