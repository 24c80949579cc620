"""Endpoints that are told of events: making and changing them, and what became of what they were told."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hourhand.client.flow import D, Document, Flow, endpoint, listing
from hourhand.client.resources.endpoints import Endpoints, filtered

Webhook = str | Mapping[str, Any]
Delivery = str | Mapping[str, Any]


class Webhooks(Endpoints[D]):
    """Endpoints that are told of events."""

    @endpoint
    def create(self, document: Mapping[str, Any], *, dry_run: bool = False) -> Flow[Document]:
        """Make one: url, and types, jobs, tags, description where wanted. Only this answer has its secret."""
        return self._ask("POST", "/webhooks", body=document, query={"dry_run": dry_run})

    @endpoint
    def get(self, webhook: Webhook) -> Flow[Document]:
        """One webhook, and how its endpoint has answered."""
        return self._ask("GET", _path(webhook))

    @listing
    def list(self) -> Flow[None]:
        """All of them, oldest first."""
        return self._pages("/webhooks", {})

    @endpoint
    def page(self) -> Flow[Document]:
        """All of them as one document."""
        return self._ask("GET", "/webhooks")

    @endpoint
    def update(
        self, webhook: Webhook, changes: Mapping[str, Any], *, dry_run: bool = False
    ) -> Flow[Document]:
        """A merge patch: what is not named stays."""
        return self._ask("PATCH", _path(webhook), body=changes, query={"dry_run": dry_run}, repeatable=True)

    @endpoint
    def delete(self, webhook: Webhook, *, dry_run: bool = False) -> Flow[Document]:
        """Forget it and what waits for it."""
        return self._ask("DELETE", _path(webhook), query={"dry_run": dry_run})

    @endpoint
    def rotate(self, webhook: Webhook, *, dry_run: bool = False) -> Flow[Document]:
        """Give it a new secret, which only this answer has; the one before signs too for a day."""
        return self._ask("POST", _path(webhook, "/rotate"), body={}, query={"dry_run": dry_run})

    @endpoint
    def test(self, webhook: Webhook, *, dry_run: bool = False) -> Flow[Document]:
        """Send it a test; the answer is the delivery, which `watch` follows."""
        return self._ask("POST", _path(webhook, "/test"), body={}, query={"dry_run": dry_run})

    @listing
    def deliveries(
        self, webhook: Webhook, /, *, limit: int = 200, cursor: str | None = None, **filters: object
    ) -> Flow[None]:
        """Its deliveries, newest first; filter state."""
        return self._pages(_path(webhook, "/deliveries"), filtered(limit, cursor, filters))

    @endpoint
    def deliveries_page(
        self, webhook: Webhook, /, *, limit: int = 50, cursor: str | None = None, **filters: object
    ) -> Flow[Document]:
        """One page of deliveries as it is."""
        return self._ask("GET", _path(webhook, "/deliveries"), query=filtered(limit, cursor, filters))

    @endpoint
    def delivery(self, webhook: Webhook, delivery: Delivery) -> Flow[Document]:
        """What became of one event."""
        return self._ask("GET", _path(webhook, _delivery(delivery)))

    @endpoint
    def redeliver(self, webhook: Webhook, delivery: Delivery, *, dry_run: bool = False) -> Flow[Document]:
        """Send an event once more, under the same id."""
        return self._change(_path(webhook, f"{_delivery(delivery)}/redeliver"), {}, dry_run)

    @listing
    def watch(self, webhook: Webhook, delivery: Delivery, *, timeout_s: float | None = None) -> Flow[None]:
        """A delivery each time that it has moved on, until it was sent once; TimeoutError when that takes too long."""
        return self._watch(
            _path(webhook, _delivery(delivery)),
            timeout_s,
            is_over=lambda one: one["state"] != "pending" or one["tries"] > 0,
            standing=lambda one: "nothing was sent yet",
        )


def _path(webhook: Webhook, tail: str = "") -> str:
    name = webhook if isinstance(webhook, str) else str(webhook["webhook_id"])
    return f"/webhooks/{quote(name, safe='')}{tail}"


def _delivery(delivery: Delivery) -> str:
    name = delivery if isinstance(delivery, str) else str(delivery["event_id"])
    return f"/deliveries/{quote(name, safe='')}"
