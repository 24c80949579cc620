"""What a job may be: each limit at its edge, each fault with the field it names."""

from typing import Any

import msgspec
import pytest

from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.model import CronTiming, EveryTiming, HttpTarget, JobSpec, Misfire, PythonTarget, Retry
from hourhand.core.specification import SpecLimits, faults_in

LIMITS = SpecLimits(min_interval_us=10 * SECOND_US, payload_bytes=20)
GOOD = JobSpec(
    timing=EveryTiming(interval_us=60 * SECOND_US, phase_at=0), target=PythonTarget(function="a:b"), name="n"
)

CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # pointer, just right, just wrong
    (
        "/every",
        {"timing": EveryTiming(interval_us=10 * SECOND_US, phase_at=0)},
        {"timing": EveryTiming(interval_us=10 * SECOND_US - 1, phase_at=0)},
    ),
    (
        "/cron",
        {"timing": CronTiming(expression="*/10 * * * * *")},
        {"timing": CronTiming(expression="*/9 * * * * *")},
    ),
    ("/ends_at", {"starts_at": 5, "ends_at": 5}, {"starts_at": 5, "ends_at": 4}),
    ("/max_runs", {"max_runs": 1}, {"max_runs": 0}),
    ("/max_runs", {"max_runs": 10_000_000}, {"max_runs": 10_000_001}),
    ("/name", {"name": "x" * 200}, {"name": "x" * 201}),
    ("/name", {"name": ""}, {"name": "a\nb"}),
    ("/name", {"name": " x "}, {"name": " \u2003"}),
    ("/name", {"name": "ü"}, {"name": "a\x7f"}),
    ("/key", {"key": "k"}, {"key": ""}),
    ("/key", {"key": "x" * 200}, {"key": "x" * 201}),
    ("/key", {"key": ".a/..b/c.../..."}, {"key": "a/../b"}),
    ("/key", {"key": "a/.b"}, {"key": "./a"}),
    ("/key", {"key": "..a"}, {"key": ".."}),
    ("/shard_key", {"shard_key": "k"}, {"shard_key": ""}),
    ("/pool", {"pool": "p"}, {"pool": ""}),
    ("/tags/1", {"tags": ("a", "b")}, {"tags": ("a", "")}),
    ("/tags", {"tags": ("t",) * 32}, {"tags": ("t",) * 33}),
    ("/jitter", {"jitter_us": 30 * SECOND_US}, {"jitter_us": 30 * SECOND_US + 1}),
    ("/jitter", {"jitter_us": 0}, {"jitter_us": -1}),
    ("/timeout", {"timeout_us": 1_000}, {"timeout_us": 999}),
    ("/timeout", {"timeout_us": 7 * DAY_US}, {"timeout_us": 7 * DAY_US + 1}),
    ("/misfire/grace", {"misfire": Misfire(grace_us=DAY_US)}, {"misfire": Misfire(grace_us=DAY_US + 1)}),
    ("/misfire/limit", {"misfire": Misfire(limit=1_000)}, {"misfire": Misfire(limit=1_001)}),
    ("/misfire/limit", {"misfire": Misfire(limit=1)}, {"misfire": Misfire(limit=0)}),
    ("/retry/max", {"retry": Retry(max=100)}, {"retry": Retry(max=101)}),
    ("/retry/max", {"retry": Retry(max=0)}, {"retry": Retry(max=-1)}),
    ("/retry/first", {"retry": Retry(first_us=0)}, {"retry": Retry(first_us=-1)}),
    (
        "/retry/max_delay",
        {"retry": Retry(max_delay_us=7 * DAY_US)},
        {"retry": Retry(max_delay_us=7 * DAY_US + 1)},
    ),
    ("/retry/factor", {"retry": Retry(factor=1)}, {"retry": Retry(factor=0.9)}),
    ("/retry/factor", {"retry": Retry(factor=100)}, {"retry": Retry(factor=float("nan"))}),
    ("/concurrency", {"concurrency": 1_000}, {"concurrency": 1_001}),
    ("/concurrency", {"concurrency": None}, {"concurrency": 0}),
    (
        "/payload",
        {"payload": msgspec.Raw(b'"' + b"x" * 18 + b'"')},
        {"payload": msgspec.Raw(b'"' + b"x" * 19 + b'"')},
    ),
    (
        "/target/headers",
        {"target": HttpTarget(url="http://h/", headers={"X-A": "1"})},
        {"target": HttpTarget(url="http://h/", headers={"Host": "evil"})},
    ),
]


def test_a_plain_job_is_good() -> None:
    assert faults_in(GOOD, LIMITS) == []


@pytest.mark.parametrize(("pointer", "right", "wrong"), CASES)
def test_limits(pointer: str, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    assert faults_in(msgspec.structs.replace(GOOD, **right), LIMITS) == []
    found = faults_in(msgspec.structs.replace(GOOD, **wrong), LIMITS)
    assert len(found) == 1
    assert found[0].pointer.startswith(pointer)
    assert found[0].expected


def test_all_faults_are_told_at_once_the_schedule_first() -> None:
    bad = msgspec.structs.replace(
        GOOD, timing=EveryTiming(interval_us=1, phase_at=0), key="", concurrency=0, jitter_us=-1
    )
    assert [fault.pointer for fault in faults_in(bad, LIMITS)] == [
        "/every",
        "/key",
        "/jitter",
        "/concurrency",
    ]
