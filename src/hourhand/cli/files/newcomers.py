"""Jobs that follow others which the same apply is yet to create: how they are tried before those are there.

In a dry run the server knows of such parents only within one request. Where a graph needs several, it is asked about the job on a schedule of its own, which checks
everything else, and what it says of the schedule is put right here. That the parents fit is checked when they are there.
"""

from collections.abc import Mapping
from typing import Any

from hourhand.cli.files.documents import FileJob

_SCHEDULE = ("cron", "tz", "dst", "every", "phase", "at", "after", "wait")
_OTHERS = ("cron", "every", "at")
_STAND_IN = {"cron": "@yearly"}


def awaits_new(job: FileJob, results: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether it follows a job of the same files that does not exist yet, and has no other schedule too."""
    after = job.document.get("after")
    if not isinstance(after, list) or any(job.document.get(name) is not None for name in _OTHERS):
        return False
    return any(isinstance(one, str) and results.get(one, {}).get("action") == "created" for one in after)


def without_parents(document: Mapping[str, Any]) -> dict[str, Any]:
    """The job on a schedule of its own."""
    rest = {name: value for name, value in document.items() if name not in ("after", "wait")}
    return {**rest, **_STAND_IN}


def with_parents(document: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """What the server said, as if it had known the parents."""
    if result["action"] == "failed":
        return result
    after = list(document["after"])
    right = {**result, "schedule_in_words": f"after {', '.join(after)}", "next_after": [], "fires": None}
    if result["action"] == "created":
        return right
    changes = result.get("changes") or []
    kept = [one for one in changes if one["field"].partition(".")[0] not in _SCHEDULE]
    before = next((one["before"] for one in changes if one["field"] == "after"), None)
    return {**right, "changes": [{"field": "after", "before": before, "after": after}, *kept]}
