"""Checks lines of cron vectors, JSON objects that say what an expression must do, against our engine.

    {"expr": "0 9 * * *", "fields": 5, "tz": "Europe/Berlin", "after": "…", "next": ["…", "…"]}

`next` lists the first times after `after`, and is empty where there are none; `error: true` means that the
expression must be refused; with neither it must be accepted and its next time lie after `after`. Optional:
`dst: {gap, fold}`. Reading files and printing is left to the command line.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from hourhand.core.instant import format_in_zone, parse_instant
from hourhand.core.schedule.cron import Cron
from hourhand.core.schedule.errors import NeverMatchesError, ScheduleError
from hourhand.core.schedule.expression import parse_cron
from hourhand.core.schedule.zone import zone_info


class Dst(msgspec.Struct, frozen=True, kw_only=True):
    """The policies a vector is meant for."""

    gap: str = "after"
    fold: str = "auto"


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    expr: str
    fields: int | None = None
    tz: str = "UTC"
    after: str | None = None
    next: tuple[str, ...] | None = None
    error: bool = False
    dst: Dst = Dst()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A line that does not hold, and how."""

    line: int
    expression: str
    words: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.expression!r}: {self.words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorReport:
    """How a file of vectors came out."""

    lines: int
    differences: tuple[Difference, ...]

    @property
    def held(self) -> int:
        """How many lines hold."""
        return self.lines - len(self.differences)

    @property
    def summary(self) -> str:
        """The counts in one line."""
        return f"{self.lines} vectors: {self.held} hold, {len(self.differences)} differ"


def check_vectors(lines: Iterable[str]) -> VectorReport:
    """Checks every line that is not blank."""
    checked = 0
    differences = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        checked += 1
        try:
            vector = msgspec.json.decode(line, type=Vector)
        except msgspec.MsgspecError as error:
            differences.append(
                Difference(line=number, expression=line.strip()[:60], words=f"not a vector: {error}")
            )
            continue
        words = check_vector(vector)
        if words is not None:
            differences.append(Difference(line=number, expression=vector.expr, words=words))
    return VectorReport(lines=checked, differences=tuple(differences))


def check_vector(vector: Vector) -> str | None:
    """What differs, in words; None where the vector holds."""
    try:
        rule = parse_cron(vector.expr, tz=vector.tz, gap=vector.dst.gap, fold=vector.dst.fold)
    except NeverMatchesError as error:
        return None if vector.error or vector.next == () else f"refused: {error}"
    except ScheduleError as error:
        return None if vector.error else f"refused: {error}"
    if vector.error:
        return f"expected to be refused, but means {rule.describe()}"
    if vector.after is None:
        return None
    try:
        after = parse_instant(vector.after)
        expected = None if vector.next is None else [parse_instant(text) for text in vector.next]
    except ValueError as error:
        return f"not a vector: {error}"
    return _compare(rule, after, expected)


def _compare(rule: Cron, after: int, expected: list[int] | None) -> str | None:
    if not expected:
        at = rule.next(after)
        if expected is None:
            return None if at is None or at > after else f"next is {_show(rule, at)}, not later than asked"
        return None if at is None else f"expected no time at all, got {_show(rule, at)}"
    at = after
    for n, wanted in enumerate(expected, 1):
        found = rule.next(at)
        if found != wanted:
            shown = "none" if found is None else _show(rule, found)
            return f"time {n}: expected {_show(rule, wanted)}, got {shown}"
        at = wanted
    return None


def _show(rule: Cron, at: int) -> str:
    return format_in_zone(at, zone_info(rule.zone))
