"""A load of runs in every second, and whether each was called once and soon, whatever its broker did."""

import re

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US, Call
from tests.chaos.cluster import Cluster, Part
from tests.chaos.process import SinkProcess, wait_for

_TAKEN = re.compile(r'hourhand_queue_taken_total\{way="message"\} ([\d.e+]+)')


def make_load(cluster: Cluster, sink: SinkProcess, count: int, **fields: object) -> list[str]:
    """Jobs with times in every second, of all priorities, once each was called."""
    made = []
    for number in range(count):
        made.append(
            cluster.api.create(
                **{
                    "every": "1s",
                    "phase": f"2026-01-01T00:00:00.{number:02}Z",
                    "callback_url": sink.url("ok"),
                    "concurrency": "unlimited",
                    "priority": ("HIGH", "MEDIUM", "LOW")[number % 3],
                    **fields,
                }
            )
        )
    wait_for("calls of every job", lambda: {call.job for call in sink.log.calls()} >= set(made))
    return made


def by_message(*parts: Part) -> float:
    """How many runs workers have claimed because of messages."""
    told = [_TAKEN.search(str(part.api.expect(200, "GET", "//metrics"))) for part in parts]
    return sum(float(found[1]) for found in told if found)


def wait_until(at: int) -> None:
    """Let the load go on up to an instant."""
    wait_for("some seconds", lambda: now() > at, within_s=60)


def assert_all_once(sink: SinkProcess, jobs: list[str], from_at: int, to_at: int, late_us: int) -> None:
    """Every second of every job was called once, and not later than allowed."""
    calls: dict[tuple[str, int], list[Call]] = {}
    for call in sink.log.calls():
        if from_at < call.nominal_at <= to_at:
            calls.setdefault((call.job, call.nominal_at), []).append(call)
    for job in jobs:
        times = sorted(at for owner, at in calls if owner == job)
        assert times == list(range(times[0], times[-1] + 1, SECOND_US)), job
        assert len(times) >= (to_at - from_at) // SECOND_US
    assert not [key for key, found in calls.items() if len(found) > 1]
    worst_us = max(call.at - call.nominal_at for found in calls.values() for call in found)
    print(f"{len(calls)} fires, worst {worst_us / 1000:.0f} ms after its time")
    assert worst_us < late_us
