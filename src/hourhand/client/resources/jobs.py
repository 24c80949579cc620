"""Everything about jobs. One may be named by its id or by any document that holds one; keys and names go through `resolve`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hourhand.client.flow import D, Document, Flow, endpoint, listing
from hourhand.client.resources.endpoints import Endpoints, filtered

Job = str | Mapping[str, Any]


class Jobs(Endpoints[D]):
    """Everything about jobs."""

    @endpoint
    def create(
        self, document: Mapping[str, Any], *, idempotency_key: str | None = None, dry_run: bool = False
    ) -> Flow[Document]:
        """Store a job; gives its whole document."""
        headers, query = {"Prefer": "return=representation"}, {"dry_run": dry_run}
        return self._ask("POST", "/jobs", body=document, headers=headers, query=query, key=idempotency_key)

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
        return self._pages("/jobs", filtered(limit, cursor, filters))

    @listing
    def export(self, /, **filters: object) -> Flow[None]:
        """All jobs that match, newest first, in one answer that is read as it comes: for many, with one request.

        Unreachable where it breaks off in the middle; `list` asks page by page, and tries each again.
        """
        return self._lines("/jobs", filtered(None, None, filters))

    @endpoint
    def strips(self, jobs: Sequence[Job], *, limit: int = 30) -> Flow[Document]:
        """How the last runs of up to 100 jobs ended: `{data}`, oldest run first."""
        ids = [job_id_of(job) for job in jobs]
        return self._ask("GET", "/jobs/strips", query={"job_id": ids, "limit": limit})

    @endpoint
    def page(self, /, *, limit: int = 50, cursor: str | None = None, **filters: object) -> Flow[Document]:
        """One page of jobs as it is: `{data, next_cursor}`."""
        return self._ask("GET", "/jobs", query=filtered(limit, cursor, filters))

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
        body = {"downstream": True} if downstream else {}
        return self._change(_job_path(job, "/run"), body, dry_run, key=idempotency_key)

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
        headers = {"Content-Type": "application/merge-patch+json"}
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
    def next(self, job: Job, *, n: int = 10, days: int | None = None, others: bool = False) -> Flow[Document]:
        """Its coming times; with `days` also how many there are in so many, `fires`; with `others` what fires `beside` it."""
        return self._ask("GET", _job_path(job, "/next"), query={"n": n, "days": days, "others": others})

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
        return self._ask("POST", "/jobs/bulk", body=[*documents])


def job_id_of(job: Job) -> str:
    """The id of a job that is named somehow."""
    return job if isinstance(job, str) else str(job["job_id"])


def _job_path(job: Job, tail: str = "") -> str:
    return f"/jobs/{quote(job_id_of(job), safe='')}{tail}"


def _etag(version: int | None) -> str | None:
    return None if version is None else f'"{version}"'
