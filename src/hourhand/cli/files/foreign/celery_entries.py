"""Entries of Celery's beat as jobs. Pure: where entries are kept is `celery_sources`'.

An entry names a task. It becomes a function of the same module that a worker of hourhand serves, or, via Celery, a command
that gives the task to Celery's own workers as beat did.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from hourhand.cli.files.foreign.cron_text import DAY_NAMES, MONTH_NAMES, Values, days_text, values_of
from hourhand.cli.files.foreign.found import Carried, Found, LeftOut, key_of, label_of, plain
from hourhand.cli.text import shortened
from hourhand.core.instant import SECOND_US, format_duration, format_instant
from hourhand.core.schedule import ScheduleError, parse_cron
from hourhand.core.skipping import MAX_NOTE

_CLEANUP = "celery.backend_cleanup"
_CALL_OPTIONS = ("queue", "exchange", "routing_key", "serializer", "expires")
_INSTEAD = {
    "queue": "the job runs in the pool default; give it a pool, and workers with --pool",
    "exchange": "there is no such thing here",
    "routing_key": "the job runs in the pool default; give it a pool, and workers with --pool",
    "priority": "give the job a priority of HIGH, MEDIUM or LOW",
    "expires": "how late a run may begin is its misfire.grace; with the policy skip it then does not run",
    "expire_seconds": "how late a run may begin is its misfire.grace; with the policy skip it then does not run",
    "headers": "put them into the payload",
    "countdown": "it runs at its time",
    "eta": "it runs at its time",
    "retry": "a job has retries of its own",
    "retry_policy": "a job has retries of its own",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CronFields:
    """A schedule by the clock, each field as it is written there."""

    minute: str = "*"
    hour: str = "*"
    day_of_week: str = "*"
    day_of_month: str = "*"
    month_of_year: str = "*"
    tz: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """So long after the last run. `relative`: rounded down to the whole day, hour or minute, by how long it is."""

    every: timedelta
    relative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocked:
    """Once."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A schedule that has no counterpart, in words."""

    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of the beat, wherever it was kept."""

    place: str
    name: str
    task: str
    schedule: CronFields | Interval | Clocked | Other
    args: Any = ()
    kwargs: Any = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    one_off: bool = False
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    last_run_at: datetime | None = None
    description: str = ""


def carry_entries(entries: Iterable[Entry], found: Found, set_name: str, via_celery: str | None) -> None:
    """Make a job of each entry, or say why there is none."""
    for entry in entries:
        if entry.task == _CLEANUP and via_celery is None:
            continue  # beat adds it by itself, for results that Celery keeps
        losses: list[str] = []
        try:
            document = _document(entry, set_name, via_celery, losses.append)
        except LeftOut as error:
            found.lose(entry.place, str(error), left_out=True)
            continue
        found.jobs.append(Carried(place=entry.place, document=document))
        for reason in losses:
            found.lose(entry.place, reason)


def utc_text(at: datetime) -> str:
    """An instant as the API writes it; one without a zone is in UTC."""
    aware = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return format_instant(round(aware.timestamp() * SECOND_US))


def _document(
    entry: Entry, set_name: str, via_celery: str | None, lose: Callable[[str], None]
) -> dict[str, Any]:
    document: dict[str, Any] = {"key": key_of(set_name, entry.name), "name": label_of(entry.name)}
    document |= _timing(entry)
    args, kwargs = plain(list(entry.args), "args"), plain(dict(entry.kwargs), "kwargs")
    if via_celery is not None:
        document["target"] = {"type": "shell", "argv": _celery_call(entry, via_celery, args, kwargs)}
    else:
        document |= _function(entry, args, kwargs)
    for name, value in entry.options.items():
        carried = via_celery is not None and name in _CALL_OPTIONS and _is_word(value)
        if value not in (None, "", {}, "{}") and not carried:
            lose(
                f"{name} {_shown(value)} is not carried over: {_INSTEAD.get(name, 'there is no such thing')}"
            )
    if isinstance(entry.schedule, Interval) and entry.schedule.relative:
        lose(_unrounded(entry.schedule.every))
    if entry.description:
        document["note"] = shortened(entry.description, MAX_NOTE)
        if len(entry.description) > MAX_NOTE:
            lose(f"description is cut to {MAX_NOTE} characters, as the job's note")
    if entry.one_off and not isinstance(entry.schedule, Clocked):
        document["max_runs"] = 1
    if entry.starts_at is not None:
        document["starts_at"] = utc_text(entry.starts_at)
    if entry.ends_at is not None:
        document["ends_at"] = utc_text(entry.ends_at)
    if not entry.enabled:
        document["paused"] = True
    return document


def _unrounded(every: timedelta) -> str:
    """What `relative` did, as Celery's `delta_resolution` has it, and what the job does."""
    units = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))
    unit = next((name for name, length in units if every >= length), "second")
    return (
        f"relative: Celery rounded its times down to the whole {unit}; the job's are not rounded, they count from its phase: "
        f"give it a phase at a whole {unit}"
    )


