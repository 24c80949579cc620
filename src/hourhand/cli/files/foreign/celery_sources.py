"""Where Celery's beat keeps its entries: an app in a module, the file that beat writes, or the tables of django-celery-beat.

A module is imported, which runs it, as beat itself does. The file is a pickle, of which nothing is run.
"""

import contextlib
import dbm
import importlib.util
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from hourhand.cli.failures import Usage
from hourhand.cli.files.foreign.celery_entries import Clocked, CronFields, Entry, Interval, Other
from hourhand.cli.files.foreign.databases import Row, has_table, is_database, read_tables, shown
from hourhand.cli.files.foreign.found import Found, LeftOut
from hourhand.cli.files.foreign.pickles import Made, read_pickle
from hourhand.cli.files.importing import local_zone

TABLE = "django_celery_beat_periodictask"
_SCHEDULES = ("crontab", "interval", "clocked", "solar")
_DICTS = ("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE")
_ENDINGS = (".db", ".dat", ".dir", ".bak", ".pag")
_SOLAR = "a solar schedule depends on the sun, and jobs run at times of the clock"


def read_entries(source: str, tz: str | None, found: Found) -> list[Entry]:
    """All entries of a source; what cannot even be read is noted."""
    entries = list(_entries(source, tz, found))
    if not entries and not found.losses:
        raise Usage(f"{shown(source)}: no schedule was found; it has no entries")
    return entries


def _entries(source: str, tz: str | None, found: Found) -> Iterator[Entry]:
    if is_database(source):
        if "://" not in source and not has_table(source, TABLE):
            return _from_file(source, tz, found)
        return _from_django(source, found)
    if source.endswith(".py") or (
        not Path(source).exists() and all(part.isidentifier() for part in source.split("."))
    ):
        return _from_module(source, tz, found)
    return _from_file(source, tz, found)


def _from_module(source: str, tz: str | None, found: Found) -> Iterator[Entry]:
    module = _imported(source)
    schedules = [
        (value.conf.beat_schedule or {}, str(getattr(value, "timezone", "") or "UTC"))
        for value in vars(module).values()
        if hasattr(getattr(value, "conf", None), "beat_schedule")
    ][:1]  # an app under two names is one
    for name in _DICTS:
        given = vars(module).get(name)
        if isinstance(given, Mapping) and given not in [one for one, _ in schedules]:
            schedules.append((given, tz or "UTC"))  # what was given to the app is the app's
    if not schedules:
        raise Usage(f"{source} has neither a Celery app nor a dict named {', '.join(_DICTS)}")
    for schedule, zone in schedules:
        for name, fields in schedule.items():
            try:
                yield Entry(
                    place=str(name),
                    name=str(name),
                    task=str(fields["task"]),
                    schedule=_living(fields["schedule"], tz or zone, relative=bool(fields.get("relative"))),
                    args=fields.get("args") or (),
                    kwargs=fields.get("kwargs") or {},
                    options=fields.get("options") or {},
                )
            except (KeyError, TypeError, AttributeError, LeftOut) as error:
                found.lose(str(name), _words_of(error), left_out=True)


