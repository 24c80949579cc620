"""A cluster whose runs go through Kafka: on time by its messages, and none lost or doubled while it is away.

Kafka is killed, frozen and brought back under load; a second worker joins and leaves; a window is replayed.
"""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US, spelled
from tests.chaos.cluster import Cluster
from tests.chaos.messages import assert_all_once, by_message, make_load, wait_until
from tests.chaos.process import SinkProcess, environment, wait_for
from tests.servers.kafka import KafkaServer, require_kafka
from tests.servers.postgres import require_postgres

JOBS = 20
AWAY_US = 2 * SECOND_US
LATE_US = 4 * SECOND_US  # two by design, and a busy machine
CALM_LATE_US = SECOND_US  # before the store's own way finds anything


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
    return make_load(cluster, shared_sink, JOBS)


@pytest.fixture(scope="module")
def loaded_at(jobs: list[str]) -> int:
    """Since when all jobs are there."""
    return now()


def test_runs_come_by_message_and_on_time(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str], loaded_at: int
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
    assert_all_once(shared_sink, jobs, from_at, now() - LATE_US, LATE_US)


def test_a_second_worker_shares_the_work_and_a_dead_one_leaves_it(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    from_at = now()
    second = cluster.add("worker", 2)
    second.start()
    wait_for("its share of the messages", lambda: by_message(second) > JOBS)
    second.stop()
    wait_until(now() + LATE_US)
    assert_all_once(shared_sink, jobs, from_at, now() - LATE_US, LATE_US)


def test_a_window_that_is_replayed_has_no_second_effect(
    cluster: Cluster, kafka: KafkaServer, shared_sink: SinkProcess, jobs: list[str], loaded_at: int
) -> None:
    from_at, to_at = now() - 10 * SECOND_US, now()
    assert replay(cluster, kafka, from_at, to_at) >= 8 * JOBS
    wait_until(now() + LATE_US)
    assert_all_once(shared_sink, jobs, loaded_at, now() - LATE_US, LATE_US)


def replay(cluster: Cluster, kafka: KafkaServer, from_at: int, to_at: int) -> int:
    """How many runs the command says that it offers again."""
    window = ("--from", spelled(from_at), "--to", spelled(to_at))
    done = subprocess.run(
        [sys.executable, "-m", "hourhand", "queue", "replay", "--json", *window],
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
