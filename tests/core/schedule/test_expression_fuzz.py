"""Expressions of any characters: each is a rule or an error that says what was expected, in little time."""

import time

from hypothesis import example, given
from hypothesis import strategies as st

from hourhand.core.instant import DAY_US
from hourhand.core.schedule import Cron, ScheduleError, parse_cron, parse_key

MOST_S = 1.0  # of the processor, for reading one and finding some of its times
NOW_AT = 20_000 * DAY_US
WORDS = [
    "*",
    "?",
    "L",
    "LW",
    "15W",
    "5L",
    "1#2",
    "MON-FRI",
    "jan",
    "*/7",
    "59/1",
    "1-5/2",
    "0",
    "31",
    "²",
    "٣",
    "-1",
]
PIECES = st.sampled_from(WORDS) | st.text("0123456789*/,-#LW?@ ", max_size=6) | st.text(max_size=4)
FIELDS = st.lists(PIECES, min_size=1, max_size=3).map(",".join)
LINES = st.lists(FIELDS, min_size=4, max_size=7).map(" ".join) | st.text(max_size=300)
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "", "../etc/passwd", "\0", "Nowhere/None"]
)


def rule_of(expression: str, tz: str) -> Cron | None:
    try:
        return parse_cron(expression, tz=tz)
    except ScheduleError as error:
        refused = error
    assert refused.allowed
    assert len(str(refused)) < 1_000
    return None


@given(LINES, ZONES)
@example("0 0 30 2 *", "UTC")
@example("0 0 29 2 1#5", "UTC")
@example("59 59 23 31 12 7#5", "Europe/Berlin")
@example("9" * 256, "UTC")
@example("1" * 5_000, "UTC")
@example("0 " + "1" * 250 + " * * *", "UTC")
@example("CRON_TZ=\0 0 9 * * *", "UTC")
@example(",".join(["*/1"] * 60) + " * * * *", "UTC")
def test_whatever_is_written_is_a_rule_or_refused_in_little_time(expression: str, tz: str) -> None:
    began_s = time.process_time()
    rule = rule_of(expression, tz)
    if rule is not None:
        at: int | None = NOW_AT
        for _ in range(3):
            later = None if at is None else rule.next(at)
            assert later is None or at is None or later > at
            at = later
        rule.latest(NOW_AT)
        assert parse_key(rule.key) == rule
    assert time.process_time() - began_s < MOST_S


@given(LINES)
def test_space_around_an_expression_means_nothing(expression: str) -> None:
    if len(expression) < 250:
        assert rule_of(f"  {expression}\t", "UTC") == rule_of(expression, "UTC")
