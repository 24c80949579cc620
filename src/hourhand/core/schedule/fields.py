"""The grammar of one cron field: text to the values that it names, and values back to canonical text.

Knows numbers, names, ranges, lists, steps, `L`, `LW`, `5L` and `1#2`. How the fields act together
(days of month against days of week, `?`, the number of fields) is `expression`'s business.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hourhand.core.schedule.errors import ScheduleError, nearest

LAST = -1
"""The `n` of an (weekday, n) pair that means the last one in the month."""

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldKind:
    """What one of the six fields may hold."""

    name: str
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)
    extras: str = ""

    @property
    def allowed(self) -> str:
        """The values in words, for error messages."""
        named = ""
        if self.names:
            first, *_, last = self.names
            named = f", {first} to {last}"
        return f"{self.low} to {self.high}{named}{self.extras}, ranges a-b, lists a,b, steps */n, or *"


SECOND = FieldKind(name="second", low=0, high=59)
MINUTE = FieldKind(name="minute", low=0, high=59)
HOUR = FieldKind(name="hour", low=0, high=23)
DAY_OF_MONTH = FieldKind(name="day of month", low=1, high=31, extras=", L (last day), LW (last weekday)")
MONTH = FieldKind(name="month", low=1, high=12, names={name: i for i, name in enumerate(_MONTH_NAMES, 1)})
DAY_OF_WEEK = FieldKind(
    name="day of week",
    low=0,
    high=7,
    names={name: i for i, name in enumerate(_WEEKDAY_NAMES)},
    extras=", 5L (last Friday), 1#2 (second Monday)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValues:
    """What one field names. Sunday is 0 only; `starred` keeps that the text began with `*`."""

    values: frozenset[int]
    starred: bool = False
    last_day: bool = False
    last_weekday: bool = False
    nth_weekdays: frozenset[tuple[int, int]] = frozenset()


def parse_field(kind: FieldKind, text: str) -> FieldValues:
    """The values that `text` names; raises ScheduleError with the field's name."""
    values: set[int] = set()
    nth_weekdays: set[tuple[int, int]] = set()
    last_day = last_weekday = counted = plain = False
    for item in text.lower().split(","):
        if kind is DAY_OF_MONTH and item == "l":
            last_day = True
        elif kind is DAY_OF_MONTH and item == "lw":
            last_weekday = True
        elif kind is DAY_OF_WEEK and "#" in item:
            nth_weekdays.add(_nth_weekday(kind, item))
            counted = True
        elif kind is DAY_OF_WEEK and item[:-1].isdecimal() and item.endswith("l"):
            nth_weekdays.add((_number(kind, item[:-1], item) % 7, LAST))
        else:
            values.update(_item_values(kind, item))
            plain = True
    if counted and plain:
        raise ScheduleError(
            kind.name,
            text,
            kind.allowed,
            "1#2 cannot stand in one list with plain days: it would be ambiguous",
        )
    if kind is DAY_OF_WEEK:
        values = {value % 7 for value in values}
    return FieldValues(
        values=frozenset(values),
        starred=text.startswith("*"),
        last_day=last_day,
        last_weekday=last_weekday,
        nth_weekdays=frozenset(pair for pair in nth_weekdays if pair[0] not in values),
    )


def format_values(values: Iterable[int], low: int, high: int) -> str:
    """The one canonical text of a set of values: `*`, `*/5`, or runs and single values in order."""
    ordered = sorted(values)
    if len(ordered) == high - low + 1:
        return "*"
    if len(ordered) > 2 and ordered[0] == low:
        step = ordered[1] - low
        if ordered == list(range(low, high + 1, step)):
            return f"*/{step}"
    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in runs(ordered))


def runs(ordered: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring values gathered as (first, last); a pair stays two single values."""
    gathered: list[tuple[int, int]] = []
    start = 0
    for i in range(1, len(ordered) + 1):
        if i == len(ordered) or ordered[i] != ordered[i - 1] + 1:
            if i - start > 2:
                gathered.append((ordered[start], ordered[i - 1]))
            else:
                gathered.extend((value, value) for value in ordered[start:i])
            start = i
    return gathered


def _item_values(kind: FieldKind, item: str) -> range:
    span, slash, step_text = item.partition("/")
    if span == "*":
        first, last = kind.low, kind.high
    elif "-" in span:
        first_text, _, last_text = span.partition("-")
        first, last = _number(kind, first_text, item), _number(kind, last_text, item)
        if last < first:
            raise ScheduleError(kind.name, item, kind.allowed, _reversed_hint(kind, first, last))
    else:
        first = last = _number(kind, span, item)
    if not slash:
        return range(first, last + 1)
    step = _step(kind, step_text, item)
    if span != "*" and "-" not in span:
        last = kind.high
        if step > kind.high:
            raise ScheduleError(kind.name, item, f"a step of 1 to {kind.high} after a single value")
    return range(first, last + 1, step)


def _nth_weekday(kind: FieldKind, item: str) -> tuple[int, int]:
    day_text, _, n_text = item.partition("#")
    day = _number(kind, day_text, item) % 7
    if not _is_digits(n_text) or not 1 <= int(n_text) <= 5:
        raise ScheduleError(kind.name, item, "a day, # and 1 to 5, such as 1#2 for the second Monday")
    return day, int(n_text)


def _number(kind: FieldKind, text: str, item: str) -> int:
    if text in kind.names:
        return kind.names[text]
    if _is_digits(text):
        value = int(text)
        if kind.low <= value <= kind.high:
            return value
    elif kind.names and (meant := nearest(text, kind.names)):
        raise ScheduleError(kind.name, item, kind.allowed, f"did you mean {meant}?")
    raise ScheduleError(kind.name, item, kind.allowed)


def _step(kind: FieldKind, text: str, item: str) -> int:
    if not _is_digits(text) or int(text) == 0:
        raise ScheduleError(kind.name, item, "a step of 1 or more after /")
    return int(text)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _reversed_hint(kind: FieldKind, first: int, last: int) -> str:
    if kind is DAY_OF_WEEK and last == 0:
        return f"a range runs upwards, and Sunday may be written 7: {first}-7"
    return f"a range runs upwards: write {first}-{min(kind.high, 6) if kind is DAY_OF_WEEK else kind.high},{kind.low}-{last}"
