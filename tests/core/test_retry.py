"""What becomes of a run after an attempt: by outcome, tries, delivery and what the target said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import Delivery, EveryTiming, JobSpec, PythonTarget, Retry
from hourhand.core.retry import Failure, Outcome, Verdict, backoff_us, decide

NOW = 1_794_819_600_000_000
AT_LEAST, AT_MOST = Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE
SENT, UNSENT, HOPELESS = Failure(), Failure(before_sending=True), Failure(retryable=False)


def job(delivery: Delivery = AT_LEAST, **retry: float) -> JobSpec:
    return JobSpec(
        timing=EveryTiming(interval_us=MINUTE_US, phase_at=0),
        target=PythonTarget(function="f"),
        delivery=delivery,
        retry=Retry(**retry),  # type: ignore[arg-type]
    )


def verdict(outcome: Outcome, spec: JobSpec, tries: int = 0, failure: Failure = SENT) -> Verdict:
    return decide(outcome, spec, job_id=7, scheduled_at=NOW, tries=tries, now_at=NOW, failure=failure)


@pytest.mark.parametrize(
    ("outcome", "event"),
    [
        (Outcome.SUCCEEDED, Event.SUCCEED),
        (Outcome.SKIPPED, Event.SKIP),
        (Outcome.CANCELLED, Event.CANCEL),
    ],
)
def test_an_end_costs_no_try(outcome: Outcome, event: Event) -> None:
    assert verdict(outcome, job(), tries=2) == Verdict(event=event, tries=2)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST])
@pytest.mark.parametrize(
    ("delivery", "failure", "tries", "event"),
    [
        (AT_LEAST, SENT, 0, Event.RETRY),
        (AT_LEAST, SENT, 2, Event.RETRY),
        (AT_LEAST, SENT, 3, Event.EXHAUST),  # three retries make four attempts
        (AT_LEAST, UNSENT, 3, Event.EXHAUST),
        (AT_LEAST, HOPELESS, 0, Event.EXHAUST),
        (AT_MOST, SENT, 0, Event.EXHAUST),
        (AT_MOST, UNSENT, 0, Event.RETRY),
        (AT_MOST, UNSENT, 3, Event.EXHAUST),
    ],
)
def test_a_failure_is_tried_again_while_it_may_be(
    outcome: Outcome, delivery: Delivery, failure: Failure, tries: int, event: Event
) -> None:
    found = verdict(outcome, job(delivery), tries, failure)
    assert (found.event, found.tries) == (event, tries + 1)


def test_without_retries_the_first_failure_is_the_last() -> None:
    assert verdict(Outcome.FAILED, job(max=0)).event is Event.EXHAUST


def test_a_lost_worker_costs_a_try_but_no_pause() -> None:
    assert verdict(Outcome.LOST, job(), tries=1) == Verdict(event=Event.RETRY, tries=2, due_at=NOW)


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        (0, 0),
        (-5, 0),
        (3 * SECOND_US, 3 * SECOND_US),
        (10 * MINUTE_US, 10 * MINUTE_US),
        (10**15, 10 * MINUTE_US),
    ],
)
def test_a_target_may_ask_for_a_pause_up_to_the_longest(asked: int, waited: int) -> None:
    found = verdict(Outcome.FAILED, job(), failure=Failure(retry_after_us=asked))
    assert found.due_at == NOW + waited


@given(
    st.integers(0, 2**63 - 1),
    st.integers(1, 101),
    st.integers(0, 10**12),
    st.floats(1, 100),
    st.integers(0, 10**12),
)
def test_pauses_grow_to_their_longest_spread_by_a_fifth_at_most(
    job_id: int, tries: int, first_us: int, factor: float, max_delay_us: int
) -> None:
    spec = job(first_us=first_us, factor=factor, max_delay_us=max_delay_us)
    found = backoff_us(spec, job_id=job_id, scheduled_at=NOW, tries=tries)
    whole = min(first_us * factor ** min(tries - 1, 64), max_delay_us)
    assert 0 <= found <= whole + 1
    assert found >= whole * 0.8 - 1
    assert found == backoff_us(spec, job_id=job_id, scheduled_at=NOW, tries=tries)


def test_the_default_is_one_second_doubling_to_ten_minutes() -> None:
    pauses = [
        backoff_us(job(max=100), job_id=1, scheduled_at=NOW, tries=tries) / SECOND_US
        for tries in range(1, 15)
    ]
    for tries, pause in enumerate(pauses):
        whole = min(2**tries, 600)
        assert whole * 0.8 <= pause <= whole


def test_a_herd_that_failed_together_does_not_come_back_together() -> None:
    spec = job(first_us=100 * SECOND_US)
    pauses = {backoff_us(spec, job_id=n, scheduled_at=NOW, tries=1) for n in range(1_000)}
    assert len(pauses) > 900
