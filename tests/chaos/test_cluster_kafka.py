"""A cluster whose runs go through Kafka: on time by its messages, and none lost or doubled while it is away.

Kafka is killed, frozen and brought back under load; a second worker joins and leaves; a window is replayed.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US, Call, spelled
from tests.chaos.cluster import Cluster, Part
from tests.chaos.process import SinkProcess, environment, wait_for
from tests.servers.kafka import KafkaServer, require_kafka
from tests.servers.postgres import require_postgres

JOBS = 20
AWAY_US = 3 * SECOND_US
LATE_US = 4 * SECOND_US  # two by design, and a busy machine
CALM_LATE_US = SECOND_US  # before the store's own way finds anything
_TAKEN = re.compile(r'hourhand_queue_taken_total\{way="message"\} ([\d.e+]+)')


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaServer]:
    require_kafka()
    with KafkaServer() as server:
        yield server


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, kafka: KafkaServer) -> Iterator[Cluster]:
    require_postgres()
    more = {"HOURHAND_QUEUE_URL": f"{kafka.url}/triggers?partitions=4", "HOURHAND_WORKER_DRAIN": "2s"}
    folder = tmp_path_factory.mktemp("kafka")
    with Cluster(folder, apis=1, schedulers=1, workers=1, durable=False, more=more) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def jobs(cluster: Cluster, shared_sink: SinkProcess) -> list[str]:
    """A load with times in every second, of all priorities."""
    made = []
    for number in range(JOBS):
        made.append(
            cluster.api.create(
                every="1s",
                phase=f"2026-01-01T00:00:00.{number:02}Z",
                callback_url=shared_sink.url("ok"),
                concurrency="unlimited",
                priority=("HIGH", "MEDIUM", "LOW")[number % 3],
            )
        )
    wait_for("calls of every job", lambda: {call.job for call in shared_sink.log.calls()} >= set(made))
    return made


def test_runs_come_by_message_and_on_time(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    [worker] = cluster.of("worker")
    wait_for("runs by message", lambda: by_message(worker) > 2 * JOBS)
    from_at = now()
    wait_until(from_at + 3 * SECOND_US)
    assert_all_once(shared_sink, jobs, from_at, now() - SECOND_US, CALM_LATE_US)


def test_nothing_is_lost_or_doubled_while_kafka_is_away_and_all_returns_to_it(
    cluster: Cluster, kafka: KafkaServer, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    [worker] = cluster.of("worker")
    from_at = now()
    kafka.kill()
    wait_until(now() + AWAY_US)
    before = by_message(worker)
    kafka.start()
    wait_for("runs by message after the kill", lambda: by_message(worker) > before + 2 * JOBS)
    kafka.pause()
    wait_until(now() + AWAY_US)
    before = by_message(worker)
    kafka.resume()
    wait_for("runs by message after the pause", lambda: by_message(worker) > before + 2 * JOBS)
    assert_all_once(shared_sink, jobs, from_at, now() - SECOND_US, LATE_US)


def test_a_second_worker_shares_the_work_and_a_dead_one_leaves_it(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    from_at = now()
    second = cluster.add("worker", 2)
    second.start()
    wait_for("its share of the messages", lambda: by_message(second) > JOBS)
    second.stop()
    wait_until(now() + 2 * SECOND_US)
    assert_all_once(shared_sink, jobs, from_at, now() - SECOND_US, LATE_US)


def test_a_window_that_is_replayed_has_no_second_effect(
    cluster: Cluster, kafka: KafkaServer, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    from_at, to_at = now() - 10 * SECOND_US, now()
    assert replay(cluster, kafka, from_at, to_at, "--dry-run") == replay(cluster, kafka, from_at, to_at)
    wait_until(now() + 2 * SECOND_US)
    assert_all_once(shared_sink, jobs, from_at, now() - SECOND_US, LATE_US)


def replay(cluster: Cluster, kafka: KafkaServer, from_at: int, to_at: int, *more: str) -> int:
    """How many runs the command says that it offers again."""
    window = ("--from", spelled(from_at), "--to", spelled(to_at))
    done = subprocess.run(
        [sys.executable, "-m", "hourhand", "queue", "replay", "--json", *window, *more],
        env=environment(HOURHAND_STORE_URL=cluster.urls[0], HOURHAND_QUEUE_URL=f"{kafka.url}/triggers"),
        cwd=cluster.folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["unreadable"] == 0
    assert all(told["by_priority"].values())
    return int(told["offered"])


def by_message(part: Part) -> float:
    """How many runs a worker has claimed because of messages."""
    found = _TAKEN.search(str(part.api.expect(200, "GET", "//metrics")))
    return float(found[1]) if found else 0.0


def wait_until(at: int) -> None:
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
