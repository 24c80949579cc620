"""Backfills in pure code: which times, in which pages, at which pace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.backfill import (
    Backfill,
    BackfillSpec,
    Order,
    Unfit,
    allowance,
    format_rate,
    new_backfill,
    next_page,
    parse_rate,
)
from hourhand.core.instant import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.model import AfterTiming, EveryTiming, Job, JobSpec, PythonTarget, Timing

NOW_AT = 1_794_819_600_000_000
EVERY = EveryTiming(interval_us=MINUTE_US, phase_at=0)


def job(timing: Timing = EVERY, **fields: int) -> Job:
    spec = JobSpec(timing=timing, target=PythonTarget(function="a:b"), **fields)  # type: ignore[arg-type]
    return Job(id=1, tenant="t", spec=spec, since=NOW_AT, created_at=NOW_AT, updated_at=NOW_AT)


def made(of: Job | None = None, **fields: object) -> Backfill:
    spec = BackfillSpec(**{"from_at": NOW_AT - HOUR_US, "to_at": NOW_AT, **fields})  # type: ignore[arg-type]
    return new_backfill(7, of or job(), spec, NOW_AT, 30 * DAY_US)


@given(st.integers(1, 90), st.sampled_from(Order), st.integers(0, 7200), st.integers(0, 7200))
def test_pages_are_the_range_in_order_without_gaps(
    limit: int, order: Order, first_s: int, length_s: int
) -> None:
    from_at = NOW_AT - 5 * HOUR_US + first_s * SECOND_US
    to_at = from_at + length_s * SECOND_US
    expected = [at for at in range(NOW_AT - 5 * HOUR_US, NOW_AT, MINUTE_US) if from_at <= at <= to_at]
    if not expected:
        with pytest.raises(Unfit):
            made(from_at=from_at, to_at=to_at, order=order)
        return
    backfill = made(from_at=from_at, to_at=to_at, order=order)
    found: list[int] = []
    for _ in range(400):
        page = next_page(backfill, NOW_AT, limit)
        assert len(page.times) <= limit
        found += page.times
        backfill = Backfill(
            **{name: getattr(backfill, name) for name in backfill.__struct_fields__ if name != "mark"},
            mark=page.mark,
        )
        if backfill.is_fed:
            break
    assert found == (expected if order is Order.OLDEST else expected[::-1])
    assert backfill.tally.total == len(expected)


def test_the_bounds_of_the_job_hold() -> None:
    backfill = made(job(starts_at=NOW_AT - 10 * MINUTE_US, ends_at=NOW_AT - 5 * MINUTE_US))
    assert backfill.tally.total == 6
    with pytest.raises(Unfit, match="has a time"):
        made(job(starts_at=NOW_AT + 1))


def test_a_job_that_follows_others_names_the_root() -> None:
    with pytest.raises(Unfit) as caught:
        made(job(AfterTiming(parents=(1,))))
    assert "root" in (caught.value.faults[0].hint or "")


def test_a_pace_gives_its_share_and_no_burst() -> None:
    backfill = made(pace_us=SECOND_US // 10)
    assert allowance(backfill, NOW_AT)[0] == 1
    assert allowance(backfill, NOW_AT + SECOND_US // 2)[0] == 6
    assert allowance(backfill, NOW_AT + HOUR_US)[0] == 11
    assert allowance(backfill, NOW_AT - SECOND_US)[0] == 0
    assert allowance(made(max_open=3), NOW_AT)[0] == 3


@pytest.mark.parametrize(
    ("text", "pace_us", "shown"),
    [
        ("50/s", 20_000, "50/s"),
        ("50", 20_000, "50/s"),
        ("0.5/s", 2_000_000, "30/m"),
        ("10/m", 6_000_000, "10/m"),
        ("1/h", 3_600_000_000, "1/h"),
        ("1000/s", 1_000, "1000/s"),
    ],
)
def test_rates(text: str, pace_us: int, shown: str) -> None:
    assert parse_rate(text) == pace_us
    assert format_rate(pace_us) == shown


@pytest.mark.parametrize("text", ["", "fast", "0/s", "-1/s", "1001/s", "1/d", "nan", "inf/s", "1/", "0.01/h"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a rate"):
        parse_rate(text)
