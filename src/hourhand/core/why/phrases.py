"""The short words that verdicts are made of: instants in a job's zone, lengths of time, lists."""

from collections.abc import Sequence

from hourhand.core.instant import DAY_US, SECOND_US, format_duration, format_in_zone
from hourhand.core.model import CronTiming, Timing
from hourhand.core.schedule import zone_info

_MOST_LISTED = 5


def zone_name(timing: Timing) -> str:
    """The zone that people read a job's times in."""
    return timing.tz if isinstance(timing, CronTiming) else "UTC"


def local(at: int, zone: str) -> str:
    """An instant as it is read in a zone, such as `2026-11-16 09:00:00 +01:00`."""
    text = format_in_zone(at, zone_info(zone))
    return f"{text[:10]} {text[11:-6]} {text[-6:]}"


def length(us: int) -> str:
    """A length of time, as exact as people want it: milliseconds below ten seconds, seconds below a day."""
    if us < 1_000:
        return "under 1ms"
    unit_us = 1_000 if us < 10 * SECOND_US else SECOND_US if us < DAY_US else 60 * SECOND_US
    return format_duration(us // unit_us * unit_us)


def listed(words: Sequence[str]) -> str:
    """`a, b and c`; of many the first few and how many more."""
    if len(words) > _MOST_LISTED:
        words = [*words[: _MOST_LISTED - 1], f"{len(words) - _MOST_LISTED + 1} others"]
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
