"""The endpoints, each written once: which request it is, and what of the answer is given back.

A job may be named by its id or by any document that holds one; keys and names go through `Jobs.resolve`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hourhand.client.audit_parts import added
from hourhand.client.exchange import Patience, document_in, exchange
from hourhand.client.flow import D, Document, Flow, Item, Pause, Request, Resource, endpoint, listing
from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import FINAL

FIRST_LOOK_S = 0.1
LONGEST_LOOK_S = 1.0
LOG_WAIT_S = 10

Job = str | Mapping[str, Any]
Run = str | Mapping[str, Any]
Backfill = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What all endpoints of a client share."""

    server: str
    patience: Patience
    clock: Clock
    new_key: Callable[[], str]


class _Endpoints(Resource[D]):
    def __init__(self, driver: D, session: Session) -> None:
        super().__init__(driver)
        self._session = session

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: object = None,
        repeatable: bool | None = None,
    ) -> Flow[Document]:
        request = Request(
            method=method,
            path=path,
            query={
                name: _text(value) for name, value in (query or {}).items() if value not in (None, False, [])
            },
            headers={name: value for name, value in (headers or {}).items() if value is not None},
            body=body,
            repeatable=method in ("GET", "PUT") if repeatable is None else repeatable,
        )
        answer = yield from exchange(request, self._session.patience, self._session.server)
        document: Document = document_in(answer, self._session.server)
        return document

    def _change(
        self, path: str, body: object, dry_run: bool = False, headers: Mapping[str, str] | None = None
    ) -> Flow[Document]:
        """A POST that does no more when it is repeated."""
        query = {"dry_run": dry_run}
        return self._ask("POST", path, body=body, query=query, headers=headers, repeatable=True)

    def _pages(self, path: str, query: Mapping[str, object]) -> Flow[None]:
        cursor = query.get("cursor")
        while True:
            page = yield from self._ask("GET", path, query={**query, "cursor": cursor})
            for document in page["data"]:
                yield Item(document)
            cursor = page.get("next_cursor")
            if cursor is None:
                return


