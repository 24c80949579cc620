"""The coming times of a rule as people want to see them, with what DST moves, drops or repeats.

Pure: takes a rule and an instant, gives records. Printing is left to the command line and the web.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from hourhand.core.instant import DAY_US, SECOND_US, format_in_zone
from hourhand.core.schedule.cron import Cron
from hourhand.core.schedule.every import Every
from hourhand.core.schedule.rule import Rule
from hourhand.core.schedule.windows import LONGEST_GAP_S, Fold, Gap
from hourhand.core.schedule.zone import ZoneChange, zone_changes, zone_info

_FOREVER = (1 << 62) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """A time that fires, or one (or several at once) that a zone change keeps from firing."""

    at: int
    local: str  # with the zone's offset at that instant
    fires: bool = True
    note: str | None = None


def preview(rule: Rule, after: int, limit: int) -> list[Occurrence]:
    """The next `limit` times that fire, and between them what is dropped, in order."""
    fires = rule.times(after, _FOREVER, limit)
    if isinstance(rule, Every) or not fires:
        return [Occurrence(at=at, local=format_in_zone(at, UTC)) for at in fires]
    zone = zone_info(rule.zone)
    marks = [mark for mark in _marks(rule, after, fires[-1], limit) if after < mark.at <= fires[-1]]
    notes = {mark.at: mark.note for mark in marks if mark.fires}
    found = [_occurrence(at, zone, notes.get(at)) for at in fires]
    found += [_occurrence(mark.at, zone, mark.note, fires=False) for mark in marks if not mark.fires]
    return sorted(found, key=lambda occurrence: (occurrence.at, occurrence.fires))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    at: int
    note: str
    fires: bool


def _marks(rule: Cron, after: int, until: int, limit: int) -> Iterator[_Mark]:
    for change in zone_changes(rule.zone, after - 2 * DAY_US):
        if change.at > until + 2 * DAY_US:
            return
        if change.new_offset_s > change.old_offset_s:
            yield from _gap_marks(rule, change, limit)
        else:
            yield from _fold_marks(rule, change, limit)


def _gap_marks(rule: Cron, change: ZoneChange, limit: int) -> Iterator[_Mark]:
    """What becomes of the wall times that the change leaves out."""
    start = change.at // SECOND_US + change.old_offset_s
    end = change.at // SECOND_US + change.new_offset_s
    missing = _span(rule, start, end)
    if missing is None:
        return
    if rule.gap is Gap.SKIP or end - start > LONGEST_GAP_S:
        yield _Mark(at=change.at, note=f"dropped by DST: {missing} not exist that day", fires=False)
    elif rule.gap is Gap.AFTER:
        yield _Mark(at=change.at, note=f"moved by DST: {missing} not exist that day", fires=True)
    else:
        for wall in _walls(rule, start, end, limit):
            at = (wall - change.old_offset_s) * SECOND_US
            yield _Mark(at=at, note=f"moved by DST: {_clock(wall)} does not exist that day", fires=True)


def _fold_marks(rule: Cron, change: ZoneChange, limit: int) -> Iterator[_Mark]:
    """What becomes of the wall times that the change repeats."""
    start = change.at // SECOND_US + change.new_offset_s
    end = change.at // SECOND_US + change.old_offset_s
    walls = _walls(rule, start, end, limit)
    if not walls:
        return
    if rule.fold is Fold.BOTH:
        for wall in walls:
            at = (wall - change.new_offset_s) * SECOND_US
            yield _Mark(at=at, note=f"second pass: {_clock(wall)} comes twice that day", fires=True)
        return
    first = rule.fold is Fold.FIRST
    at = (walls[0] - (change.new_offset_s if first else change.old_offset_s)) * SECOND_US
    times = _times(rule, start, end)
    which = "second" if first else "first"
    yield _Mark(at=at, note=f"dropped by DST: the {which} pass of {times} does not fire", fires=False)


def _walls(rule: Cron, start: int, end: int, limit: int) -> list[int]:
    """At most `limit` wall times of [start, end)."""
    found: list[int] = []
    wall = rule.wall.at_or_after(start)
    while wall < end and len(found) < limit:
        found.append(wall)
        wall = rule.wall.at_or_after(wall + 1)
    return found


def _span(rule: Cron, start: int, end: int) -> str | None:
    """The wall times of [start, end) as the subject of `not exist`; None if there are none."""
    count = rule.wall.count(start, end)
    if not count:
        return None
    return f"{_times(rule, start, end)} {'does' if count == 1 else 'do'}"


def _times(rule: Cron, start: int, end: int) -> str:
    count = rule.wall.count(start, end)
    dated = end - start > LONGEST_GAP_S
    first = _clock(rule.wall.at_or_after(start), dated=dated)
    if count == 1:
        return first
    return f"{first} to {_clock(rule.wall.at_or_before(end - 1), dated=dated)} ({count} times)"


def _clock(wall: int, *, dated: bool = False) -> str:
    moment = datetime.fromtimestamp(wall, UTC)
    clock = f"{moment:%H:%M}" if wall % 60 == 0 else f"{moment:%H:%M:%S}"
    return f"{moment:%Y-%m-%d} {clock}" if dated else clock


def _occurrence(at: int, zone: tzinfo, note: str | None, *, fires: bool = True) -> Occurrence:
    return Occurrence(at=at, local=format_in_zone(at, zone), fires=fires, note=note)
