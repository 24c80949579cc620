"""Audits: the API answers for some jobs at a time where there are very many; the parts are put together here."""

from hourhand.client.flow import D, Document, Flow, endpoint
from hourhand.client.resources.endpoints import Endpoints
from hourhand.client.resources.jobs import Job, job_id_of

MOST_FINDINGS = 1_000


class Audits(Endpoints[D]):
    """Whether every time that was promised is accounted for."""

    @endpoint
    def page(
        self,
        *,
        from_: str | None = None,
        to: str | None = None,
        job: Job | None = None,
        by_job: bool = False,
        cursor: str | None = None,
    ) -> Flow[Document]:
        """One part of an audit; `next_cursor` says where it goes on."""
        return self._part(from_, to, job, by_job, cursor)

    @endpoint
    def run(
        self,
        *,
        from_: str | None = None,
        to: str | None = None,
        job: Job | None = None,
        by_job: bool = False,
    ) -> Flow[Document]:
        """A whole audit, in as many parts as it takes; an hour up to now unless told otherwise.

        With `by_job` the first 1,000 jobs are told one by one; `page` has all of them.
        """
        whole = part = yield from self._part(from_, to, job, by_job, None)
        while part["next_cursor"] is not None:
            each = by_job and len(whole["by_job"]) < MOST_FINDINGS
            part = yield from self._part(None, None, None, each, part["next_cursor"])
            whole = added(whole, part)
        return whole

    def _part(
        self, from_: str | None, to: str | None, job: Job | None, by_job: bool, cursor: str | None
    ) -> Flow[Document]:
        job_id = None if job is None else job_id_of(job)
        query = {"from": from_, "to": to, "job_id": job_id, "by_job": by_job or None, "cursor": cursor}
        return self._ask("GET", "/audit", query=query)


def added(whole: Document, part: Document) -> Document:
    """Numbers added, lists joined up to their limit."""
    summed = {**whole, "next_cursor": part["next_cursor"], "complete": part["complete"]}
    for name, value in whole.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            summed[name] = value + part[name]
        elif isinstance(value, dict):
            summed[name] = {key: number + part[name][key] for key, number in value.items()}
        elif isinstance(value, list):
            summed[name] = (value + [one for one in part[name] if one not in value])[:MOST_FINDINGS]
    summed["complete"] = not summed["unread"] and not summed["partial"] and summed["next_cursor"] is None
    return summed