class Jobs(_Endpoints[D]):
    """Everything about jobs."""

    @endpoint
    def create(
        self, document: Mapping[str, Any], *, idempotency_key: str | None = None, dry_run: bool = False
    ) -> Flow[Document]:
        """Store a job; gives its whole document."""
        headers = {
            "Prefer": "return=representation",
            "Idempotency-Key": idempotency_key or self._session.new_key(),
        }
        return self._ask("POST", "/jobs", body=document, headers=headers, query={"dry_run": dry_run})

    @endpoint
    def get(self, job: Job) -> Flow[Document]:
        """One job."""
        return self._ask("GET", _job_path(job))

    @endpoint
    def resolve(self, reference: str) -> Flow[Document]:
        """The job that an id, a key or an unambiguous name means."""
        return self._ask("GET", "/jobs/resolve", query={"ref": reference})

    @listing
    def list(self, /, *, limit: int = 200, cursor: str | None = None, **filters: object) -> Flow[None]:
        """Jobs, newest first; filters such as state, tag, name, failing."""
        return self._pages("/jobs", {"limit": limit, "cursor": cursor, **filters})

    @endpoint
    def strips(self, jobs: Sequence[Job], *, limit: int = 30) -> Flow[Document]:
        """How the last runs of up to 100 jobs ended: `{data}`, oldest run first."""
        ids = [job if isinstance(job, str) else str(job["job_id"]) for job in jobs]
        return self._ask("GET", "/jobs/strips", query={"job_id": ids, "limit": limit})

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of jobs as it is: `{data, next_cursor}`."""
        return self._ask("GET", "/jobs", query={"limit": limit, "cursor": cursor, **filters})

    @endpoint
    def update(
        self,
        job: Job,
        patch: Mapping[str, Any],
        *,
        version: int | None = None,
        with_roots: bool = False,
        dry_run: bool = False,
    ) -> Flow[Document]:
        """Change what the patch names; with `version`, only if nobody changed it since.

        With `with_roots` the other roots of its graph get the same times at the same moment.
        """
        headers = {"If-Match": _etag(version), "Content-Type": "application/merge-patch+json"}
        query = {"with_roots": with_roots, "dry_run": dry_run}
        return self._ask("PATCH", _job_path(job), body=patch, headers=headers, query=query)

    @endpoint
    def replace(
        self,
        job: Job,
        document: Mapping[str, Any],
        *,
        version: int | None = None,
        with_roots: bool = False,
        dry_run: bool = False,
    ) -> Flow[Document]:
        """Put a whole document in its place; `with_roots` as in `update`."""
        headers = {"If-Match": _etag(version)}
        query = {"with_roots": with_roots, "dry_run": dry_run}
        return self._ask("PUT", _job_path(job), body=document, headers=headers, query=query)

    @endpoint
    def upsert(self, key: str, document: Mapping[str, Any], *, dry_run: bool = False) -> Flow[Document]:
        """Create the job with this key, or replace it; never un-pauses."""
        path = f"/jobs/by-key/{quote(key)}"
        return self._ask("PUT", path, body=document, query={"dry_run": dry_run})

    @endpoint
    def pause(
        self, job: Job, *, note: str | None = None, until: str | None = None, dry_run: bool = False
    ) -> Flow[Document]:
        """Make no runs, until resumed or until a time."""
        body = {name: text for name, text in (("note", note), ("until", until)) if text is not None}
        return self._change(_job_path(job, "/pause"), body, dry_run)

    @endpoint
    def resume(self, job: Job, *, dry_run: bool = False) -> Flow[Document]:
        """Make runs again."""
        return self._change(_job_path(job, "/resume"), {}, dry_run)

    @endpoint
    def delete(self, job: Job, *, cancel_running: bool = False, dry_run: bool = False) -> Flow[Document]:
        """Remove a job; a running run finishes unless told otherwise."""
        query = {"cancel_running": cancel_running, "dry_run": dry_run}
        return self._ask("DELETE", _job_path(job), query=query)

    @endpoint
    def run(
        self,
        job: Job,
        *,
        downstream: bool = False,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Flow[Document]:
        """A run beside the schedule, due at once: `{run_id}`. The key makes a repeat the same run.

        With `downstream` all that follow the job run after it; the answer says how many, `followed_by`.
        """
        headers = {"Idempotency-Key": idempotency_key or self._session.new_key()}
        body = {"downstream": True} if downstream else {}
        return self._change(_job_path(job, "/run"), body, dry_run, headers)

    @endpoint
    def graph(self, job: Job, *, at: str | None = None) -> Flow[Document]:
        """It with all jobs that hang together with it; `at` is a nominal time or `latest`."""
        return self._ask("GET", _job_path(job, "/graph"), query={"at": at})

    @endpoint
    def skip(
        self,
        job: Job,
        at: str | None = None,
        *,
        note: str | None = None,
        undo: bool = False,
        dry_run: bool = False,
    ) -> Flow[Document]:
        """Let a coming time pass without a run, the next unless given; or with `undo` let it run after all."""
        body = {"at": at, "note": note, "undo": undo or None}
        named = {name: value for name, value in body.items() if value is not None}
        return self._ask("POST", _job_path(job, "/skip"), body=named, query={"dry_run": dry_run})

    @endpoint
    def clone(
        self, job: Job, patch: Mapping[str, Any] | None = None, *, dry_run: bool = False
    ) -> Flow[Document]:
        """Another job like this one, changed by a patch; paused unless that says otherwise."""
        headers = {
            "Content-Type": "application/merge-patch+json",
            "Idempotency-Key": self._session.new_key(),
        }
        query = {"dry_run": dry_run}
        return self._ask("POST", _job_path(job, "/clone"), body=patch or {}, headers=headers, query=query)

    @endpoint
    def status(self, job: Job) -> Flow[Document]:
        """What it is up to, in one look."""
        return self._ask("GET", _job_path(job, "/status"))

    @listing
    def history(self, job: Job, *, limit: int = 200, cursor: str | None = None) -> Flow[None]:
        """Its runs, newest first, the coming and running ones included."""
        return self._pages(_job_path(job, "/history"), {"limit": limit, "cursor": cursor})

    @endpoint
    def history_page(self, job: Job, *, limit: int = 50, cursor: str | None = None) -> Flow[Document]:
        """One page of its runs as it is."""
        query = {"limit": limit, "cursor": cursor}
        return self._ask("GET", _job_path(job, "/history"), query=query)

    @endpoint
    def next(self, job: Job, *, n: int = 10) -> Flow[Document]:
        """Its coming times."""
        return self._ask("GET", _job_path(job, "/next"), query={"n": n})

    @endpoint
    def why(self, job: Job, *, at: str | None = None) -> Flow[Document]:
        """Why a nominal time ran, waits or did not, with what would change it; `at` may be `last` or `next`."""
        return self._ask("GET", _job_path(job, "/why"), query={"at": at})

    @endpoint
    def missed(self, job: Job) -> Flow[Document]:
        """What it missed while nothing planned."""
        return self._ask("GET", _job_path(job, "/missed"))

    @endpoint
    def versions(self, job: Job) -> Flow[Document]:
        """What it was, from when to when."""
        return self._ask("GET", _job_path(job, "/versions"))

    @endpoint
    def apply(
        self, documents: Iterable[Mapping[str, Any]], *, take_over: bool = False, dry_run: bool = False
    ) -> Flow[Document]:
        """Make up to 1,000 jobs what their documents say, by key; says for each what differs."""
        query = {"take_over": take_over, "dry_run": dry_run}
        return self._ask("POST", "/jobs/apply", body=[*documents], query=query, repeatable=True)

    @endpoint
    def bulk(self, documents: Iterable[Mapping[str, Any]]) -> Flow[Document]:
        """Create up to 1,000 jobs; says for each what became of it."""
        headers = {"Idempotency-Key": self._session.new_key()}
        return self._ask("POST", "/jobs/bulk", body=[*documents], headers=headers)


class Runs(_Endpoints[D]):
    """Everything about runs."""

    @listing
    def list(self, /, *, limit: int = 200, cursor: str | None = None, **filters: object) -> Flow[None]:
        """Finished runs across jobs in a window of time; filters from, to, job_id, state."""
        return self._pages("/runs", {"limit": limit, "cursor": cursor, **filters})

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of runs as it is."""
        return self._ask("GET", "/runs", query={"limit": limit, "cursor": cursor, **filters})

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
        return self._ask("GET", _run_path(run, "/log"), query=query)

    @listing
    def logs(
        self, run: Run, *, attempt: int | None = None, after: str | None = None, follow: bool = False
    ) -> Flow[None]:
        """What it said, piece by piece; with `follow` until it has ended."""
        wait = LOG_WAIT_S if follow else None
        while True:
            query = {"attempt": attempt, "after": after, "limit": 200, "wait": wait}
            page = yield from self._ask("GET", _run_path(run, "/log"), query=query)
            for chunk in page["data"]:
                yield Item(chunk)
            if page["done"] or (not page["data"] and not follow):
                return
            if not page["data"]:
                yield Pause(seconds=FIRST_LOOK_S)
            after = page["next_after"]

    @endpoint
    def rerun(self, run: Run, *, idempotency_key: str | None = None, dry_run: bool = False) -> Flow[Document]:
        """A new run that repeats one which has ended: `{run_id}`. The key makes a repeat the same run."""
        headers = {"Idempotency-Key": idempotency_key or self._session.new_key()}
        return self._change(_run_path(run, "/rerun"), {}, dry_run, headers)

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
        headers = {"Authorization": f"Bearer {token}"}
        return self._change(_run_path(run, "/report"), body, dry_run, headers)

    @listing
    def watch(self, run: Run, *, timeout_s: float | None = None) -> Flow[None]:
        """The run each time that it has changed, the final state last; TimeoutError when that takes too long."""
        return self._watch(run, timeout_s)

    @endpoint
    def wait(self, run: Run, *, timeout_s: float | None = None) -> Flow[Document]:
        """The run once it is final."""
        last: Document = {}
        watching, reply = self._watch(run, timeout_s), None
        while True:
            try:
                step = watching.send(reply)
            except StopIteration:
                return last
            if isinstance(step, Item):
                last, reply = step.value, None
            else:
                reply = yield step

    def _watch(self, run: Run, timeout_s: float | None) -> Flow[None]:
        clock = self._session.clock
        ends_at = None if timeout_s is None else clock.now() + int(timeout_s * SECOND_US)
        seen, look_s = None, FIRST_LOOK_S
        while True:
            document = yield from self._ask("GET", _run_path(run))
            if document != seen:
                yield Item(document)
                seen, look_s = document, FIRST_LOOK_S
            if document["status"] in FINAL:
                return
            if ends_at is not None and clock.now() >= ends_at:
                raise TimeoutError(f"the run is still {document['status']} after {timeout_s:g} s")
            yield Pause(seconds=look_s)
            look_s = min(look_s * 1.5, LONGEST_LOOK_S)


