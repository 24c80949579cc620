"""The checker of vector files: what holds, what differs and how that is said."""

import pytest

from hourhand.core.schedule import check_vectors

BERLIN = '{"expr": "30 2 * * *", "fields": 5, "tz": "Europe/Berlin", "after": "2026-03-28T12:00:00+01:00", '


@pytest.mark.parametrize(
    "line",
    [
        '{"expr": "* * * * *", "after": "2026-01-01T00:00:00Z", "next": ["2026-01-01T00:01:00Z"]}',
        BERLIN + '"next": ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]}',
        BERLIN + '"next": ["2026-03-30T02:30:00+02:00"], "dst": {"gap": "skip"}}',
        BERLIN + '"note": "only that it is accepted"}',
        '{"expr": "1 1 */100 * MON#4", "fields": 5, "tz": "UTC", "after": "2026-01-01T00:00:00Z", "next": []}',
        '{"expr": "0 0 30 2 *", "fields": 5, "error": true}',
        '{"expr": "61 * * * *", "fields": 5, "error": true}',
    ],
)
def test_vectors_that_hold(line: str) -> None:
    report = check_vectors([line, "", "  \n"])
    assert report.differences == ()
    assert report.summary == "1 vectors: 1 hold, 0 differ"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            BERLIN + '"next": ["2026-03-29T03:30:00+02:00"]}',
            "time 1: expected 2026-03-29T03:30:00+02:00, got 2026-03-29T03:00:00+02:00",
        ),
        (BERLIN + '"next": []}', "expected no time at all, got 2026-03-29T03:00:00+02:00"),
        ('{"expr": "* * * * *", "error": true}', "expected to be refused, but means every minute, UTC"),
        ('{"expr": "61 * * * *", "after": "2026-01-01T00:00:00Z", "next": []}', "refused: minute: got '61'"),
        ('{"expr": "0 0 30 2 *", "after": "2026-01-01T00:00:00Z"}', "would never fire"),
        (
            '{"expr": "* * * * *", "after": "soon", "next": []}',
            "not a vector: 'soon' is not an RFC 3339 time",
        ),
        ('{"expr": 5}', "not a vector"),
        ("nonsense", "not a vector"),
    ],
)
def test_differences_are_put_in_words(line: str, words: str) -> None:
    report = check_vectors(["", line])
    assert (report.lines, report.held) == (1, 0)
    (difference,) = report.differences
    assert words in str(difference)
    assert str(difference).startswith("line 2: ")
