"""Zone data: ours against the standard library's reading of the same files, and what the engine relies on."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from hourhand.core.instant import SECOND_US, parse_instant
from hourhand.core.schedule import (
    ScheduleError,
    ZoneChange,
    next_zone_change,
    tzdata_version,
    zone_info,
    zone_name,
)
from hourhand.core.schedule.tzif import YearlyRule, read_zone_file
from hourhand.core.schedule.zone import ENDLESS, far_timeline, timeline, zone_changes, zone_names

YEAR_2 = -62_000_000_000


@pytest.mark.parametrize("initial", sorted({name[0] for name in zone_names()}))
def test_offsets_agree_with_the_standard_library(initial: str) -> None:
    for name in {zone_name(name) for name in zone_names() if name.startswith(initial)}:
        line, info = timeline(name), zone_info(name)
        for k, start in enumerate(line.starts):
            for second in (start - 1, start, start + 86_400):
                if second > YEAR_2 and second < line.end:
                    local = datetime.fromtimestamp(second, UTC).astimezone(info).utcoffset()
                    assert local is not None
                    assert line.offsets[line.index(second)] == local.total_seconds(), (name, second, k)


def test_every_stretch_is_longer_than_the_changes_at_its_ends() -> None:
    for name in {zone_name(name) for name in zone_names()}:
        line = timeline(name)
        starts = [*line.starts, ENDLESS]
        for k, (before, after) in enumerate(pairwise(line.offsets), 1):
            change_s = abs(after - before)
            assert change_s > 0
            assert starts[k] - starts[k - 1] >= change_s, name
            assert starts[k + 1] - starts[k] >= change_s, name


def test_far_years_agree_with_the_standard_library() -> None:
    line, info = far_timeline("Australia/Lord_Howe"), zone_info("Australia/Lord_Howe")
    for start in line.starts[-40:]:
        for second in (start - 1, start):
            local = datetime.fromtimestamp(second, UTC).astimezone(info).utcoffset()
            assert local is not None
            assert line.offsets[line.index(second)] == local.total_seconds()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/BERLIN", "Europe/Berlin"),
        (" America/New_York ", "America/New_York"),
        ("utc", "UTC"),
        ("Z", "UTC"),
        ("Etc/GMT", "UTC"),
        ("Etc/GMT+8", "Etc/GMT+8"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert zone_name(text) == name
    assert zone_info(text).key == name


@pytest.mark.parametrize(
    "text", ["", "Europe", "Europe/", "../zones", "/etc/passwd", "CEST", "Europe/Berlin\0"]
)
def test_unknown_names(text: str) -> None:
    with pytest.raises(ScheduleError, match="zone name such as"):
        zone_name(text)


def test_next_zone_change() -> None:
    after = parse_instant("2026-11-16T00:00:00Z")
    expected = ZoneChange(at=parse_instant("2027-03-28T01:00:00Z"), old_offset_s=3_600, new_offset_s=7_200)
    assert next_zone_change("Europe/Berlin", after) == expected
    assert next_zone_change("Europe/Berlin", expected.at - 1) == expected
    assert next_zone_change("Europe/Berlin", expected.at) != expected
    assert next_zone_change("UTC", after) is None
    assert next_zone_change("Asia/Tokyo", after) is None


def test_changes_go_on_past_the_years_kept_ready() -> None:
    changes = zone_changes("Europe/Berlin", parse_instant("2199-01-01T00:00:00Z"))
    years = [datetime.fromtimestamp(next(changes).at // SECOND_US, UTC).year for _ in range(8)]
    assert years == [2199, 2199, 2200, 2200, 2201, 2201, 2202, 2202]


@pytest.mark.parametrize(
    ("day", "year", "instant"),
    [
        ("M3.5.0", 2026, "2026-03-29T01:00:00Z"),
        ("M3.2.0", 2026, "2026-03-08T01:00:00Z"),
        ("M12.5.4", 2026, "2026-12-31T01:00:00Z"),
        ("J60", 2028, "2028-03-01T01:00:00Z"),
        ("J59", 2028, "2028-02-28T01:00:00Z"),
        ("J60", 2027, "2027-03-01T01:00:00Z"),
        ("59", 2028, "2028-02-29T01:00:00Z"),
        ("0", 2028, "2028-01-01T01:00:00Z"),
    ],
)
def test_yearly_rules(day: str, year: int, instant: str) -> None:
    rule = YearlyRule(day=day, at_s=7_200, old_s=3_600, new_s=7_200)
    assert rule.instant(year) * SECOND_US == parse_instant(instant)


def test_other_files_are_refused() -> None:
    with pytest.raises(ValueError, match="TZif"):
        read_zone_file(b"GIF89a" + bytes(60))


def test_version_names_a_release() -> None:
    assert tzdata_version()[:4].isdigit()