class Backfills(_Endpoints[D]):
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
        return self._pages("/backfills", {"limit": limit, "cursor": cursor, **filters})

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of backfills as it is."""
        return self._ask("GET", "/backfills", query={"limit": limit, "cursor": cursor, **filters})

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
        clock = self._session.clock
        ends_at = None if timeout_s is None else clock.now() + int(timeout_s * SECOND_US)
        seen, look_s = None, FIRST_LOOK_S
        while True:
            document = yield from self._ask("GET", _backfill_path(backfill))
            if document != seen:
                yield Item(document)
                seen, look_s = document, FIRST_LOOK_S
            if document["finished_at"] is not None:
                return
            if ends_at is not None and clock.now() >= ends_at:
                raise TimeoutError(f"the backfill is still {document['state']} after {timeout_s:g} s")
            yield Pause(seconds=look_s)
            look_s = min(look_s * 1.5, LONGEST_LOOK_S)


class DeadLetters(_Endpoints[D]):
    """Runs that used up their tries and wait for a person."""

    @listing
    def list(self, /, *, limit: int = 200, cursor: str | None = None, **filters: object) -> Flow[None]:
        """Dead letters, newest first; filters job_id, error, from, to."""
        return self._pages("/dead-letters", {"limit": limit, "cursor": cursor, **filters})

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of dead letters as it is."""
        query = {"limit": limit, "cursor": cursor, **filters}
        return self._ask("GET", "/dead-letters", query=query)

    @endpoint
    def get(self, run: Run) -> Flow[Document]:
        """One dead letter with its whole run."""
        return self._ask("GET", f"/dead-letters/{quote(_run_id(run), safe='@')}")

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
        return self._change("/dead-letters/requeue", {**body, "downstream": True} if downstream else body)

    @endpoint
    def discard(
        self, runs: Sequence[Run] = (), *, filter: Mapping[str, Any] | None = None, dry_run: bool = False
    ) -> Flow[Document]:
        """Remove them; history keeps them."""
        body = _selection(runs, filter, dry_run)
        return self._change("/dead-letters/discard", body)


