"""Runs for times that have passed: asking for them, and looking after what was asked for."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hourhand.client.flow import D, Document, Flow, endpoint, listing
from hourhand.client.resources.endpoints import Endpoints, filtered

Backfill = str | Mapping[str, Any]


class Backfills(Endpoints[D]):
    """Runs for times that have passed."""

    @endpoint
    def create(self, document: Mapping[str, Any], *, dry_run: bool = False) -> Flow[Document]:
        """Ask for the runs of a range: job, from, and to, rate, max_open, order, note, force where wanted."""
        return self._ask("POST", "/backfills", body=document, query={"dry_run": dry_run})

    @endpoint
    def get(self, backfill: Backfill) -> Flow[Document]:
        """One backfill and how far it is."""
        return self._ask("GET", _backfill_path(backfill))

    @listing
    def list(self, /, *, limit: int = 200, cursor: str | None = None, **filters: object) -> Flow[None]:
        """Backfills, newest first; filter job_id."""
        return self._pages("/backfills", filtered(limit, cursor, filters))

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of backfills as it is."""
        return self._ask("GET", "/backfills", query=filtered(limit, cursor, filters))

    @endpoint
    def pause(self, backfill: Backfill, *, dry_run: bool = False) -> Flow[Document]:
        """Make no more runs."""
        return self._change(_backfill_path(backfill, "/pause"), {}, dry_run)

    @endpoint
    def resume(self, backfill: Backfill, *, dry_run: bool = False) -> Flow[Document]:
        """Go on."""
        return self._change(_backfill_path(backfill, "/resume"), {}, dry_run)

    @endpoint
    def cancel(self, backfill: Backfill, *, dry_run: bool = False) -> Flow[Document]:
        """Remove what nobody has taken, and make no more."""
        return self._change(_backfill_path(backfill, "/cancel"), {}, dry_run)

    @listing
    def watch(self, backfill: Backfill, *, timeout_s: float | None = None) -> Flow[None]:
        """The backfill each time that it has changed, until it is over; TimeoutError when that takes too long."""
        return self._watch(
            _backfill_path(backfill),
            timeout_s,
            is_over=lambda one: one["finished_at"] is not None,
            standing=lambda one: f"the backfill {one['backfill_id']} is still {one['state']}",
        )


def _backfill_path(backfill: Backfill, tail: str = "") -> str:
    name = backfill if isinstance(backfill, str) else str(backfill["backfill_id"])
    return f"/backfills/{quote(name, safe='')}{tail}"
