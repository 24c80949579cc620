"""Runs that used up their tries: finding them, sending them back, discarding them."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hourhand.client.flow import D, Document, Flow, endpoint, listing
from hourhand.client.resources.endpoints import Endpoints, filtered
from hourhand.client.resources.runs import Run, run_id_of


class DeadLetters(Endpoints[D]):
    """Runs that used up their tries and wait for a person."""

    @listing
    def list(self, /, *, limit: int = 200, cursor: str | None = None, **filters: object) -> Flow[None]:
        """Dead letters, newest first; filters job_id, error, from_, to."""
        return self._pages("/dead-letters", filtered(limit, cursor, filters))

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of dead letters as it is."""
        query = filtered(limit, cursor, filters)
        return self._ask("GET", "/dead-letters", query=query)

    @endpoint
    def get(self, run: Run) -> Flow[Document]:
        """One dead letter with its whole run."""
        return self._ask("GET", f"/dead-letters/{quote(run_id_of(run), safe='@')}")

    @endpoint
    def groups(self, by: str = "error") -> Flow[Document]:
        """Counted by `error` or `job`."""
        return self._ask("GET", "/dead-letters", query={"group_by": by})

    @endpoint
    def requeue(
        self,
        runs: Sequence[Run] = (),
        *,
        filter: Mapping[str, Any] | None = None,
        downstream: bool = False,
        dry_run: bool = False,
    ) -> Flow[Document]:
        """Send them back as the same runs, by ids or by filter.

        With `downstream` also what was skipped because of them.
        """
        body = _selection(runs, filter, dry_run)
        body = {**body, "downstream": True} if downstream else body
        return self._change("/dead-letters/requeue", body, keyed=not dry_run)

    @endpoint
    def discard(
        self, runs: Sequence[Run] = (), *, filter: Mapping[str, Any] | None = None, dry_run: bool = False
    ) -> Flow[Document]:
        """Remove them; history keeps them."""
        body = _selection(runs, filter, dry_run)
        return self._change("/dead-letters/discard", body, keyed=not dry_run)


def _selection(runs: Sequence[Run], filter: Mapping[str, Any] | None, dry_run: bool) -> Document:
    body: Document = (
        {"filter": dict(filter)} if filter is not None else {"ids": [run_id_of(run) for run in runs]}
    )
    return {**body, "dry_run": True} if dry_run else body
