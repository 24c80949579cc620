"""What cron rules mean, stated a second time and as plainly as possible, to hold the engine against.

Nothing of the engine is used. A `Spec` says which wall times match by testing one at a time; `fires` walks
real time step by step through a zone of the standard library, notes at which instants each wall time is
shown, and applies the policies to wall times shown never, once or twice.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 wall times have no zone
THREE_HOURS = 3 * 3_600

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True, eq=False)
class Spec:
    """An expression with the meaning of each field spelled out beside it."""

    texts: tuple[str, ...]  # six
    second: frozenset[int]
    minute: frozenset[int]
    hour: frozenset[int]
    day: frozenset[int | str]  # numbers, "L", "LW"
    month: frozenset[int]
    weekday: frozenset[int | tuple[int, int | str]]  # 0 to 6, (day, n), (day, "L")

    @property
    def expression(self) -> str:
        texts = self.texts[1:] if self.texts[0] == "0" else self.texts
        return " ".join(texts)

    @property
    def follows_real_time(self) -> bool:
        return self.texts[1].startswith("*") or self.texts[2].startswith("*")

    def matches_day(self, wall: datetime) -> bool:
        if wall.month not in self.month:
            return False
        by_month = self._by_month(wall)
        by_week = self._by_week(wall)
        if self.texts[3].startswith(("*", "?")) or self.texts[5].startswith(("*", "?")):
            return by_month and by_week
        return by_month or by_week

    def _by_month(self, wall: datetime) -> bool:
        last = _last_of_month(wall)
        last_weekday = last
        while last_weekday.weekday() > 4:
            last_weekday -= timedelta(days=1)
        return (
            wall.day in self.day
            or ("L" in self.day and wall.day == last.day)
            or ("LW" in self.day and wall.day == last_weekday.day)
        )

    def _by_week(self, wall: datetime) -> bool:
        weekday = wall.isoweekday() % 7
        is_last = wall.day > _last_of_month(wall).day - 7
        return (
            weekday in self.weekday
            or (weekday, (wall.day - 1) // 7 + 1) in self.weekday
            or (is_last and (weekday, "L") in self.weekday)
        )


def _last_of_month(wall: datetime) -> datetime:
    return (wall.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)


@dataclass(frozen=True)
class Walk:
    """Real time from `start` to `end` in steps, and what the wall clock showed."""

    start: int
    end: int
    shown: dict[int, list[int]]  # wall second -> instants
    gaps: list[tuple[int, int, int]]  # (first missing wall second, first shown again, instant of that)


@lru_cache(maxsize=256)
def walk(zone: str, start: int, end: int, step: int) -> Walk:
    """Goes through real time; all in seconds."""
    info = ZoneInfo(zone)
    shown: dict[int, list[int]] = defaultdict(list)
    gaps = []
    previous: int | None = None
    for instant in range(start, end, step):
        local = datetime.fromtimestamp(instant, UTC).astimezone(info).replace(tzinfo=None)
        wall = round((local - EPOCH).total_seconds())
        shown[wall].append(instant)
        if previous is not None and wall > previous + step:
            gaps.append((previous + step, wall, instant))
        previous = wall
    return Walk(start=start, end=end, shown=dict(shown), gaps=gaps)


def fires(spec: Spec, gap: str, fold: str, walked: Walk) -> list[int]:
    """Every instant of the walk at which the rule fires, in seconds."""
    found: set[int] = set()
    for wall, instants in walked.shown.items():
        if _matches(spec, wall):
            found.update(_passes(instants, fold, spec.follows_real_time))
    if not spec.follows_real_time and gap != "skip":
        step = 1 if spec.texts[0] != "0" else 60
        for first, shown_again, instant in walked.gaps:
            if shown_again - first > THREE_HOURS:
                continue
            aligned = first + -first % step
            missing = [wall for wall in range(aligned, shown_again, step) if _matches(spec, wall)]
            if gap == "shift":
                found.update(instant + wall - first for wall in missing)
            elif missing:
                found.add(instant)
    return sorted(found)


def _matches(spec: Spec, wall: int) -> bool:
    in_day = wall % 86_400
    return (
        in_day % 60 in spec.second
        and in_day // 60 % 60 in spec.minute
        and in_day // 3_600 in spec.hour
        and _matches_day(spec, wall // 86_400)
    )


@lru_cache(maxsize=10_000)
def _matches_day(spec: Spec, day: int) -> bool:
    return spec.matches_day(EPOCH + timedelta(days=day))


def _passes(instants: list[int], fold: str, follows_real_time: bool) -> list[int]:
    if fold == "both" or (fold == "auto" and follows_real_time):
        return instants
    return instants[-1:] if fold == "second" else instants[:1]


def _plain_items(low: int, high: int, names: list[str]) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    values = st.integers(low, high)

    def name(value: int) -> str:
        return names[value - low] if names and value - low < len(names) and value % 2 else str(value)

    def ranged(a: int, b: int, step: int | None) -> tuple[str, frozenset[int]]:
        a, b = min(a, b), max(a, b)
        return f"{name(a)}-{name(b)}" + (f"/{step}" if step else ""), frozenset(range(a, b + 1, step or 1))

    single = values.map(lambda value: (name(value), frozenset([value])))
    return st.one_of(
        single,
        single,
        st.builds(ranged, values, values, st.none() | st.integers(1, 9)),
        st.builds(
            lambda value, step: (f"{value}/{step}", frozenset(range(value, high + 1, step))),
            values,
            st.integers(1, min(high, 12)),
        ),
    )


def _starred(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    full = st.just(("*", frozenset(range(low, high + 1))))
    stepped = st.integers(1, 40).map(lambda step: (f"*/{step}", frozenset(range(low, high + 1, step))))
    return full | stepped


def _field(low: int, high: int, names: list[str] | None = None) -> st.SearchStrategy[tuple[str, frozenset]]:
    """(text, values), made together so that no parser is needed to know what the text means."""
    items = st.lists(_plain_items(low, high, names or []), min_size=1, max_size=3)
    listed = st.builds(_join, items)
    mixed = st.builds(lambda star, rest: _join([star, *rest]), _starred(low, high), items)
    return st.one_of(_starred(low, high), listed, listed, mixed)


def _join(items: list[tuple[str, frozenset]]) -> tuple[str, frozenset]:
    return ",".join(text for text, _ in items), frozenset().union(*(values for _, values in items))


def _days() -> st.SearchStrategy[tuple[str, frozenset]]:
    last = st.sampled_from(
        [("L", frozenset(["L"])), ("lw", frozenset(["LW"])), ("?", frozenset(range(1, 32)))]
    )
    with_last = st.builds(
        lambda plain, extra: _join([plain, extra]),
        _plain_items(1, 31, []),
        last.filter(lambda item: item[0] != "?"),
    )
    return st.one_of(st.just(("*", frozenset(range(1, 32)))), _field(1, 31), last, with_last)


def _weekdays() -> st.SearchStrategy[tuple[str, frozenset]]:
    plain = _field(0, 7, WEEKDAYS).map(lambda item: (item[0], frozenset(value % 7 for value in item[1])))
    counted = st.builds(
        lambda day, n: (f"{day}#{n}", frozenset([(day % 7, n)])), st.integers(0, 7), st.integers(1, 5)
    )
    last = st.integers(0, 7).map(lambda day: (f"{day}L", frozenset([(day % 7, "L")])))
    return st.one_of(
        st.just(("*", frozenset(range(7)))),
        plain,
        st.lists(counted, min_size=1, max_size=3).map(_join),
        st.builds(lambda a, b: _join([a, b]), plain, last),
        last,
    )


_EVERY_DAY = st.just(("*", frozenset(range(1, 32))))
_EVERY_MONTH = st.just(("*", frozenset(range(1, 13))))
_EVERY_WEEKDAY = st.just(("*", frozenset(range(7))))

# Made once: building strategies costs far more than drawing from them.
_SECOND = _field(0, 59).filter(lambda item: item[0] != "0")
_MINUTE = _field(0, 59)
_HOUR = _field(0, 23)
_DAY = _EVERY_DAY | _days()
_MONTH = _EVERY_MONTH | _field(1, 12, MONTHS)
_WEEKDAY = _EVERY_WEEKDAY | _weekdays()


@st.composite
def specs(draw: st.DrawFn, *, seconds: bool = False, hours: st.SearchStrategy = _HOUR) -> Spec:
    """Expressions of every shape; most name days often enough to be worth walking past."""
    second = draw(_SECOND) if seconds else ("0", frozenset([0]))
    minute, hour, day, month, weekday = draw(_MINUTE), draw(hours), draw(_DAY), draw(_MONTH), draw(_WEEKDAY)
    if day[0] == "?":
        weekday = weekday if not any(isinstance(w, tuple) for w in weekday[1]) else ("*", frozenset(range(7)))
    fields = [second, minute, hour, day, month, weekday]
    return Spec(
        texts=tuple(text for text, _ in fields),
        second=second[1],
        minute=minute[1],
        hour=hour[1],
        day=day[1],
        month=month[1],
        weekday=weekday[1],
    )


def _hours_of(hours: list[int]) -> tuple[str, frozenset[int]]:
    return ",".join(map(str, hours)), frozenset(hours)


early_hours = st.one_of(
    st.lists(st.sampled_from([0, 1, 2, 3, 4, 23]), min_size=1).map(_hours_of), _starred(0, 23)
)
"""Hours in which clocks are changed."""


def fixed_spec(random: Random, hours: range, *, seconds: bool = False) -> Spec:
    """A few times a day in these hours, without a star: the kind that a zone change moves or drops.

    Drawn evenly, for hypothesis likes simple values too much to hit such hours often.
    """
    minute = _some(random, range(60))
    hour = _some(random, range(24), near=hours)
    second = _some(random, range(60)) if seconds else ("0", frozenset([0]))
    return Spec(
        texts=(second[0], minute[0], hour[0], "*", "*", "*"),
        second=second[1],
        minute=minute[1],
        hour=hour[1],
        day=frozenset(range(1, 32)),
        month=frozenset(range(1, 13)),
        weekday=frozenset(range(7)),
    )


def _some(random: Random, every: range, near: range | None = None) -> tuple[str, frozenset[int]]:
    values = sorted({random.choice(near or every) % len(every) for _ in range(random.randint(1, 3))})
    if random.random() < 0.3:
        return f"{values[0]}-{values[-1]}", frozenset(range(values[0], values[-1] + 1))
    if random.random() < 0.2:
        step = random.randint(2, 9)
        return f"{values[0]}-{every[-1]}/{step}", frozenset(range(values[0], len(every), step))
    return ",".join(map(str, values)), frozenset(values)
