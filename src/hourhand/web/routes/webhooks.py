"""Webhooks: endpoints that are told of events. Make, read, change, test and delete them; their deliveries."""

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from hourhand.core.access import Role
from hourhand.core.instant import format_instant
from hourhand.core.webhooks import (
    NAMES,
    SECRET_OVERLAP_US,
    Delivery,
    DeliveryState,
    Webhook,
    format_webhook_id,
    parse_webhook_id,
)
from hourhand.errors import NotFound
from hourhand.ports.webhooks import DeliveryQuery
from hourhand.web.access import needs
from hourhand.web.answers import instant, json_answer
from hourhand.web.context import caller_of
from hourhand.web.cursors import page, read_cursor, write_cursor
from hourhand.web.faults import refusal, validated
from hourhand.web.json_text import read_object
from hourhand.web.openapi import problems, takes
from hourhand.web.patches import merged
from hourhand.web.requests import CursorText, DryRun, Limit, StrictRoute, api_prefix, empty_body, json_body
from hourhand.web.shapes.jobs import Deleted
from hourhand.web.shapes.webhooks import DeliveryAnswer, DeliveryList, WebhookAnswer, WebhookList
from hourhand.web.webhook_document import WebhookDocument, WebhookPatch, applied, document_of, job_faults

_UNKEPT = {"Cache-Control": "no-store"}  # the only time that a secret is told

router = APIRouter(tags=["webhooks"], route_class=StrictRoute)

WebhookIdText = Annotated[str, Path(description="The webhook's id.", examples=["W-0d3x8m2k7q1vt"])]
EventIdText = Annotated[str, Path(description="The event's id.", examples=["J-0d3x8m2k7q1vt.v1"])]


@router.post(
    "/webhooks",
    status_code=201,
    summary="Have an endpoint told of events",
    response_model=WebhookAnswer,
    responses=problems(409, body=True),
    openapi_extra=takes(WebhookDocument),
)
@needs(Role.ADMIN)
async def create_webhook(request: Request, dry_run: DryRun = False) -> Response:
    """Of everything that happens once this has been answered. The secret is in this answer and in no other."""
    web, tenant = caller_of(request)
    asked = _read(read_object(await json_body(request), "a webhook"))
    made = await web.webhooks.create(applied(asked, Webhook(id=0, tenant=tenant, url="")), dry_run=dry_run)
    if dry_run:
        return json_answer({**webhook_answer(made), "dry_run": True})
    location = f"{api_prefix(request)}/webhooks/{format_webhook_id(made.id)}"
    headers = {"Location": location, **_UNKEPT}
    return json_answer({**webhook_answer(made), "secret": made.secrets[0]}, 201, headers)


@router.get("/webhooks", summary="List webhooks", response_model=WebhookList, responses=problems())
@needs(Role.ADMIN)
async def list_webhooks(request: Request) -> Response:
    """All of the tenant, oldest first."""
    web, tenant = caller_of(request)
    found = await web.webhooks.all_of(tenant)
    return json_answer({"data": [webhook_answer(one) for one in found], "next_cursor": None})


@router.get(
    "/webhooks/{webhook_id}",
    summary="Read a webhook",
    response_model=WebhookAnswer,
    responses=problems(404),
)
@needs(Role.ADMIN)
async def read_webhook(request: Request, webhook_id: WebhookIdText) -> Response:
    """What it wants to hear, and how its endpoint has answered."""
    web, tenant = caller_of(request)
    return json_answer(webhook_answer(await web.webhooks.get(tenant, _id_in(webhook_id))))


@router.patch(
    "/webhooks/{webhook_id}",
    summary="Change a webhook",
    response_model=WebhookAnswer,
    responses=problems(404, body=True),
    openapi_extra=takes(WebhookPatch, "application/merge-patch+json", "application/json"),
)
@needs(Role.ADMIN)
async def patch_webhook(request: Request, webhook_id: WebhookIdText, dry_run: DryRun = False) -> Response:
    """A merge patch. What waits while it is disabled goes on when it is enabled; what happens then is not noted."""
    web, tenant = caller_of(request)
    patch = read_object(await json_body(request), "a merge patch")

    def change(old: Webhook, now_at: int) -> Webhook:
        resets = {name: None for name, value in patch.items() if value is None}
        return applied(_read({**merged(document_of(old), patch), **resets}), old)

    changed = await web.webhooks.change(tenant, _id_in(webhook_id), change, dry_run=dry_run)
    return json_answer(_tried(webhook_answer(changed), dry_run))


@router.delete(
    "/webhooks/{webhook_id}", summary="Delete a webhook", response_model=Deleted, responses=problems(404)
)
@needs(Role.ADMIN)
async def delete_webhook(request: Request, webhook_id: WebhookIdText, dry_run: DryRun = False) -> Response:
    """With its deliveries, those that wait too."""
    web, tenant = caller_of(request)
    await web.webhooks.delete(tenant, _id_in(webhook_id), dry_run=dry_run)
    return json_answer(_tried({"deleted": True}, dry_run))


@router.post(
    "/webhooks/{webhook_id}/rotate",
    summary="Give a webhook a new secret",
    response_model=WebhookAnswer,
    responses=problems(404, body=True),
)
@needs(Role.ADMIN)
async def rotate_webhook(request: Request, webhook_id: WebhookIdText, dry_run: DryRun = False) -> Response:
    """For a day calls carry two signatures, by the new secret and by the one before. It is in this answer only."""
    web, tenant = caller_of(request)
    await empty_body(request)
    rotated = await web.webhooks.rotate(tenant, _id_in(webhook_id), dry_run=dry_run)
    answer = webhook_answer(rotated)
    if dry_run:
        return json_answer({**answer, "dry_run": True})
    return json_answer({**answer, "secret": rotated.secrets[0]}, headers=_UNKEPT)


