"""What a zone's changes make of wall times, under a gap and a fold policy.

A change forwards leaves a gap: wall times that do not exist. A change backwards makes a fold: wall times
that come twice. For each stretch of constant offset this module says which wall times fire in it, and
which wall times of the gap before it are made up for. Every stretch is longer than the changes at its
ends (the tests hold all zones to that), so neighbours are all that matters.

    gap   after  the missing times fire once, together, when the gap ends
          shift  each fires as much later as the gap is long: 02:30 at 03:30
          skip   they do not fire
    fold  first, second, both: which pass of a repeated time fires

A jump of more than three hours is no summer time but a moved date line: nothing is made up for.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from hourhand.core.schedule.zone import ENDLESS, Timeline, far_timeline, timeline

LONGEST_GAP_S = 3 * 3_600


class Gap(StrEnum):
    """What becomes of a wall time that a change drops."""

    AFTER = "after"
    SKIP = "skip"
    SHIFT = "shift"


class Fold(StrEnum):
    """Which pass of a repeated wall time fires; AUTO depends on the expression, and no rule keeps it."""

    AUTO = "auto"
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Per stretch k, all in seconds: instants, or wall times where the name says so."""

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    wall_from: tuple[int, ...]  # the wall times that fire in stretch k: [wall_from, wall_to)
    wall_to: tuple[int, ...]
    gap_from: tuple[int, ...]  # those of the gap before it that are made up for: [gap_from, gap_to)
    gap_to: tuple[int, ...]
    made_up_until: tuple[int, ...]  # what is made up for fires in [start, made_up_until], -ENDLESS if nothing
    end: int  # complete before this second


@lru_cache(maxsize=4096)
def windows(zone: str, gap: Gap, fold: Fold, *, far: bool) -> Windows:
    """The windows of a zone, up to the year 2200 or as far as time can be printed."""
    line = far_timeline(zone) if far else timeline(zone)
    count = len(line.starts) if line.end == ENDLESS else len(line.starts) - 1
    columns = zip(*(_stretch(line, k, gap, fold) for k in range(count)), strict=True)
    wall_from, wall_to, gap_from, gap_to, made_up_until = columns
    return Windows(
        starts=line.starts[:count],
        offsets=line.offsets[:count],
        wall_from=wall_from,
        wall_to=wall_to,
        gap_from=gap_from,
        gap_to=gap_to,
        made_up_until=made_up_until,
        end=line.end,
    )


def _stretch(line: Timeline, k: int, gap: Gap, fold: Fold) -> tuple[int, int, int, int, int]:
    start, offset = line.starts[k], line.offsets[k]
    end = line.starts[k + 1] if k + 1 < len(line.starts) else ENDLESS
    wall_from, wall_to = start + offset, end + offset
    before = start + line.offsets[k - 1] if k else wall_from  # where the wall clock stood when it changed
    after = end + line.offsets[k + 1] if k + 1 < len(line.starts) else wall_to
    if fold is Fold.FIRST:
        wall_from = max(wall_from, before)
    elif fold is Fold.SECOND:
        wall_to = min(wall_to, after)
    missing = start + offset - before
    if gap is Gap.SKIP or not 0 < missing <= LONGEST_GAP_S:
        return wall_from, wall_to, before, before, -ENDLESS
    made_up_until = start if gap is Gap.AFTER else start + missing - 1
    return wall_from, wall_to, before, before + missing, made_up_until
