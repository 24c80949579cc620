"""When a job's versions say that it should have run: the slow and plain way, second by second.

Shares nothing with the code under test but the records of versions. Knows the expressions that scripts use: fields of
`*`, numbers, ranges, lists and steps, whose minute or hour is open, so that they follow real time in every zone.
"""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from hourhand.core.model import AfterTiming, CronTiming, EveryTiming, JobSpec, OnceTiming, Version

_SECOND = 1_000_000
_BEFORE_S = 600  # a clock that is set back may show times from before the beginning
_BOUNDS = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def expected_times(versions: Sequence[Version], begins_at: int, until_at: int) -> set[int]:
    """Every nominal time up to an instant that a job's versions promise."""
    found: set[int] = set()
    used = 0
    for version in versions:
        if version.deleted:
            continue
        spec = version.spec
        ends_at = until_at if version.to_at is None else min(version.to_at, until_at)
        if isinstance(spec.timing, OnceTiming):
            if spec.timing.at <= ends_at:
                found.add(spec.timing.at)
            continue
        if isinstance(spec.timing, AfterTiming) or version.paused:
            continue
        after_at = version.from_at
        if spec.starts_at is not None:
            after_at = max(after_at, spec.starts_at - 1)
        if spec.ends_at is not None:
            ends_at = min(ends_at, spec.ends_at)
        times = times_of(spec, after_at, ends_at, begins_at, until_at)
        if spec.max_runs is not None:
            times = times[: max(0, spec.max_runs - used)]
        used += len(times)
        found.update(times)
    return found


def times_of(spec: JobSpec, after_at: int, ends_at: int, begins_at: int, until_at: int) -> list[int]:
    """The times of a rule after one instant and up to another."""
    match spec.timing:
        case EveryTiming(interval_us=interval_us, phase_at=phase_at):
            first = phase_at + ((after_at - phase_at) // interval_us + 1) * interval_us
            return list(range(first, ends_at + 1, interval_us))
        case CronTiming(expression=expression, tz=tz):
            times = _cron_times(expression, tz, begins_at, until_at)
            return times[bisect_right(times, after_at) : bisect_right(times, ends_at)]
    raise AssertionError("it has no rule of its own")


@lru_cache(maxsize=64)
def _cron_times(expression: str, tz: str, begins_at: int, until_at: int) -> list[int]:
    fields = expression.split()
    fields = fields if len(fields) == 6 else ["0", *fields]
    seconds, *others = [_matching(field, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True)]
    minutes, hours, days, months, weekdays = others
    zone = ZoneInfo(tz)
    found = []
    first = begins_at // (60 * _SECOND) * 60 - _BEFORE_S
    for minute in range(first, until_at // _SECOND + 1, 60):
        wall = datetime.fromtimestamp(minute, UTC).astimezone(zone)
        on_day = wall.day in days and wall.month in months and wall.isoweekday() % 7 in weekdays
        if wall.minute in minutes and wall.hour in hours and on_day:
            found += [(minute + second) * _SECOND for second in sorted(seconds)]
    return [at for at in found if at <= until_at]


def _matching(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = low, high
        else:
            begin, _, end = span.partition("-")
            first, last = int(begin), int(end or begin)
        found.update(range(first, last + 1, int(step or 1)))
    return found
