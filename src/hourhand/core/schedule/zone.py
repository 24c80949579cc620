"""Zones by name, from the tzdata wheel and never from the machine, so that all nodes agree.

Gives a zone's timeline (stretches of constant offset, in seconds since the epoch), its next change and
a `tzinfo` for printing. Policies for times that a change drops or repeats are `cron`'s.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from zoneinfo import ZoneInfo

from hourhand.core.instant import SECOND_US
from hourhand.core.schedule.errors import ScheduleError, nearest
from hourhand.core.schedule.tzif import ZoneFile, read_zone_file

ENDLESS = 1 << 60

NEAR_YEAR = 2200
FAR_YEAR = 9998  # the last year whose changes all fit into a datetime

_UTC_ALIASES = frozenset(
    {"z", "utc", "uct", "zulu", "universal", "greenwich", "gmt", "gmt0", "gmt+0", "gmt-0"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Stretch k runs from `starts[k]` to `starts[k + 1]` with `offsets[k]`; the first begins at -ENDLESS."""

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    end: int  # complete before this second; ENDLESS where the zone no longer changes
    fixed: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed", len(self.starts) == 1)

    def index(self, second: int) -> int:
        """The stretch that this second lies in."""
        return bisect_right(self.starts, second) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneChange:
    """One change of a zone's offset."""

    at: int
    old_offset_s: int
    new_offset_s: int


def zone_name(text: str) -> str:
    """The name as the zone data spells it; all names of UTC become one."""
    lower = text.strip().lower()
    if lower.removeprefix("etc/") in _UTC_ALIASES:
        return "UTC"
    found = _names_by_lower().get(lower)
    if found is None:
        meant = nearest(text, _names_by_lower().values())
        raise ScheduleError(
            "zone", text, "a zone name such as Europe/Berlin or UTC", meant and f"did you mean {meant}?"
        )
    return found


def zone_names() -> tuple[str, ...]:
    """Every name there is."""
    return tuple(_names_by_lower().values())


@lru_cache(maxsize=1024)
def zone_info(name: str) -> ZoneInfo:
    """The zone for printing with datetime."""
    name = zone_name(name)
    with _zone_resource(name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def timeline(name: str) -> Timeline:
    """The offsets of a zone up to the year 2200, or for ever where they no longer change."""
    return _timeline(name, NEAR_YEAR)


def far_timeline(name: str) -> Timeline:
    """The same up to the last year that can be printed; costs some ms where a zone still changes."""
    return _timeline(name, FAR_YEAR)


def timeline_at(name: str, second: int) -> Timeline:
    """The cheaper of the two that covers this second."""
    near = _timeline(name, NEAR_YEAR)
    return near if second < near.end else _timeline(name, FAR_YEAR)


def next_zone_change(name: str, after: int) -> ZoneChange | None:
    """The first change of the zone's offset after an instant."""
    return next(zone_changes(name, after), None)


def zone_changes(name: str, after: int) -> Iterator[ZoneChange]:
    """All later changes, in order."""
    name = zone_name(name)
    second = after // SECOND_US
    for line in (timeline_at(name, second), _timeline(name, FAR_YEAR)):
        for k in range(line.index(second) + 1, len(line.starts)):
            yield ZoneChange(
                at=line.starts[k] * SECOND_US,
                old_offset_s=line.offsets[k - 1],
                new_offset_s=line.offsets[k],
            )
            second = line.starts[k]


def tzdata_version() -> str:
    """The release of the zone data in use, such as 2026a."""
    return str(import_module("tzdata").IANA_VERSION)


@lru_cache(maxsize=2048)
def _timeline(name: str, year: int) -> Timeline:
    zone = _zone_file(name)
    changes = list(zone.changes_until(year))
    starts = (-ENDLESS, *(at for at, _ in changes))
    for before, after in pairwise(starts):
        if before >= after:
            raise ValueError(f"the changes of {name} are not in order")
    end = starts[-1] if zone.yearly else ENDLESS
    return Timeline(starts=starts, offsets=(zone.first_offset_s, *(o for _, o in changes)), end=end)


@lru_cache(maxsize=1024)
def _zone_file(name: str) -> ZoneFile:
    return read_zone_file(_zone_resource(name).read_bytes())


def _zone_resource(name: str) -> Traversable:
    return files("tzdata").joinpath("zoneinfo", *name.split("/"))


@cache
def _names_by_lower() -> dict[str, str]:
    names = files("tzdata").joinpath("zones").read_text("ascii").split()
    return {name.lower(): name for name in sorted(names)}