def _timing(entry: Entry) -> dict[str, Any]:
    match entry.schedule:
        case CronFields() as fields:
            return _cron(fields)
        case Interval(every=every):
            length_us = every // timedelta(microseconds=1)
            if length_us <= 0:
                raise LeftOut("its interval is not more than 0")
            timing = {"every": format_duration(length_us)}
            # Beat counts from the last run, so its times go on from there.
            return timing | ({"phase": utc_text(entry.last_run_at)} if entry.last_run_at else {})
        case Clocked(at=at):
            return {"at": utc_text(at)}
        case Other(words=words):
            raise LeftOut(words)


def _cron(fields: CronFields) -> dict[str, Any]:
    minute = _values(fields.minute, 0, 59).text(0, 59)
    hour = _values(fields.hour, 0, 23).text(0, 23)
    of_month = _values(fields.day_of_month, 1, 31)
    of_week = _values(fields.day_of_week, 0, 6, DAY_NAMES)
    months = Values(of=values_of(fields.month_of_year, 1, 12, MONTH_NAMES, first_name=1)).text(1, 12)
    day, weekday = days_text(of_month, of_week)
    expression = f"{minute} {hour} {day} {months} {weekday}"
    try:
        parse_cron(expression, tz=fields.tz)
    except ScheduleError as error:
        raise LeftOut(str(error)) from None
    return {"cron": expression} | ({"tz": fields.tz} if fields.tz != "UTC" else {})


def _values(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> Values:
    return Values(of=values_of(text, low, high, names), starred=text.strip().startswith("*"))


def _function(entry: Entry, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    if args:
        raise LeftOut(
            "it has positional arguments, and a function of a job gets named ones; name them as kwargs, "
            "or import with --via-celery APP"
        )
    module, _, name = entry.task.rpartition(".")
    if not module or not all(part.isidentifier() for part in entry.task.split(".")):
        raise LeftOut(f"the task {entry.task!r} names no module and function; import with --via-celery APP")
    target = {"type": "python", "function": f"{module}:{name}"}
    return {"target": target} | ({"payload": kwargs} if kwargs else {})


def _celery_call(entry: Entry, app: str, args: list[Any], kwargs: dict[str, Any]) -> list[str]:
    argv = ["celery", "-A", app, "call", entry.task]
    argv += ["--args", msgspec.json.encode(args).decode()] if args else []
    argv += ["--kwargs", msgspec.json.encode(kwargs).decode()] if kwargs else []
    for name in _CALL_OPTIONS:
        value = entry.options.get(name)
        if value not in (None, "") and _is_word(value):
            argv += [f"--{name.replace('_', '-')}", str(value)]
    return argv


def _is_word(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return str(getattr(value, "made_of", value))[:60]
