"""A cluster whose runs go through Kafka: on time by its messages, and none lost or doubled while it is away.

One story, since a cluster and a Kafka take long to begin: Kafka is killed, frozen and brought back under load, a second
worker joins and leaves, a window is replayed.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US, spelled
from tests.chaos.cluster import Cluster
from tests.chaos.messages import (
    JOBS,
    LATE_US,
    assert_all_once,
    by_message,
    live_calmly,
    live_without,
    wait_until,
)
from tests.chaos.process import SinkProcess, environment, wait_for
from tests.servers.kafka import KafkaServer, require_kafka


@pytest.fixture
def kafka() -> Iterator[KafkaServer]:
    require_kafka()
    with KafkaServer() as server:
        yield server


@pytest.fixture
def cluster(tmp_path: Path, migrated_url: str, kafka: KafkaServer) -> Iterator[Cluster]:
    more = {"HOURHAND_QUEUE_URL": f"{kafka.url}/triggers?partitions=4", "HOURHAND_WORKER_DRAIN": "2s"}
    with Cluster(tmp_path, apis=1, schedulers=1, workers=1, urls=[migrated_url], more=more) as cluster:
        yield cluster


def test_nothing_is_late_lost_or_doubled_whatever_happens_to_kafka(
    cluster: Cluster, kafka: KafkaServer, sink: SinkProcess
) -> None:
    jobs, calm_at = live_calmly(cluster, sink)
    second = live_without(kafka, cluster)
    wait_for("the second worker's share of the messages", lambda: by_message(second) > JOBS)
    second.stop()
    replayed_at = now()
    assert replay(cluster, kafka, replayed_at - 10 * SECOND_US, replayed_at) >= 8 * JOBS
    wait_until(now() + LATE_US)
    assert_all_once(sink, jobs, calm_at, now() - LATE_US, LATE_US)


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
