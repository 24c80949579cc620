"""Whom a document says that its job follows, by id or by key: made ids before the document is read.

The only place that turns keys in `after` into ids, for every route that takes documents. Names do not count, since
several jobs may share one; the command line resolves them before it asks.
"""

from typing import Any

from hourhand.core.dag import MAX_PARENTS
from hourhand.core.fault import Fault
from hourhand.core.identity import format_job_id
from hourhand.services.foreseen import Foreseen
from hourhand.web.context import WebContext
from hourhand.web.faults import refusal
from hourhand.web.fields import shown


async def referenced(
    web: WebContext, tenant: str, document: dict[str, Any], foreseen: Foreseen | None = None
) -> dict[str, Any]:
    """The document with ids in `after`; Invalid points at each that means no job."""
    named = parents_named(document)
    if not named:
        return document
    if len(named) > MAX_PARENTS:
        expected = f"1 to {MAX_PARENTS} jobs"
        raise refusal([Fault(pointer="/after", expected=expected, got=f"{len(named):,}")])
    found = await web.graphs.find(tenant, named, foreseen)
    faults = [
        Fault(
            pointer=f"/after/{index}",
            expected="the id or the key of a job that there is",
            got=shown(text),
        )
        for index, (text, job_id) in enumerate(zip(named, found, strict=True))
        if job_id is None
    ]
    if faults:
        raise refusal(faults)
    return {**document, "after": [format_job_id(job_id) for job_id in found if job_id is not None]}


def parents_named(document: dict[str, Any]) -> list[str]:
    """The ids and keys in `after`; none where it is no list of texts, which its shape will say."""
    after = document.get("after")
    if not isinstance(after, list) or not all(isinstance(one, str) for one in after):
        return []
    return after
