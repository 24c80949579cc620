"""Jobs of APScheduler 3 in its SQLAlchemy job store: rows whose state is a pickle, of which nothing is run."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any

from hourhand.cli.failures import Usage
from hourhand.cli.files.foreign.celery_entries import utc_text
from hourhand.cli.files.foreign.cron_text import Values, days_text
from hourhand.cli.files.foreign.databases import Row, is_database, read_tables
from hourhand.cli.files.foreign.found import Carried, Found, LeftOut, key_of, label_of, plain
from hourhand.cli.files.foreign.pickles import Made, read_pickle
from hourhand.cli.progress import Progress
from hourhand.core.instant import SECOND_US, format_duration, parse_duration
from hourhand.core.model import MAX_CONCURRENCY
from hourhand.core.schedule import ScheduleError, parse_cron
from hourhand.core.specification import MAX_CATCH_UP, MAX_GRACE_US, MAX_JITTER_US

TABLE = "apscheduler_jobs"
_PACKAGE = "apscheduler.triggers."
_RANGES = {
    "month": (1, 12),
    "day": (1, 31),
    "day_of_week": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
_NTH = {0: "#1", 1: "#2", 2: "#3", 3: "#4", 4: "#5", 5: "L"}

Lose = Callable[[str], None]


def carry_jobs(source: str, table: str, set_name: str, found: Found, progress: Progress) -> None:
    """Make a job of each row, or say why there is none."""
    if not is_database(source):
        raise Usage(f"{source}: expected the database of a SQLAlchemyJobStore, a file of SQLite or a URL")
    (rows,) = read_tables(source, table)
    for row in progress.each(sorted(rows, key=lambda row: str(row["id"]))):
        place = f"{table} {row['id']!r}"
        losses: list[str] = []
        try:
            document = _document(row, set_name, losses.append)
        except LeftOut as error:
            found.lose(place, str(error), left_out=True)
            continue
        found.jobs.append(Carried(place=place, document=document))
        for reason in losses:
            found.lose(place, reason)


def _document(row: Row, set_name: str, lose: Lose) -> dict[str, Any]:
    state = read_pickle(bytes(row["job_state"]))
    if not isinstance(state, dict) or state.get("version", 1) != 1:
        raise LeftOut("its state is not of APScheduler 3")
    if state.get("args"):
        plain(list(state["args"]), "args")
        raise LeftOut(
            "it has positional arguments, and a function of a job gets named ones; name them as kwargs"
        )
    name = str(state.get("name") or row["id"])
    document: dict[str, Any] = {"key": key_of(set_name, str(row["id"])), "name": label_of(name)}
    document |= _timing(state.get("trigger"), lose)
    document["target"] = {"type": "python", "function": _function(state.get("func"))}
    kwargs = plain(dict(state.get("kwargs") or {}), "kwargs")
    if kwargs:
        document["payload"] = kwargs
    document |= _policies(state, document, lose)
    if row.get("next_run_time") is None:
        document["paused"] = True
    return document


def _function(reference: Any) -> str:
    module, colon, name = str(reference).partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), name)):
        raise LeftOut(f"it calls {reference!r}, which is no function of a module")
    return f"{module}:{name}"


def _policies(state: Mapping[str, Any], timing: Mapping[str, Any], lose: Lose) -> dict[str, Any]:
    """What becomes of late runs, and of those that find all instances at work."""
    found: dict[str, Any] = {"overlap": "skip", "misfire": _misfire(state, timing, lose)}
    instances = state.get("max_instances") or 1
    if instances > MAX_CONCURRENCY:
        lose(f"max_instances {instances:,} becomes {MAX_CONCURRENCY:,}")
    if instances > 1:
        found["concurrency"] = min(instances, MAX_CONCURRENCY)
    if state.get("executor") not in (None, "default"):
        lose(
            f"executor {state['executor']!r} is not carried over: give the job a pool, and workers with --pool"
        )
    return found


def _misfire(state: Mapping[str, Any], timing: Mapping[str, Any], lose: Lose) -> dict[str, Any]:
    """APScheduler runs of the missed times that are within the grace all, or with coalesce the last.

    The former is what `skip` does. So is the latter, where times are further apart than the grace, so that there is
    one at most; else `run_once` comes nearest.
    """
    grace, coalesce = state.get("misfire_grace_time"), bool(state.get("coalesce"))
    if grace is None:
        return {"policy": "run_once"} if coalesce else {"policy": "catch_up", "limit": MAX_CATCH_UP}
    grace_us = int(grace * SECOND_US)
    if grace_us > MAX_GRACE_US:
        lose(f"misfire_grace_time {grace} s becomes {format_duration(MAX_GRACE_US)}")
        grace_us = MAX_GRACE_US
    if not coalesce or grace_us <= _shortest_gap_us(timing):
        return {"policy": "skip", "grace": format_duration(grace_us)}
    lose(
        f"coalesce: of times missed within the grace of {format_duration(grace_us)} APScheduler runs the last only; "
        "here each does that finds a free slot, and after a longer outage the last only"
    )
    return {"policy": "run_once", "grace": format_duration(grace_us)}


def _shortest_gap_us(timing: Mapping[str, Any]) -> float:
    """Between two times of a schedule."""
    if "cron" in timing:
        return parse_cron(timing["cron"], tz=timing.get("tz", "UTC")).min_gap()
    return parse_duration(timing["every"]) if "every" in timing else math.inf


def _timing(trigger: Any, lose: Lose) -> dict[str, Any]:
    kind = trigger.made_of if isinstance(trigger, Made) else type(trigger).__qualname__
    state = trigger.state if isinstance(trigger, Made) else None
    if not kind.startswith(_PACKAGE) or not isinstance(state, dict):
        raise LeftOut(f"its trigger is {kind}, which is not known")
    match kind.rpartition(".")[2]:
        case "CronTrigger":
            timing = _cron(state)
        case "IntervalTrigger":
            timing = _interval(state)
        case "DateTrigger":
            return {"at": utc_text(_time(state["run_date"], "run_date"))}
        case other:
            raise LeftOut(f"its trigger is {other}, of which no schedule can be made")
    for name, bound in (("start_date", "starts_at"), ("end_date", "ends_at")):
        if state.get(name) is not None:
            timing[bound] = utc_text(_time(state[name], name))
    jitter = state.get("jitter")
    if jitter:
        jitter_us = int(jitter * SECOND_US)
        if jitter_us > MAX_JITTER_US:
            lose(f"jitter {jitter} s becomes {format_duration(MAX_JITTER_US)}")
        timing["jitter"] = format_duration(min(jitter_us, MAX_JITTER_US))
    return timing


def _interval(state: Mapping[str, Any]) -> dict[str, Any]:
    length = state["interval"]
    if not isinstance(length, timedelta):
        raise LeftOut("its interval is no length of time")
    timing: dict[str, Any] = {"every": format_duration(length // timedelta(microseconds=1))}
    if state.get("start_date") is not None:
        timing["phase"] = utc_text(_time(state["start_date"], "start_date"))
    return timing


def _cron(state: Mapping[str, Any]) -> dict[str, Any]:
    fields = {field.state["name"]: field.state["expressions"] for field in state["fields"]}
    for name in ("year", "week"):
        if not all(_is_star(one) for one in fields.get(name, ())):
            raise LeftOut(f"its trigger limits the {name}, which cron cannot say")
    values = {name: _values(name, fields[name]) for name in ("second", "minute", "hour", "month")}
    texts = {name: one.text(*_RANGES[name]) for name, one in values.items()}
    day, weekday = _days(fields["day"], fields["day_of_week"])
    second = "" if texts["second"] == "0" else f"{texts['second']} "
    expression = f"{second}{texts['minute']} {texts['hour']} {day} {texts['month']} {weekday}"
    zone = _zone(state.get("timezone"))
    try:
        parse_cron(expression, tz=zone)
    except ScheduleError as error:
        raise LeftOut(str(error)) from None
    return {"cron": expression} | ({"tz": zone} if zone != "UTC" else {})


def _days(of_month: list[Any], of_week: list[Any]) -> tuple[str, str]:
    week = _values("day_of_week", of_week)
    sunday_first = Values(of=frozenset((day + 1) % 7 for day in week.of), starred=week.starred)
    kinds = {_kind(one) for one in of_month}
    if kinds <= {"AllExpression", "RangeExpression"}:
        return days_text(_values("day", of_month), sunday_first)
    if len(week.of) == 7 and kinds == {"LastDayOfMonthExpression"}:
        return "L", "*"
    if len(week.of) == 7 and kinds == {"WeekdayPositionExpression"}:
        places = [(one.state["weekday"], one.state["option_num"]) for one in of_month]
        return "*", ",".join(f"{(day + 1) % 7}{_NTH[place]}" for day, place in places)
    raise LeftOut("its trigger joins days in a way that cron cannot say")


def _values(name: str, expressions: list[Any]) -> Values:
    low, high = _RANGES[name]
    found: set[int] = set()
    for one in expressions:
        if not _kind(one).endswith(("AllExpression", "RangeExpression")):
            raise LeftOut(f"its trigger has a {_kind(one)} as {name}")
        first, last = one.state.get("first", low), one.state.get("last")
        last = (
            (first if "first" in one.state and not one.state.get("step") else high) if last is None else last
        )
        found.update(range(first, last + 1, one.state.get("step") or 1))
    return Values(of=frozenset(found), starred=any(_kind(one) == "AllExpression" for one in expressions))


def _kind(made: Any) -> str:
    if not isinstance(made, Made) or not made.made_of.startswith(f"{_PACKAGE}cron."):
        raise LeftOut(
            f"its trigger has a {getattr(made, 'made_of', type(made).__qualname__)}, which is not known"
        )
    return made.made_of.rpartition(".")[2]


def _is_star(made: Any) -> bool:
    return _kind(made) == "AllExpression" and not made.state.get("step")


def _zone(zone: Any) -> str:
    if isinstance(zone, tzinfo):
        name = getattr(zone, "key", None) or str(zone)
        return "UTC" if name in ("UTC", "UTC+00:00") else name
    raise LeftOut(f"its time zone is {getattr(zone, 'made_of', type(zone).__qualname__)}, which is not known")


def _time(value: Any, what: str) -> datetime:
    if not isinstance(value, datetime):
        raise LeftOut(f"its {what} is no time")
    return value
