"""Rules in plain English: good sentences for the common shapes, exact ones by field for the rest."""

from collections.abc import Iterable, Sequence

from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US, format_duration
from hourhand.core.schedule.days import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, Days
from hourhand.core.schedule.fields import LAST, runs
from hourhand.core.schedule.wall import WallTimes

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_LISTED_TIMES = 6


def describe_cron(wall: WallTimes, zone: str) -> str:
    """Such as `at 09:00 on Monday to Friday, Europe/Berlin`."""
    times, days = _times(wall), _days(wall.days)
    if not days and times.startswith("at ") and wall.per_day <= _LISTED_TIMES:
        days = "every day"
    return f"{times} {days}".rstrip() + f", {zone}"


def describe_interval(interval_us: int) -> str:
    """Such as `every 15 minutes`."""
    for unit_us, unit in ((DAY_US, "day"), (HOUR_US, "hour"), (MINUTE_US, "minute"), (SECOND_US, "second")):
        if interval_us % unit_us == 0:
            return _every(interval_us // unit_us, unit)
    return f"every {format_duration(interval_us)}"


def _times(wall: WallTimes) -> str:
    if wall.per_day <= _LISTED_TIMES:
        clock = [_clock(h, s, wall.seconds) for h in wall.hours for s in wall.in_hour]
        return f"at {_join(clock)}"
    if wall.seconds == (0,):
        return _minutes_of_hours(wall)
    if len(wall.minutes) == 60 and (step := _cadence(wall.seconds, 60)):
        return _every(step, "second") + _within_hours(wall)
    minutes = "every minute" if len(wall.minutes) == 60 else f"minute {_numbers(wall.minutes)}"
    seconds = "every second" if len(wall.seconds) == 60 else f"at second {_numbers(wall.seconds)}"
    return f"{seconds} of {minutes}{_of_hours(wall)}"


def _minutes_of_hours(wall: WallTimes) -> str:
    hours, minutes = wall.hours, wall.minutes
    if len(minutes) > 1 and (step := _cadence(minutes, 60)):
        return _every(step, "minute") + _within_hours(wall)
    if len(minutes) > 1:
        return f"at minute {_numbers(minutes)}{_of_hours(wall)}"
    if step := _cadence(hours, 24):
        return _every(step, "hour") + (f" at {minutes[0]} past" if minutes[0] else "")
    if _contiguous(hours):
        return f"every hour from {_clock(hours[0], minutes[0] * 60)} to {_clock(hours[-1], minutes[0] * 60)}"
    return "at " + _join([_clock(hour, minutes[0] * 60) for hour in hours])


def _within_hours(wall: WallTimes) -> str:
    if len(wall.hours) == 24:
        return ""
    if _contiguous(wall.hours):
        first = _clock(wall.hours[0], wall.in_hour[0], wall.seconds)
        return f" from {first} to {_clock(wall.hours[-1], wall.in_hour[-1], wall.seconds)}"
    return _of_hours(wall)


def _of_hours(wall: WallTimes) -> str:
    return " of every hour" if len(wall.hours) == 24 else f" of hour {_numbers(wall.hours)}"


def _days(days: Days) -> str:
    of_what = "the month" if days.months == ALL_MONTHS else _names(days.months, MONTHS, first=1)
    by_month, by_week = _by_month(days, of_what), _by_week(days, of_what)
    if by_month and by_week:
        return f"{by_month} or {by_week}" if days.either else f"{by_month} if that is {_any_of(days)}"
    found = by_month or by_week
    if days.months != ALL_MONTHS and of_what not in found:
        found = f"{found} in {of_what}" if found else f"every day in {of_what}"
    return found


def _by_month(days: Days, of_what: str) -> str:
    if days.of_month == ALL_DAYS:
        return ""
    parts = [f"day {_numbers(sorted(days.of_month))}"] if days.of_month else []
    parts += ["the last day"] * days.last_day + ["the last weekday"] * days.last_weekday
    return f"on {_join(parts)} of {of_what}"


def _by_week(days: Days, of_what: str) -> str:
    if days.of_week == ALL_WEEKDAYS:
        return ""
    parts = [_names(days.of_week, WEEKDAYS, first=0)] if days.of_week else []
    if days.nth_weekdays:
        parts.append(f"{_counted(days)} of {of_what}")
    return f"on {_join(parts)}"


def _any_of(days: Days) -> str:
    parts = [f"a {WEEKDAYS[day % 7]}" for day in _from_monday(days.of_week)]
    if days.nth_weekdays:
        parts.append(_counted(days))
    return _join(parts, "or")


def _counted(days: Days) -> str:
    pairs = sorted(days.nth_weekdays, key=lambda pair: (pair[1] == LAST, pair[1], pair[0]))
    return _join([f"the {_ORDINALS[n]} {WEEKDAYS[day]}" for day, n in pairs])


def _names(values: Iterable[int], names: Sequence[str], first: int) -> str:
    ordered = _from_monday(values) if names is WEEKDAYS else sorted(values)
    return _join(
        [
            names[(a - first) % len(names)] + (f" to {names[(b - first) % len(names)]}" if a != b else "")
            for a, b in runs(ordered)
        ]
    )


def _from_monday(weekdays: Iterable[int]) -> list[int]:
    """Sunday last, as 7, unless that would tear Sunday to Thursday apart."""
    chosen = set(weekdays)
    return sorted(chosen) if 1 in chosen and 6 not in chosen else sorted(day or 7 for day in chosen)


def _numbers(values: Sequence[int]) -> str:
    return _join([f"{a} to {b}" if a != b else f"{a}" for a, b in runs(values)])


def _clock(hour: int, in_hour: int, seconds: Sequence[int] = (0,)) -> str:
    minute, second = divmod(in_hour, 60)
    return f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if tuple(seconds) != (0,) else "")


def _every(count: int, unit: str) -> str:
    return f"every {unit}" if count == 1 else f"every {count} {unit}s"


def _cadence(values: Sequence[int], size: int) -> int | None:
    """The even step that these values keep from 0 round the clock, if there is one."""
    if len(values) < 2 or values[0] != 0 or size % values[1]:
        return None
    return values[1] if list(values) == list(range(0, size, values[1])) else None


def _contiguous(values: Sequence[int]) -> bool:
    return len(values) > 1 and values[-1] - values[0] == len(values) - 1


def _join(parts: Sequence[str], word: str = "and") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"
