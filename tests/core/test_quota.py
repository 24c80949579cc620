"""Quotas: what a job's schedule comes to, and what fits."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.model import AfterTiming, CronTiming, JobSpec, OnceTiming, PythonTarget
from hourhand.core.quota import Quota, QuotaOverride, Room, Use, asked_by, fitting, rate_of, refusal
from tests.contract.builders import every, spec


def cron(expression: str, tz: str = "UTC") -> JobSpec:
    return spec(CronTiming(expression=expression, tz=tz))


@pytest.mark.parametrize(
    ("job", "thousandths"),
    [
        (spec(every(60)), 1_000),
        (spec(every(0.5)), 120_000),
        (spec(every(3600 * 24 * 400)), 1),
        (cron("* * * * *"), 1_000),
        (cron("*/5 * * * *"), 200),
        (cron("* 9-16 * * 1-5"), 238),  # a third of five sevenths
        (cron("0 9 * * *", "Europe/Berlin"), 1),
        (cron("0 0 29 2 *"), 1),
        (spec(OnceTiming(at=0)), 0),
        (spec(AfterTiming(parents=(1,))), 0),
    ],
)
def test_what_a_schedule_comes_to(job: JobSpec, thousandths: int) -> None:
    assert rate_of(job) == thousandths


def test_what_was_set_for_a_tenant_goes_before_what_holds_for_all() -> None:
    default = Quota(jobs=10, runs_per_minute=5)
    assert default.overridden(QuotaOverride(jobs=0, document_bytes=7)) == Quota(
        jobs=0, runs_per_minute=5, document_bytes=7
    )


@given(st.integers(1, 10**9), st.integers(1, 64))
def test_parts_are_even_and_come_to_the_whole(jobs: int, databases: int) -> None:
    part = Quota(jobs=jobs, payload_bytes=5).part(databases)
    assert jobs <= part.jobs * databases < jobs + databases
    assert part.payload_bytes == 5


@given(
    st.integers(0, 20),
    st.integers(0, 20),
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=30),
)
def test_what_fits_never_exceeds_and_nothing_is_refused_that_would_fit(
    jobs: int, has: int, asked: list[tuple[bool, int]]
) -> None:
    quota = Quota(jobs=jobs, document_bytes=50)
    use = Use(jobs=has)
    target = PythonTarget(function="a:b")
    drafts = [
        (
            JobSpec(timing=OnceTiming(at=0) if once else every(60), target=target),
            Use(jobs=1, document_bytes=size),
        )
        for once, size in asked
    ]
    for (_, more), over in zip(drafts, fitting(Room(quota=quota, use=use), drafts), strict=True):
        room = (not jobs or use.jobs < jobs) and use.document_bytes + more.document_bytes <= 50
        assert (over is None) is room
        use = use.plus(more) if over is None else use


def test_runs_that_are_asked_for_are_counted_beside_the_others() -> None:
    quota = Quota(runs_per_minute=2)
    once = spec(OnceTiming(at=0))
    asked = [(once, asked_by(quota, once))] * 3 + [(spec(every(60)), asked_by(quota, spec(every(60))))]
    answers = fitting(Room(quota=quota, runs_left=2), asked)
    assert [one is None for one in answers] == [True, True, False, True]
    assert answers[2] is not None
    assert answers[2].retry_after_s == 30


def test_what_is_not_more_is_never_refused() -> None:
    quota = Quota(jobs=1, runs_per_minute=1, document_bytes=1)
    over = Use(jobs=5, document_bytes=5, rate=5_000)
    assert refusal(quota, over, Use()) is None
    assert refusal(quota, over, Use(document_bytes=-1)) is None
    found = refusal(quota, over, Use(rate=500))
    assert found is not None
    assert found.why == "the tenant may have 1 scheduled runs a minute; it has 5, and this would be 0.5 more"


def test_a_payload_is_looked_at_only_where_it_counts() -> None:
    large = spec(every(60), payload=msgspec.Raw(b'"xxxxxxxxxx"'))
    assert fitting(Room(quota=Quota(jobs=5)), [(large, Use(jobs=1))]) == [None]
    [over] = fitting(Room(quota=Quota(payload_bytes=5)), [(large, Use(jobs=1))])
    assert over is not None
    assert over.too_large
