"""Everything about runs: finding, following, cancelling and repeating them, their logs, and reports on their attempts."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hourhand.client.flow import D, Document, Flow, Item, Pause, endpoint, listing
from hourhand.client.resources import endpoints
from hourhand.client.resources.endpoints import Endpoints, filtered
from hourhand.core.lifecycle import FINAL

LOG_WAIT_S = 10

Run = str | Mapping[str, Any]


class Runs(Endpoints[D]):
    """Everything about runs."""

    @listing
    def list(self, /, *, limit: int = 200, cursor: str | None = None, **filters: object) -> Flow[None]:
        """Finished runs across jobs in a window of time; filters from_, to, job_id, state."""
        return self._pages("/runs", filtered(limit, cursor, filters))

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of runs as it is."""
        return self._ask("GET", "/runs", query=filtered(limit, cursor, filters))

    @endpoint
    def get(self, run: Run) -> Flow[Document]:
        """One run, wherever it is."""
        return self._ask("GET", _run_path(run))

    @endpoint
    def log(
        self,
        run: Run,
        *,
        attempt: int | None = None,
        after: str | None = None,
        limit: int = 100,
        wait_s: float = 0,
    ) -> Flow[Document]:
        """A page of what it said: `{data, next_after, done}`; waits for more where there is nothing yet."""
        query = {"attempt": attempt, "after": after, "limit": limit, "wait": wait_s or None}
        return self._ask("GET", _run_path(run, "/log"), query=query, wait_s=wait_s)

    @listing
    def logs(
        self, run: Run, *, attempt: int | None = None, after: str | None = None, follow: bool = False
    ) -> Flow[None]:
        """What it said, piece by piece; with `follow` until it has ended."""
        wait_s = LOG_WAIT_S if follow else 0
        while True:
            query = {"attempt": attempt, "after": after, "limit": 200, "wait": wait_s or None}
            page = yield from self._ask("GET", _run_path(run, "/log"), query=query, wait_s=wait_s)
            for chunk in page["data"]:
                yield Item(chunk)
            if page["done"] or (not page["data"] and not follow):
                return
            if not page["data"]:
                yield Pause(seconds=endpoints.FIRST_LOOK_S)
            after = page["next_after"]

    @endpoint
    def rerun(self, run: Run, *, idempotency_key: str | None = None, dry_run: bool = False) -> Flow[Document]:
        """A new run that repeats one which has ended: `{run_id}`. The key makes a repeat the same run."""
        return self._change(_run_path(run, "/rerun"), {}, dry_run, key=idempotency_key)

    @endpoint
    def cancel(self, run: Run, *, dry_run: bool = False) -> Flow[Document]:
        """Cancel it, or ask its worker to."""
        return self._change(_run_path(run, "/cancel"), {}, dry_run)

    @endpoint
    def report(
        self,
        run: Run,
        *,
        attempt: int,
        token: str,
        outcome: str = "succeeded",
        result: Any = None,
        error: str | None = None,
        retryable: bool | None = None,
        progress: float | None = None,
        message: str | None = None,
        extend_s: float | None = None,
        dry_run: bool = False,
    ) -> Flow[Document]:
        """Say how an attempt that its target accepted ended, or how far it is; `token` is that attempt's."""
        given = {
            "result": result,
            "error": error,
            "retryable": retryable,
            "progress": progress,
            "message": message,
            "extend_s": extend_s,
        }
        body = {name: value for name, value in given.items() if value is not None}
        body |= {"attempt": attempt, "outcome": outcome}
        # The attempt and its token are the key: the same report again is answered again.
        return self._ask(
            "POST",
            _run_path(run, "/report"),
            body=body,
            query={"dry_run": dry_run},
            headers={"Authorization": f"Bearer {token}"},
            keyed=False,
            repeatable=True,
        )

    @listing
    def watch(self, run: Run, *, timeout_s: float | None = None) -> Flow[None]:
        """The run each time that it has changed, the final state last; TimeoutError when that takes too long."""
        return self._watched(run, timeout_s)

    @endpoint
    def wait(self, run: Run, *, timeout_s: float | None = None) -> Flow[Document]:
        """The run once it is final."""
        last: Document = {}
        watching, reply = self._watched(run, timeout_s), None
        while True:
            try:
                step = watching.send(reply)
            except StopIteration:
                return last
            if isinstance(step, Item):
                last, reply = step.value, None
            else:
                reply = yield step

    def _watched(self, run: Run, timeout_s: float | None) -> Flow[None]:
        return self._watch(
            _run_path(run),
            timeout_s,
            is_over=lambda one: one["status"] in FINAL,
            standing=lambda one: f"the run {run_id_of(run)} is still {one['status']}",
        )


def run_id_of(run: Run) -> str:
    """The id of a run that is named somehow."""
    return run if isinstance(run, str) else str(run["run_id"])


def _run_path(run: Run, tail: str = "") -> str:
    return f"/runs/{quote(run_id_of(run), safe='@')}{tail}"
