"""What applying does to the fires of the next 7 days: of each job as the server tells it, of those that go, and in all."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hourhand.cli.text import plural
from hourhand.cli.times import in_zone
from hourhand.errors import NotFound

if TYPE_CHECKING:
    from hourhand.client import Client

DAYS = 7
LISTED = 3  # times of one job that people are shown; --json has more
_KINDS = ("added", "removed", "moved")


def fires_that_go(client: "Client", job: Mapping[str, Any]) -> dict[str, Any] | None:
    """What deleting a job takes away; None where it follows others."""
    try:
        coming = client.jobs.next(job, n=LISTED, days=DAYS)
    except NotFound:  # somebody else was faster
        return None
    count = coming.get("fires")
    if count is None:
        return None
    times = [one["at"] for one in coming["data"] if one["fires"]][:count]
    return {
        "before": count,
        "after": 0,
        "added": 0,
        "removed": count,
        "moved": 0,
        "added_at": [],
        "removed_at": times,
        "moved_at": [],
    }


def fires_in_all(found: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """The sums over jobs. `uncounted`: jobs with too many fires to tell, of which only before and after are known."""
    told = [one for one in found if one is not None]
    sums: dict[str, Any] = {
        name: sum(one[name] or 0 for one in told) for name in ("before", "after", *_KINDS)
    }
    return {"days": DAYS, **sums, "uncounted": sum(one["moved"] is None for one in told)}


def fires_in_words(fires: Mapping[str, Any] | None) -> str | None:
    """What becomes of fires, in one line; None where nothing does."""
    if fires is None:
        return None
    if fires["added"] is None:
        return f"too many to compare: {fires['before']:,} before, {fires['after']:,} after"
    parts = [f"{fires[kind]:,} {kind}" for kind in _KINDS if fires[kind]]
    return ", ".join(parts) or None


def times_in_words(fires: Mapping[str, Any] | None, zone: str | None) -> list[str]:
    """The first times that move, come and go."""
    if fires is None:
        return []
    lines = [f"{in_zone(one['from'], zone)} -> {in_zone(one['to'], zone)}" for one in fires["moved_at"]]
    lines = lines[:LISTED]
    lines += [f"+ {in_zone(at, zone)}" for at in fires["added_at"][:LISTED]]
    lines += [f"- {in_zone(at, zone)}" for at in fires["removed_at"][:LISTED]]
    shown = len(lines)
    more = sum(fires[kind] or 0 for kind in _KINDS) - shown
    return [*lines, f"and {more:,} more"] if shown and more > 0 else lines


def summary_of_fires(fires: Mapping[str, Any]) -> str:
    """One line for all jobs."""
    words = ", ".join(f"{fires[kind]:,} {kind}" for kind in _KINDS)
    left = plural(fires["uncounted"], "job")
    beside = f"; {left} with too many to compare" if fires["uncounted"] else ""
    return f"fires in the next {DAYS} days: {words}{beside}"
