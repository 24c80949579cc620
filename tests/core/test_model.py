"""The nouns: defaults of the design, and specs that survive being written down."""

import msgspec
import pytest

from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.model import (
    Cron,
    CronTiming,
    Delivery,
    Every,
    EveryTiming,
    HttpTarget,
    JobSpec,
    MisfirePolicy,
    OnceTiming,
    Overlap,
    Priority,
    PythonTarget,
    Timing,
    rule_of,
)
from hourhand.core.run import TRIGGER_CODES, TRIGGERS, ClaimedRun

PLAIN = JobSpec(timing=OnceTiming(at=5), target=PythonTarget(function="a:b"))


def test_the_defaults_are_the_designs() -> None:
    assert (PLAIN.priority, PLAIN.pool, PLAIN.delivery) == (
        Priority.MEDIUM,
        "default",
        Delivery.AT_LEAST_ONCE,
    )
    assert (PLAIN.concurrency, PLAIN.overlap, PLAIN.jitter_us) == (1, Overlap.QUEUE_ONE, 0)
    assert (PLAIN.retry.max, PLAIN.retry.first_us, PLAIN.retry.factor) == (3, SECOND_US, 2)
    assert PLAIN.retry.max_delay_us == 10 * MINUTE_US
    assert (PLAIN.misfire.policy, PLAIN.misfire.grace_us) == (MisfirePolicy.RUN_ONCE, MINUTE_US)
    assert PLAIN.misfire.limit == 100
    assert PLAIN.timeout_us == 5 * MINUTE_US
    assert HttpTarget(url="u").timeout_us == 30 * SECOND_US


@pytest.mark.parametrize(
    ("timing", "kind"),
    [
        (CronTiming(expression="0 9 * * *", tz="Europe/Berlin", gap="skip", fold="both"), Cron),
        (EveryTiming(interval_us=60, phase_at=1_000_007), Every),
        (OnceTiming(at=5), type(None)),
    ],
)
def test_a_timing_knows_its_rule_and_survives_writing(timing: Timing, kind: type) -> None:
    assert type(rule_of(timing)) is kind
    one = msgspec.structs.replace(PLAIN, timing=timing, payload=msgspec.Raw(b'{"a": 1}'))
    text = msgspec.json.encode(one)
    again = msgspec.json.decode(text, type=JobSpec)
    assert again == one
    assert again.rule == one.rule
    assert msgspec.json.encode(again) == text


def test_the_same_interval_and_phase_are_one_rule_however_old() -> None:
    early, late = EveryTiming(interval_us=60, phase_at=7), EveryTiming(interval_us=60, phase_at=60_000_007)
    assert rule_of(early) == rule_of(late)


def test_codes_of_triggers_never_change() -> None:
    """They are stored."""
    assert {trigger.value: code for trigger, code in TRIGGER_CODES.items()} == {
        "scheduled": 0,
        "manual": 1,
        "backfill": 2,
        "catch_up": 3,
        "requeued": 4,
        "rerun": 5,
        "upstream": 6,
    }
    assert [TRIGGER_CODES[trigger] for trigger in TRIGGERS] == list(range(7))


def test_a_claimed_run_names_itself() -> None:
    run = ClaimedRun(77, 0, 1_794_819_600_000_000, 0, 1, 0, 4, 0, 1, "t", PLAIN)
    assert run.run_id == "J-000000000002d@20261116T090000Z"
    assert run.key == (77, 1_794_819_600_000_000)
    assert run.trigger.value == "requeued"