def _imported(source: str) -> Any:
    from hourhand.functions.modules import NoModule, load_modules

    if not source.endswith(".py"):
        try:
            load_modules([source], given_by="")
        except NoModule:
            raise Usage(
                f"there is no file {source}, and no module of that name here or in the environment"
            ) from None
        return sys.modules[source]
    spec = importlib.util.spec_from_file_location("hourhand_imported_beat", source)
    if spec is None or spec.loader is None or not Path(source).is_file():
        raise Usage(f"there is no file {source}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # SystemExit too: it is the module's, not ours
        if isinstance(error, KeyboardInterrupt):
            raise
        raise Usage(f"{source} cannot be imported: {type(error).__name__}: {error}") from None
    return module


def _living(schedule: Any, tz: str, *, relative: bool) -> CronFields | Interval | Other:
    """A schedule as a module has it: one of Celery's classes, or a timedelta or seconds, which the entry's `relative` is about."""
    if isinstance(schedule, timedelta):
        return Interval(every=schedule, relative=relative)
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        return Interval(every=timedelta(seconds=schedule), relative=relative)
    if all(hasattr(schedule, f"_orig_{name}") for name in ("minute", "hour", "day_of_week")):
        names = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
        return CronFields(**{name: cron_word(getattr(schedule, f"_orig_{name}")) for name in names}, tz=tz)
    if hasattr(schedule, "run_every"):
        return Interval(every=schedule.run_every, relative=bool(getattr(schedule, "relative", False)))
    if hasattr(schedule, "event") and hasattr(schedule, "lat"):
        return Other(words=_SOLAR)
    return Other(words=f"a schedule of the class {type(schedule).__qualname__} is not known")


def cron_word(value: Any) -> str:
    """A field as Celery takes it: a number, a text, or several numbers."""
    if isinstance(value, str | int):
        return str(value)
    return ",".join(str(one) for one in sorted(value))


def _from_file(source: str, tz: str | None, found: Found) -> Iterator[Entry]:
    values = _shelf(source)
    if "entries" not in values:
        raise Usage(f"{source} is no file of Celery's beat: it has no entries")
    zone = _file_zone(values, tz)
    try:
        entries = read_pickle(values["entries"])
    except LeftOut as error:
        raise Usage(f"{source}: {error}") from None
    for name, made in entries.items() if isinstance(entries, dict) else ():
        try:
            yield _pickled(str(name), made, zone)
        except (LeftOut, ValueError, TypeError, IndexError) as error:
            found.lose(str(name), _words_of(error), left_out=True)


def _pickled(name: str, made: Any, zone: str) -> Entry:
    if not isinstance(made, Made) or not made.made_of.endswith("ScheduleEntry"):
        raise LeftOut(f"it is a {getattr(made, 'made_of', type(made).__qualname__)}, and no entry of beat's")
    own_name, task, last_run_at, _, schedule, args, kwargs, options = made.args
    return Entry(
        place=name,
        name=str(own_name),
        task=str(task),
        schedule=_made_schedule(schedule, zone),
        args=args or (),
        kwargs=kwargs or {},
        options=options or {},
        last_run_at=last_run_at if isinstance(last_run_at, datetime) else None,
    )


def _made_schedule(made: Any, tz: str) -> CronFields | Interval | Other:
    if isinstance(made, timedelta):
        return Interval(every=made)
    match made.made_of.rpartition(".")[2] if isinstance(made, Made) else "":
        case "crontab":
            minute, hour, of_week, of_month, months = map(cron_word, made.args)
            return CronFields(
                minute=minute,
                hour=hour,
                day_of_week=of_week,
                day_of_month=of_month,
                month_of_year=months,
                tz=tz,
            )
        case "schedule" if isinstance(made.args[0], timedelta):
            return Interval(every=made.args[0], relative=bool(made.args[1]))
        case "solar":
            return Other(words=_SOLAR)
    return Other(
        words=f"a schedule of the class {getattr(made, 'made_of', type(made).__qualname__)} is not known"
    )


def _file_zone(values: Mapping[str, bytes], tz: str | None) -> str:
    if tz is not None:
        return tz
    kept = {}
    for name in ("tz", "utc_enabled"):
        with contextlib.suppress(LeftOut):
            kept[name] = read_pickle(values[name]) if name in values else None
    if isinstance(kept.get("tz"), str) and kept["tz"]:
        return str(kept["tz"])
    return local_zone() if kept.get("utc_enabled") is False else "UTC"


def _shelf(source: str) -> dict[str, bytes]:
    """The values of a file that `shelve` wrote, by key, still pickled."""
    if is_database(source):  # as of Python 3.13
        with closing(sqlite3.connect(f"file:{Path(source).resolve()}?mode=ro", uri=True)) as database:
            try:
                return {
                    bytes(key).decode(): value
                    for key, value in database.execute("SELECT key, value FROM Dict")
                }
            except sqlite3.Error as error:
                raise Usage(
                    f"{source} is neither django-celery-beat's database nor beat's file: {error}"
                ) from None
    name = source
    for ending in _ENDINGS:
        if not dbm.whichdb(name):
            name = source.removesuffix(ending)
    if not dbm.whichdb(name):
        if not Path(source).exists():
            raise Usage(f"there is no file {source}")
        raise Usage(
            f"{source}: expected a module, a file of Celery's beat, or a database of django-celery-beat"
        )
    try:
        with dbm.open(name, "r") as shelf:
            return {_word(key): shelf[key] for key in shelf.keys()}  # noqa: SIM118 -- not all of them are mappings
    except (ImportError, *dbm.error) as error:
        raise Usage(f"cannot read {source}: {error}") from None


def _word(key: str | bytes) -> str:
    return key if isinstance(key, str) else key.decode("utf-8", "replace")


def _from_django(source: str, found: Found) -> Iterator[Entry]:
    tables = [TABLE, *map(_table_of, _SCHEDULES)]
    tasks, *schedules = read_tables(source, *tables)
    by_id = {kind: {row["id"]: row for row in rows} for kind, rows in zip(_SCHEDULES, schedules, strict=True)}
    for row in sorted(tasks, key=lambda row: row["id"]):
        place = f"{TABLE} {row['id']} {row['name']!r}"
        try:
            yield _of_row(place, row, by_id)
        except (LeftOut, KeyError, ValueError, TypeError) as error:
            found.lose(place, _words_of(error), left_out=True)


def _table_of(kind: str) -> str:
    return f"django_celery_beat_{kind}schedule"


def _of_row(place: str, row: Row, by_id: Mapping[str, Mapping[int, Row]]) -> Entry:
    kind = next((kind for kind in _SCHEDULES if row.get(f"{kind}_id") is not None), None)
    if kind is None:
        raise LeftOut("it has no schedule")
    schedule_id = row[f"{kind}_id"]
    if schedule_id not in by_id[kind]:
        raise LeftOut(f"its {kind} schedule {schedule_id} is not in {_table_of(kind)}")
    options = {
        name: row.get(name) for name in ("queue", "exchange", "routing_key", "priority", "expire_seconds")
    }
    headers = row.get("headers")
    options["headers"] = None if headers in (None, "", "{}") else headers
    return Entry(
        place=place,
        name=row["name"],
        task=row["task"],
        schedule=_stored(kind, by_id[kind][schedule_id]),
        args=_json(row.get("args"), "args", []),
        kwargs=_json(row.get("kwargs"), "kwargs", {}),
        options=options,
        enabled=bool(row.get("enabled", True)),
        one_off=bool(row.get("one_off")),
        starts_at=_instant(row.get("start_time")),
        ends_at=_instant(row.get("expires")),
        last_run_at=_instant(row.get("last_run_at")),
        description=str(row.get("description") or "").strip(),
    )


def _stored(kind: str, row: Row) -> CronFields | Interval | Clocked | Other:
    match kind:
        case "crontab":
            names = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
            return CronFields(
                **{name: str(row[name]) for name in names}, tz=str(row.get("timezone") or "UTC")
            )
        case "interval":
            return Interval(every=_length(row["every"], row["period"]))
        case "clocked":
            at = _instant(row["clocked_time"])
            if at is None:
                raise LeftOut("it has no time")
            return Clocked(at=at)
        case _:
            return Other(words=_SOLAR)


def _length(count: Any, period: Any) -> timedelta:
    try:
        return timedelta(**{period: count})
    except (TypeError, OverflowError):
        raise LeftOut(f"its interval is {count!r} {period}, which is no length of time") from None


def _json(text: Any, what: str, default: Any) -> Any:
    try:
        value = msgspec.json.decode(text) if text else default
    except (msgspec.DecodeError, TypeError) as error:
        raise LeftOut(f"{what} are no JSON: {error}") from None
    if type(value) is not type(default):
        raise LeftOut(f"{what} are no {'list' if isinstance(default, list) else 'object'}")
    return value


def _instant(value: Any) -> datetime | None:
    """A time of a database; SQLite keeps them as texts in UTC."""
    if value is None:
        return None
    at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _words_of(error: Exception) -> str:
    """Why nothing is made of an entry; what Python says of a value that nobody expected is no sentence by itself."""
    match error:
        case LeftOut():
            return str(error)
        case KeyError():
            return f"it has no {error}"
    return f"it is not as beat keeps entries: {error}"
