"""Previews: what DST moves, drops and repeats is said where it happens."""

import pytest

from hourhand.core.instant import MINUTE_US, parse_instant
from hourhand.core.schedule import Every, Occurrence, parse_cron, preview

MARCH, OCTOBER = "2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"


def lines(occurrences: list[Occurrence]) -> list[str]:
    return [f"{o.local} {'' if o.fires else 'X '}{o.note or ''}".strip() for o in occurrences]


@pytest.mark.parametrize(
    ("expression", "options", "after", "limit", "expected"),
    [
        (
            "30 2 * * *",
            {},
            MARCH,
            2,
            [
                "2026-03-29T03:00:00+02:00 moved by DST: 02:30 does not exist that day",
                "2026-03-30T02:30:00+02:00",
            ],
        ),
        (
            "0,15 2 * * *",
            {"gap": "shift"},
            MARCH,
            2,
            [
                "2026-03-29T03:00:00+02:00 moved by DST: 02:00 does not exist that day",
                "2026-03-29T03:15:00+02:00 moved by DST: 02:15 does not exist that day",
            ],
        ),
        (
            "0,15 2 * * *",
            {"gap": "skip"},
            MARCH,
            1,
            [
                "2026-03-29T03:00:00+02:00 X dropped by DST: 02:00 to 02:15 (2 times) do not exist that day",
                "2026-03-30T02:00:00+02:00",
            ],
        ),
        (
            "30 2 * * *",
            {},
            OCTOBER,
            2,
            [
                "2026-10-25T02:30:00+02:00",
                "2026-10-25T02:30:00+01:00 X dropped by DST: the second pass of 02:30 does not fire",
                "2026-10-26T02:30:00+01:00",
            ],
        ),
        (
            "30 2 * * *",
            {"fold": "second"},
            OCTOBER,
            1,
            [
                "2026-10-25T02:30:00+02:00 X dropped by DST: the first pass of 02:30 does not fire",
                "2026-10-25T02:30:00+01:00",
            ],
        ),
        (
            "5 30 2 * * *",
            {"fold": "both"},
            OCTOBER,
            2,
            [
                "2026-10-25T02:30:05+02:00",
                "2026-10-25T02:30:05+01:00 second pass: 02:30:05 comes twice that day",
            ],
        ),
        ("0 9 * * *", {}, MARCH, 2, ["2026-03-29T09:00:00+02:00", "2026-03-30T09:00:00+02:00"]),
        (
            "0 12 * * *",
            {"tz": "Pacific/Apia"},
            "2011-12-29T23:00:00Z",
            1,
            [
                "2011-12-31T00:00:00+14:00 X dropped by DST: 2011-12-30 12:00 does not exist that day",
                "2011-12-31T12:00:00+14:00",
            ],
        ),
    ],
)
def test_marks(expression: str, options: dict[str, str], after: str, limit: int, expected: list[str]) -> None:
    rule = parse_cron(expression, **{"tz": "Europe/Berlin", **options})
    assert lines(preview(rule, parse_instant(after), limit)) == expected


def test_a_fold_that_is_half_over_is_still_marked() -> None:
    rule = parse_cron("30 2 * * *", tz="Europe/Berlin")
    inside = parse_instant("2026-10-25T02:45:00+02:00")
    assert lines(preview(rule, inside, 1)) == [
        "2026-10-25T02:30:00+01:00 X dropped by DST: the second pass of 02:30 does not fire",
        "2026-10-26T02:30:00+01:00",
    ]


def test_rare_rules_pass_over_many_changes() -> None:
    found = preview(parse_cron("0 0 29 2 *", tz="Europe/Berlin"), parse_instant(MARCH), 3)
    assert [o.local[:10] for o in found] == ["2028-02-29", "2032-02-29", "2036-02-29"]


def test_intervals_are_shown_in_utc() -> None:
    found = preview(Every(interval_us=30 * MINUTE_US), parse_instant(MARCH), 2)
    assert lines(found) == ["2026-03-28T12:30:00+00:00", "2026-03-28T13:00:00+00:00"]


def test_a_rule_that_fires_no_more_shows_nothing() -> None:
    rule = parse_cron("30 2 * 3 0#2", tz="America/New_York", gap="skip")
    assert preview(rule, parse_instant(MARCH), 3) == []
