"""Sets of minutes, hours and days as a cron expression. Pure.

Other schedulers want the day of the month and the day of the week to match both; cron takes either. Where both are
limited that can be said only of the first, second, … such day of a month.
"""

from collections.abc import Collection
from dataclasses import dataclass

from hourhand.cli.files.foreign.found import LeftOut
from hourhand.core.schedule.fields import format_values

MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What one field names; `starred`: it was written with a star, so it follows the clock through DST."""

    of: frozenset[int]
    starred: bool = False

    def text(self, low: int, high: int) -> str:
        """As a field of an expression."""
        whole = range(low, high + 1)
        if self.of == frozenset(whole):
            return "*"
        if self.starred:
            for step in range(2, high + 1):
                if self.of == frozenset(whole[::step]):
                    return f"*/{step}"
        return format_values(self.of, low, high)


def days_text(of_month: Values, of_week: Values) -> tuple[str, str]:
    """The two fields for days, of which both must match."""
    month, week = of_month.text(1, 31), of_week.text(0, 6)
    if "*" in (month, week):
        return month, week
    if month.startswith("*") or week.startswith("*"):  # a star makes cron want both, too
        return month, week
    weeks = [n for n in range(1, 5) if of_month.of == frozenset(range(7 * n - 6, 7 * n + 1))]
    if weeks:
        return "*", ",".join(f"{day}#{weeks[0]}" for day in sorted(of_week.of))
    raise LeftOut(
        "it wants both the day of the month and the day of the week to match, which cron cannot say: cron takes either"
    )


def values_of(
    text: str, low: int, high: int, names: Collection[str] = (), *, first_name: int = 0
) -> frozenset[int]:
    """The values that Celery reads in a field: lists of *, a, a-b (also round the end), each perhaps with /n."""
    found: set[int] = set()
    for part in text.replace(" ", "").lower().split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, 1, high + 1, part) if slash else 1
        if span == "*":
            spanned = list(range(low, high + 1))
        elif "-" in span:
            first, last = (_value(one, low, high, names, first_name) for one in span.split("-", 1))
            spanned = list(range(first, last + 1))
            if last < first:
                spanned = [*range(first, high + 1), *range(low, last + 1)]
        else:
            spanned = [_value(span, low, high, names, first_name)]
        found.update(spanned[::step])
    return frozenset(found)


def _value(text: str, low: int, high: int, names: Collection[str], first_name: int) -> int:
    for index, name in enumerate(names):
        if text[:3] == name:
            return index + first_name
    return _number(text, low, high, text)


def _number(text: str, low: int, high: int, part: str) -> int:
    if not (text.isascii() and text.isdigit()) or not low <= int(text) <= high:
        raise LeftOut(f"its schedule says {part!r}, where {low} to {high} are possible")
    return int(text)
