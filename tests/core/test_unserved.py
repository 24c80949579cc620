"""A run that nobody here can execute is given back, to be offered again: no try is used up, and waits grow with its age."""

import pytest

from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import Delivery, EveryTiming, JobSpec, PythonTarget, Retry
from hourhand.core.retry import LEAST_WAIT_US, MOST_WAIT_US, Failure, Outcome, decide

NOW = 1_800_000_000_000_000


@pytest.mark.parametrize(
    ("age_us", "wait_us"),
    [(0, LEAST_WAIT_US), (60 * SECOND_US, 15 * SECOND_US), (10_000 * MINUTE_US, MOST_WAIT_US)],
)
@pytest.mark.parametrize("delivery", list(Delivery))
def test_waits_without_a_try(age_us: int, wait_us: int, delivery: Delivery) -> None:
    spec = JobSpec(
        timing=EveryTiming(interval_us=SECOND_US, phase_at=0),
        target=PythonTarget(function="app:gone"),
        retry=Retry(max=0),
        delivery=delivery,
    )
    verdict = decide(
        Outcome.FAILED,
        spec,
        job_id=1,
        scheduled_at=NOW - age_us,
        tries=0,
        now_at=NOW,
        failure=Failure(before_sending=True, unserved=True),
    )
    assert (verdict.event, verdict.tries, verdict.due_at) == (Event.RELEASE, 0, NOW + wait_us)
