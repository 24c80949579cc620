"""Instants as people read and write them: read in the job's zone, always with its offset; written as they say them."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from hourhand.clock import SystemClock
from hourhand.core.instant import (
    DAY_US,
    GIVEN_YEARS,
    HOUR_US,
    MINUTE_US,
    SECOND_US,
    format_in_zone,
    format_instant,
    may_be_given,
    parse_duration,
    parse_given_instant,
    parse_instant,
)
from hourhand.errors import NotFound

if TYPE_CHECKING:
    from hourhand.cli.options import Call

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAYS_FROM_TODAY = {"today": 0, "yesterday": -1, "tomorrow": 1}
_MOMENT = re.compile(
    r"(?:(?P<day>today|yesterday|tomorrow|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|\d{4}-\d\d-\d\d)[ t]+)?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?",
    re.ASCII,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def now() -> int:
    """The present instant."""
    return SystemClock().now()


def instant(text: str, option: str) -> int:
    """The instant that an option names."""
    try:
        return parse_given_instant(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def moment(text: str, zone: str, now_at: int, option: str) -> int:
    """The instant that people mean in a zone: RFC 3339, `09:00` today, `yesterday 09:00`, `Sat 09:00`, `2026-11-16 09:00`.

    A weekday is the last one, today included. Of a wall time that comes twice it is the first.
    """
    found = _MOMENT.fullmatch(text.strip().lower())
    if found is None:
        return instant(text, option)
    from hourhand.core.schedule import zone_info

    info = zone_info(zone)
    today = datetime.fromisoformat(format_in_zone(now_at, info)).replace(tzinfo=None)
    try:
        day = _day(found["day"] or "today", today)
        clock = {name: int(found[name] or 0) for name in ("hour", "minute", "second")}
        wall = day.replace(**clock, microsecond=0, tzinfo=info)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no time: {error}", param_hint=option) from None
    at = round(wall.timestamp()) * SECOND_US
    if not may_be_given(at):
        raise typer.BadParameter(f"{text!r} lies outside of {GIVEN_YEARS}", param_hint=option)
    return at


def duration_s(text: str | None, option: str) -> float | None:
    """The seconds that an option names."""
    if text is None:
        return None
    try:
        return parse_duration(text) / SECOND_US
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def day_or_time(text: str | None, zone: str) -> str | None:
    """What an option names, for the server to read; a date alone is its midnight in a zone."""
    if text is None or _DATE.fullmatch(text) is None:
        return text
    from hourhand.core.schedule import zone_info

    try:
        midnight = datetime.fromisoformat(text).replace(tzinfo=zone_info(zone))
    except ValueError:
        return text  # the server says why
    at = round(midnight.timestamp()) * SECOND_US
    return (
        format_instant(at) if may_be_given(at) else f"{text}T00:00:00Z"
    )  # the server says from when to when


def in_zone(text: str | None, zone: str | None) -> str | None:
    """A time of the API in a zone, to the second, such as `2026-11-16 09:00:00 +01:00`."""
    if text is None:
        return None
    from hourhand.core.schedule import zone_info

    local = format_in_zone(parse_instant(text) // SECOND_US * SECOND_US, zone_info(zone or "UTC"))
    return f"{local[:10]} {local[11:19]} {local[19:]}"


def zone_of(job: Mapping[str, Any], asked: str | None) -> str:
    """The zone that a job's times are shown in."""
    return asked or job.get("tz") or "UTC"


def zone_of_run(call: "Call", job_id: str) -> str:
    """The zone that a run's times are shown in: its job's, as long as there is one."""
    if call.tz:
        return call.tz
    try:
        return zone_of(call.client.jobs.get(job_id), None)
    except NotFound:
        return "UTC"


def weekday(local: str) -> str:
    """The short name of a day."""
    return f"{datetime.fromisoformat(local):%a}"


def from_now(text: str, now_at: int) -> str:
    """How far away a time is: `in 3 h`, `5 min ago`."""
    away_us = parse_instant(text) - now_at
    length = abs(away_us)
    for unit_us, unit in ((DAY_US, "d"), (HOUR_US, "h"), (MINUTE_US, "min"), (SECOND_US, "s")):
        if length >= unit_us:
            words = f"{length // unit_us} {unit}"
            return f"in {words}" if away_us > 0 else f"{words} ago"
    return "now"


def next_change(zone: str, now_at: int) -> str | None:
    """The next change of a zone's clocks in words; None where they no longer change."""
    from hourhand.core.schedule import next_zone_change, zone_info

    change = next_zone_change(zone, now_at)
    if change is None:
        return None
    before = format_in_zone(change.at - SECOND_US, zone_info(zone))
    after = format_in_zone(change.at, zone_info(zone))
    way = "forward" if change.new_offset_s > change.old_offset_s else "back"
    return f"{after[:10]}, clocks go {way} to {after[11:16]} ({before[19:]} to {after[19:]})"


def _day(word: str, today: datetime) -> datetime:
    if word in _DAYS_FROM_TODAY:
        return today + timedelta(days=_DAYS_FROM_TODAY[word])
    if word[:3] in _WEEKDAYS:
        return today - timedelta(days=(today.weekday() - _WEEKDAYS.index(word[:3])) % 7)
    return datetime.fromisoformat(word)