class System(_Endpoints[D]):
    """The whole, in one look."""

    @endpoint
    def overview(self) -> Flow[Document]:
        """Sizes, live processes, the last hour by the minute, and what changed of jobs."""
        return self._ask("GET", "/overview")

    @endpoint
    def nodes(self) -> Flow[Document]:
        """The processes of the cluster: `{data}`."""
        return self._ask("GET", "/nodes")


class Audits(_Endpoints[D]):
    """Whether every time that was promised is accounted for."""

    @endpoint
    def page(
        self,
        *,
        from_: str | None = None,
        to: str | None = None,
        job: Job | None = None,
        cursor: str | None = None,
    ) -> Flow[Document]:
        """One part of an audit; `next_cursor` says where it goes on."""
        return self._part(from_, to, job, cursor)

    @endpoint
    def run(
        self, *, from_: str | None = None, to: str | None = None, job: Job | None = None
    ) -> Flow[Document]:
        """A whole audit, in as many parts as it takes; an hour up to now unless told otherwise."""
        whole = part = yield from self._part(from_, to, job, None)
        while part["next_cursor"] is not None:
            part = yield from self._part(None, None, None, part["next_cursor"])
            whole = added(whole, part)
        return whole

    def _part(self, from_: str | None, to: str | None, job: Job | None, cursor: str | None) -> Flow[Document]:
        job_id = job if job is None or isinstance(job, str) else str(job["job_id"])
        query = {"from": from_, "to": to, "job_id": job_id, "cursor": cursor}
        return self._ask("GET", "/audit", query=query)


def _job_path(job: Job, tail: str = "") -> str:
    return f"/jobs/{quote(job if isinstance(job, str) else str(job['job_id']), safe='')}{tail}"


def _backfill_path(backfill: Backfill, tail: str = "") -> str:
    name = backfill if isinstance(backfill, str) else str(backfill["backfill_id"])
    return f"/backfills/{quote(name, safe='')}{tail}"


def _run_path(run: Run, tail: str = "") -> str:
    return f"/runs/{quote(_run_id(run), safe='@')}{tail}"


def _run_id(run: Run) -> str:
    return run if isinstance(run, str) else str(run["run_id"])


def _selection(runs: Sequence[Run], filter: Mapping[str, Any] | None, dry_run: bool) -> Document:
    body: Document = (
        {"filter": dict(filter)} if filter is not None else {"ids": [_run_id(run) for run in runs]}
    )
    return {**body, "dry_run": True} if dry_run else body


def _etag(version: int | None) -> str | None:
    return None if version is None else f'"{version}"'


def _text(value: object) -> str | list[str]:
    if isinstance(value, list | tuple):
        return [str(one) for one in value]
    return "true" if value is True else str(value)
