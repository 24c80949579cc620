"""A load of runs in every second, and whether each was called once and soon, whatever its broker did."""

import contextlib
import re
from collections.abc import Iterator
from typing import Protocol

from tests.chaos.api import NotSent, now
from tests.chaos.calls import SECOND_US, Call
from tests.chaos.cluster import Cluster, Part
from tests.chaos.process import SinkProcess, wait_for

JOBS = 20
AWAY_US = 2 * SECOND_US
LATE_US = 4 * SECOND_US  # two by design, and a busy machine
CALM_LATE_US = SECOND_US  # before the store's own way finds anything

_TAKEN = re.compile(r'hourhand_queue_taken_total\{way="message"\} ([\d.e+]+)')


class Broker(Protocol):
    """A server that can be taken away."""

    def kill(self) -> None: ...
    def start(self) -> object: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


def live_calmly(cluster: Cluster, sink: SinkProcess) -> tuple[list[str], int]:
    """A load that comes on time by messages; its jobs, and since when."""
    jobs = make_load(cluster, sink)
    wait_for("runs by message", lambda: by_message(*cluster.of("worker")) > 2 * JOBS)
    calm_at = now()
    wait_until(calm_at + 3 * SECOND_US)
    assert_all_once(sink, jobs, calm_at, now() - SECOND_US, CALM_LATE_US)
    return jobs, calm_at


def live_without(broker: Broker, cluster: Cluster) -> Part:
    """The broker is killed and frozen, each for a while, and a second worker joins meanwhile; that one."""
    [first] = cluster.of("worker")
    second = cluster.add("worker", 2)
    broker.kill()
    second.spawn()
    wait_until(now() + AWAY_US)
    with wait_for_messages("a kill", first, second):
        broker.start()
    broker.pause()
    wait_until(now() + AWAY_US)
    with wait_for_messages("a pause", first, second):
        broker.resume()
    return second


def make_load(cluster: Cluster, sink: SinkProcess, count: int = JOBS, **fields: object) -> list[str]:
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
    """How many runs workers have claimed because of messages; none yet, where one is only about to begin."""
    return sum(map(_by_message, parts))


def _by_message(part: Part) -> float:
    try:
        found = _TAKEN.search(str(part.api.expect(200, "GET", "//metrics")))
    except NotSent:
        return 0.0
    return 0.0 if found is None else float(found[1])


@contextlib.contextmanager
def wait_for_messages(after: str, *parts: Part) -> Iterator[None]:
    """Come back once runs come by message again after what is done meanwhile."""
    before = by_message(*parts)
    yield
    wait_for(f"runs by message after {after}", lambda: by_message(*parts) > before + 2 * JOBS)


def wait_until(at: int) -> None:
    """Let the load go on up to an instant."""
    wait_for("some seconds", lambda: now() > at, within_s=60)


def assert_all_once(sink: SinkProcess, jobs: list[str], from_at: int, to_at: int, late_us: int) -> None:
    """Every second of every job was called once, and not later than allowed."""
    assert to_at - from_at >= 2 * SECOND_US, "too short a time to say anything: let the load go on for longer"
    calls: dict[tuple[str, int], list[Call]] = {}
    for call in sink.log.calls():
        if from_at < call.nominal_at <= to_at:
            calls.setdefault((call.job, call.nominal_at), []).append(call)
    for job in jobs:
        times = sorted(at for owner, at in calls if owner == job)
        assert len(times) >= (to_at - from_at) // SECOND_US, job
        assert times == list(range(times[0], times[-1] + 1, SECOND_US)), job
    assert not [key for key, found in calls.items() if len(found) > 1]
    worst_us = max(call.at - call.nominal_at for found in calls.values() for call in found)
    print(f"{len(calls)} fires, worst {worst_us / 1000:.0f} ms after its time")
    assert worst_us < late_us
