"""Which job is meant by commands that look back: deleted ones have a past too, but no name or key any more."""

from typing import Any

from hourhand.cli.options import Call
from hourhand.core.identity import parse_job_id
from hourhand.errors import NotFound


def known_job(call: Call, reference: str) -> dict[str, Any]:
    """The job that is meant; one that was deleted is known by its id alone."""
    try:
        return call.client.jobs.resolve(reference)
    except NotFound:
        try:
            parse_job_id(reference)
        except ValueError:
            pass
        else:
            return {"job_id": reference}
        raise
