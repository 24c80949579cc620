"""When a job wants care, and which: asked again at each moment it names, it comes to rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.model import FOREVER, EveryTiming, Job, JobSpec, JobState, OnceTiming, PythonTarget, Timing
from hourhand.core.tending import Care, attend_at, care_for

KEEP = 1_000
EVERY = EveryTiming(interval_us=10, phase_at=0)


def job(
    timing: Timing = EVERY,
    *,
    paused: bool = False,
    paused_until: int | None = None,
    until: int = FOREVER,
) -> Job:
    return Job(
        id=1,
        tenant="t",
        spec=JobSpec(timing=timing, target=PythonTarget(function="f")),
        state=JobState.PAUSED if paused else JobState.ACTIVE,
        paused_until=paused_until,
        since=0,
        until=until,
        created_at=0,
        updated_at=0,
    )


@pytest.mark.parametrize(
    ("one", "seen", "moment"),
    [
        (job(), 0, None),
        (job(until=50), 0, 51),
        (job(until=50), 51, None),
        (job(paused=True), 0, None),
        (job(paused=True, paused_until=30), 0, 30),
        (job(paused_until=30), 0, None),
        (job(OnceTiming(at=40)), 0, 40 + KEEP),
        (job(OnceTiming(at=40), paused=True), 0, 40),
        (job(OnceTiming(at=40), paused=True), 40, 40 + KEEP),
        (job(OnceTiming(at=40), paused=True, paused_until=30), 0, 30),
        (job(OnceTiming(at=-500)), 0, KEEP),
        (job(OnceTiming(at=5), paused=True), None, 5),  # however long ago that was
        (job(paused=True, paused_until=5), None, 5),
        (job(until=5), None, 6),
    ],
)
def test_when_a_job_wants_care(one: Job, seen: int | None, moment: int | None) -> None:
    assert attend_at(one, KEEP, seen) == moment


@pytest.mark.parametrize(
    ("one", "now", "care"),
    [
        (job(), 10**9, Care.NOTHING),
        (job(until=50), 50, Care.NOTHING),
        (job(until=50), 51, Care.LEAVE_CLOCK),
        (job(until=50, paused=True), 51, Care.NOTHING),
        (job(paused=True), 10**9, Care.NOTHING),
        (job(paused=True, paused_until=30), 29, Care.NOTHING),
        (job(paused=True, paused_until=30), 30, Care.RESUME),
        (job(OnceTiming(at=40)), 41, Care.NOTHING),
        (job(OnceTiming(at=40)), 40 + KEEP, Care.FORGET),
        (job(OnceTiming(at=40), paused=True), 39, Care.NOTHING),
        (job(OnceTiming(at=40), paused=True), 40, Care.SKIP_AS_PAUSED),
        (job(OnceTiming(at=40), paused=True, paused_until=40), 50, Care.RESUME),
        (job(OnceTiming(at=40), paused=True, paused_until=41), 40, Care.SKIP_AS_PAUSED),
        (job(OnceTiming(at=40), paused=True, paused_until=30), 50, Care.RESUME),
        (job(OnceTiming(at=-500)), KEEP, Care.FORGET),
    ],
)
def test_which_care_it_needs(one: Job, now: int, care: Care) -> None:
    assert care_for(one, now, KEEP) is care


@given(
    st.builds(
        job,
        st.just(EVERY) | st.builds(OnceTiming, at=st.integers(-100, 3_000)),
        paused=st.booleans(),
        paused_until=st.none() | st.integers(-100, 3_000),
        until=st.just(FOREVER) | st.integers(-100, 3_000),
    )
)
def test_no_care_is_missed_between_the_moments_it_names(one: Job) -> None:
    """Between two moments nothing new becomes necessary."""
    at = -200
    for _ in range(10):
        following = attend_at(one, KEEP, at)
        last_quiet = 10**6 if following is None else following - 1
        if last_quiet > at and at >= 0:
            assert care_for(one, last_quiet, KEEP) is care_for(one, at, KEEP)
        if following is None:
            return
        at = following
    raise AssertionError("it never comes to rest")