@router.post(
    "/webhooks/{webhook_id}/test",
    status_code=202,
    summary="Send a webhook a test",
    response_model=DeliveryAnswer,
    responses=problems(404, 409, body=True),
)
@needs(Role.ADMIN)
async def try_webhook(request: Request, webhook_id: WebhookIdText, dry_run: DryRun = False) -> Response:
    """An event `webhook.test`, on the way that all events go; its delivery tells what came of it."""
    web, tenant = caller_of(request)
    await empty_body(request)
    made = await web.webhooks.test(tenant, _id_in(webhook_id), dry_run=dry_run)
    return _delivering(request, made, dry_run)


@router.get(
    "/webhooks/{webhook_id}/deliveries",
    summary="List deliveries of a webhook, newest first",
    response_model=DeliveryList,
    responses=problems(404),
)
@needs(Role.ADMIN)
async def list_deliveries(
    request: Request,
    webhook_id: WebhookIdText,
    state: Annotated[DeliveryState | None, Query(description="Only those in this state.")] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Response:
    """Those that are over are kept for a week, the newest thousand."""
    web, tenant = caller_of(request)
    place = read_cursor(cursor, "deliveries", 2, or_more=True)
    query = DeliveryQuery(state=state, before=place, limit=limit)
    found = await web.webhooks.deliveries(tenant, _id_in(webhook_id), query)
    onward = None if found.next_before is None else write_cursor("deliveries", *found.next_before)
    body, headers = page(request, [delivery_answer(one) for one in found.deliveries], onward, found.missing)
    return json_answer(body, headers=headers)


@router.get(
    "/webhooks/{webhook_id}/deliveries/{event_id}",
    summary="Read a delivery",
    response_model=DeliveryAnswer,
    responses=problems(404),
)
@needs(Role.ADMIN)
async def read_delivery(request: Request, webhook_id: WebhookIdText, event_id: EventIdText) -> Response:
    """What became of one event for one webhook."""
    web, tenant = caller_of(request)
    return json_answer(delivery_answer(await web.webhooks.delivery(tenant, _id_in(webhook_id), event_id)))


@router.post(
    "/webhooks/{webhook_id}/deliveries/{event_id}/redeliver",
    status_code=202,
    summary="Send an event to a webhook once more",
    response_model=DeliveryAnswer,
    responses=problems(404, 409, body=True),
)
@needs(Role.ADMIN)
async def redeliver_event(
    request: Request, webhook_id: WebhookIdText, event_id: EventIdText, dry_run: DryRun = False
) -> Response:
    """Whatever became of it before; under the same id, and with all tries."""
    web, tenant = caller_of(request)
    await empty_body(request)
    made = await web.webhooks.redeliver(tenant, _id_in(webhook_id), event_id, dry_run=dry_run)
    return _delivering(request, made, dry_run)


def _delivering(request: Request, delivery: Delivery, dry_run: bool) -> Response:
    answer = delivery_answer(delivery)
    if dry_run:
        return json_answer(_tried(answer, dry_run))
    place = f"{format_webhook_id(delivery.webhook_id)}/deliveries/{quote(delivery.event_id)}"
    return json_answer(answer, 202, {"Location": f"{api_prefix(request)}/webhooks/{place}"})


def webhook_answer(webhook: Webhook) -> dict[str, Any]:
    """A webhook without its secrets."""
    health = webhook.health
    overlap = webhook.rotated_at + SECRET_OVERLAP_US if len(webhook.secrets) > 1 else None
    return {
        "webhook_id": format_webhook_id(webhook.id) if webhook.id else None,
        **document_of(webhook),
        "disabled_reason": webhook.disabled_reason,
        "failing_since": instant(health.failing_since),
        "last_success_at": instant(health.succeeded_at),
        "last_failure_at": instant(health.failed_at),
        "last_error": health.error,
        "waiting": webhook.backlog,
        "dropped": webhook.dropped,
        "previous_secret_until": instant(overlap),
        "created_at": format_instant(webhook.created_at),
        "updated_at": format_instant(webhook.updated_at),
    }


def delivery_answer(delivery: Delivery) -> dict[str, Any]:
    """A delivery with the document that is sent."""
    is_pending = delivery.state is DeliveryState.PENDING
    return {
        "event_id": delivery.event_id,
        "webhook_id": format_webhook_id(delivery.webhook_id),
        "type": NAMES[delivery.kind],
        "state": delivery.state,
        "tries": delivery.tries,
        "created_at": format_instant(delivery.made_at),
        "next_try_at": format_instant(delivery.due_at) if is_pending else None,
        "last_try_at": instant(delivery.tried_at),
        "status": delivery.status,
        "error": delivery.error,
        "took_ms": delivery.took_ms,
        "event": msgspec.Raw(delivery.body.encode()),
    }


def _read(document: dict[str, Any]) -> WebhookDocument:
    asked = validated(WebhookDocument, document)
    faults = job_faults(asked)
    if faults:
        raise refusal(faults)
    return asked


def _tried(answer: dict[str, Any], dry_run: bool) -> dict[str, Any]:
    return {**answer, "dry_run": True} if dry_run else answer


def _id_in(text: str) -> int:
    """The webhook id in a path; what is none does not exist."""
    try:
        return parse_webhook_id(text)
    except ValueError as error:
        raise NotFound(str(error)) from None
