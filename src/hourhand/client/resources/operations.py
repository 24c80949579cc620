"""One action on all jobs or dead letters that match: asking for it, watching it, cancelling it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hourhand.client.flow import D, Document, Flow, endpoint, listing
from hourhand.client.resources.endpoints import Endpoints

Operation = str | Mapping[str, Any]


class Operations(Endpoints[D]):
    """One action on all that match."""

    @endpoint
    def create(
        self,
        action: str,
        filter: Mapping[str, Any],
        *,
        expected_count: int | None = None,
        rate: str | None = None,
        note: str | None = None,
        dry_run: bool = False,
    ) -> Flow[Document]:
        """Ask for it; a dry run counts what matches, which can then be named as `expected_count`."""
        asked = {"expected_count": expected_count, "rate": rate, "note": note}
        body = {"action": action, "filter": dict(filter), **{k: v for k, v in asked.items() if v is not None}}
        return self._ask("POST", "/operations", body=body, query={"dry_run": dry_run})

    @endpoint
    def get(self, operation: Operation) -> Flow[Document]:
        """One operation and how far it is."""
        return self._ask("GET", _path(operation))

    @listing
    def list(self, /, *, limit: int = 200, cursor: str | None = None) -> Flow[None]:
        """Operations, newest first."""
        return self._pages("/operations", {"limit": limit, "cursor": cursor})

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None) -> Flow[Document]:
        """One page of operations as it is."""
        return self._ask("GET", "/operations", query={"limit": limit, "cursor": cursor})

    @endpoint
    def cancel(self, operation: Operation, *, dry_run: bool = False) -> Flow[Document]:
        """End it where it is."""
        return self._change(_path(operation, "/cancel"), {}, dry_run)

    @listing
    def watch(self, operation: Operation, *, timeout_s: float | None = None) -> Flow[None]:
        """The operation each time that it has moved on, until it is over; TimeoutError when that takes too long."""
        return self._watch(
            _path(operation),
            timeout_s,
            is_over=lambda one: one["finished_at"] is not None,
            standing=lambda one: f"the operation {one['operation_id']} is still {one['state']}",
        )


def _path(operation: Operation, tail: str = "") -> str:
    name = operation if isinstance(operation, str) else str(operation["operation_id"])
    return f"/operations/{quote(name, safe='')}{tail}"
