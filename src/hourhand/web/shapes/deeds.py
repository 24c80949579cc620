"""Who did what, in answers."""

from typing import Any

from hourhand.core.deeds import Deed
from hourhand.core.identity import format_job_id
from hourhand.core.instant import format_instant
from hourhand.web.shapes.parts import A_JOB, A_TIME, Shape, always, sometimes


class DeedAnswer(Shape):
    """One thing that somebody did."""

    at: str = always("When.", A_TIME)
    subject: str = always("Who: the subject of the token; local where nobody is asked who they are.", "ann")
    via: str = always("How they were recognised: token, jwt or local.", "token")
    action: str = always("What was done.", "job.pause")
    what: str | None = always("To what: the id of a job, a run, a backfill or whatever else has one.", A_JOB)
    job_id: str | None = always("The job that it was about; null where it was about none.", A_JOB)
    version: int | None = always("The version of the job that it made; null where it made none.", 2)
    count: int | None = always("How many runs or jobs it was about, where that is more than one thing.", None)
    note: str | None = always("Why, where that was said.", "INC-42")
    request_id: str | None = always(
        "The request, as in its X-Request-Id; or the operation.", "01f3c5a7b9d0e2f4"
    )


class DeedList(Shape):
    """A page of deeds, newest first."""

    data: list[DeedAnswer] = always("The deeds.", [])
    next_cursor: str | None = always("Where the next page begins; null on the last.", None)
    partial: list[str] | None = sometimes("Databases that did not answer: theirs are not here.", ["shard 1"])


def deed_answer(deed: Deed) -> dict[str, Any]:
    """One thing that somebody did."""
    return {
        "at": format_instant(deed.at),
        "subject": deed.subject,
        "via": deed.via,
        "action": deed.action,
        "what": deed.done_to,
        "job_id": None if deed.job_id is None else format_job_id(deed.job_id),
        "version": deed.version,
        "count": deed.count,
        "note": deed.note,
        "request_id": deed.request_id,
    }
