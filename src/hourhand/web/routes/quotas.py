"""What tenants may have and what they have. Each sees its own; those who run the system see and set all."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.quota import RATE_UNIT, QuotaOverride
from hourhand.ports.quotas import TenantStanding
from hourhand.web.access import needs
from hourhand.web.answers import json_answer
from hourhand.web.context import caller_of, context_of
from hourhand.web.cursors import page, read_name_cursor, write_cursor
from hourhand.web.faults import validated
from hourhand.web.json_text import read_object
from hourhand.web.openapi import problems, takes
from hourhand.web.requests import CursorText, DryRun, Limit, StrictRoute, json_body
from hourhand.web.schema import QuotaDocument
from hourhand.web.shapes.quotas import QuotaAnswer, TenantList

router = APIRouter(tags=["tenants"], route_class=StrictRoute)

TenantName = Annotated[str, Path(description="The tenant.", examples=["acme"])]


@router.get(
    "/quota", summary="What your tenant may have and has", response_model=QuotaAnswer, responses=problems()
)
async def own_quota(request: Request) -> Response:
    """Counted in the transaction that changes it, so it is exact."""
    web, tenant = caller_of(request)
    return json_answer(quota_answer(await web.quotas.standing(tenant)))


@router.get("/tenants", summary="List tenants by name", response_model=TenantList, responses=problems())
@needs(Role.VIEWER, of_system=True)
async def list_tenants(request: Request, limit: Limit = 50, cursor: CursorText = None) -> Response:
    """All that have or had a job, or a quota of their own, with what they may have and have."""
    web = context_of(request)
    found = await web.quotas.page(read_name_cursor(cursor, "tenants") or "", limit)
    onward = None if found.next_after is None else write_cursor("tenants", found.next_after)
    body, headers = page(request, [quota_answer(one) for one in found.tenants], onward, found.missing)
    return json_answer(body, headers=headers)


@router.put(
    "/tenants/{tenant}/quota",
    summary="Set what a tenant may have",
    response_model=QuotaAnswer,
    responses=problems(404, body=True),
    openapi_extra=takes(QuotaDocument),
)
@needs(Role.ADMIN, of_system=True)
async def set_quota(request: Request, tenant: TenantName, dry_run: DryRun = False) -> Response:
    """From now on, instead of what was set before; null or left out: as the settings say, 0: no limit.

    What it has already stays, also where that is more; then it gets nothing further. Only history that is older than
    its days is no longer shown, from now on, and dropped a day later.
    """
    asked = validated(QuotaDocument, read_object(await json_body(request), "a quota"))
    done = await context_of(request).quotas.set(tenant, QuotaOverride(**asked.model_dump()), dry_run=dry_run)
    answer = quota_answer(done)
    return json_answer({**answer, "dry_run": True} if dry_run else answer)


def quota_answer(found: TenantStanding) -> dict[str, Any]:
    """What a tenant may have, what of that was set for it, and what it has."""
    return {
        "tenant": found.tenant,
        "limits": {name: value or None for name, value in msgspec.structs.asdict(found.quota).items()},
        "own": msgspec.structs.asdict(found.override),
        "use": {
            "jobs": found.use.jobs,
            "runs_per_minute": found.use.rate / RATE_UNIT,
            "document_bytes": found.use.document_bytes,
        },
    }
