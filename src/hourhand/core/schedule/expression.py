"""Cron expressions: text, zone and DST policy to a rule, and a rule's key back to the rule.

Debian's rules, with seconds as an optional sixth field in front. `?` is `*` in the two day fields, or in
all fields at once. Where neither day field begins with `*`, a day matches if either does; else both must.
An expression whose minute or hour begins with `*` follows real time: nothing is made up for in a gap, and
by default both passes of a fold fire.
"""

from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from hourhand.core.schedule.cron import Cron
from hourhand.core.schedule.days import days_of
from hourhand.core.schedule.errors import NeverMatchesError, ScheduleError, nearest
from hourhand.core.schedule.fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    LAST,
    MINUTE,
    MONTH,
    SECOND,
    FieldValues,
    parse_field,
)
from hourhand.core.schedule.wall import WallTimes
from hourhand.core.schedule.windows import Fold, Gap
from hourhand.core.schedule.zone import timeline, zone_name

MAX_LENGTH = 256

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
Policy = TypeVar("Policy", bound=StrEnum)

_KINDS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
_SHAPE = "5 fields (minute hour day-of-month month day-of-week), or 6 with seconds in front"


@lru_cache(maxsize=16_384)
def parse_cron(expression: str, *, tz: str = "UTC", gap: str = "after", fold: str = "auto") -> Cron:
    """The rule of an expression. `CRON_TZ=Zone` in front names the zone where `tz` leaves it at UTC."""
    if len(expression) > MAX_LENGTH:
        raise ScheduleError("expression", expression, f"at most {MAX_LENGTH} characters")
    words, own_zone = _split(expression)
    gap_policy, fold_policy = _policy(Gap, "gap", gap), _policy(Fold, "fold", fold)
    zone = _one_zone(zone_name(tz), own_zone)
    second, minute, hour, of_month, month, of_week = _parse_fields(words)
    either = not of_month.starred and not of_week.starred
    days = days_of(of_month, month.values, of_week, either=either)
    if not days.any_match:
        raise NeverMatchesError(
            "expression",
            expression,
            "days that exist",
            "no month it names has such a day, so it would never fire",
        )
    wall = WallTimes(
        days=days,
        hours=tuple(sorted(hour.values)),
        minutes=tuple(sorted(minute.values)),
        seconds=tuple(sorted(second.values)),
    )
    if timeline(zone).fixed:
        return Cron(wall=wall, zone=zone, gap=Gap.SKIP, fold=Fold.BOTH)  # nothing to decide
    if minute.starred or hour.starred:
        fold_policy = Fold.BOTH if fold_policy is Fold.AUTO else fold_policy
        return Cron(wall=wall, zone=zone, gap=Gap.SKIP, fold=fold_policy)
    fold_policy = Fold.FIRST if fold_policy is Fold.AUTO else fold_policy
    return Cron(wall=wall, zone=zone, gap=gap_policy, fold=fold_policy)


@lru_cache(maxsize=16_384)
def parse_cron_key(key: str) -> Cron:
    """The rule behind a `Cron.key`."""
    word, *texts, join, zone, gap, fold = key.split(" ")
    if word != "cron" or len(texts) != 6 or join not in ("and", "or"):
        raise ValueError(f"{key!r} is not the key of a cron rule")
    second, minute, hour, of_month, month, of_week = (
        parse_field(kind, text) for kind, text in zip(_KINDS, texts, strict=True)
    )
    wall = WallTimes(
        days=days_of(of_month, month.values, of_week, either=join == "or"),
        hours=tuple(sorted(hour.values)),
        minutes=tuple(sorted(minute.values)),
        seconds=tuple(sorted(second.values)),
    )
    return Cron(wall=wall, zone=zone_name(zone), gap=Gap(gap), fold=Fold(fold))


def _split(expression: str) -> tuple[list[str], str | None]:
    words = expression.split()
    zone = None
    if words:
        name, equals, value = words[0].partition("=")
        if equals and name.upper() in ("CRON_TZ", "TZ"):
            zone = zone_name(value)
            words = words[1:]
    if words and words[0].startswith("@"):
        nickname = words[0].lower()
        if nickname not in _NICKNAMES or len(words) > 1:
            meant = nearest(nickname, _NICKNAMES)
            raise ScheduleError(
                "expression", expression, " ".join(_NICKNAMES), meant and f"did you mean {meant} alone?"
            )
        words = _NICKNAMES[nickname].split()
    if len(words) not in (5, 6):
        hint = "years cannot be named" if len(words) == 7 else None
        raise ScheduleError("expression", expression, f"{_SHAPE}, not {len(words)}", hint)
    return words, zone


def _parse_fields(words: list[str]) -> list[FieldValues]:
    all_open = all(word == "?" for word in words)
    texts = [
        "*" if word == "?" and (all_open or kind in (DAY_OF_MONTH, DAY_OF_WEEK)) else word
        for kind, word in zip(_KINDS[-len(words) :], words, strict=True)
    ]
    if len(texts) == 5:
        texts.insert(0, "0")
    fields = [parse_field(kind, text) for kind, text in zip(_KINDS, texts, strict=True)]
    if words[-3] == "?" and any(n == LAST for _, n in fields[-1].nth_weekdays):
        raise ScheduleError(
            DAY_OF_MONTH.name, "?", "* beside a last weekday", f"write * {texts[-2]} {texts[-1]} for the days"
        )
    return fields


def _one_zone(zone: str, own_zone: str | None) -> str:
    if own_zone is None or own_zone == zone:
        return zone
    if zone != "UTC":
        raise ScheduleError("zone", own_zone, f"the zone to be named once; it was also given as {zone}")
    return own_zone


def _policy(kind: type[Policy], name: str, text: str) -> Policy:
    try:
        return kind(text)
    except ValueError:
        meant = nearest(text, kind)
        allowed = ", ".join(kind)
        raise ScheduleError(f"dst {name}", text, allowed, meant and f"did you mean {meant}?") from None
