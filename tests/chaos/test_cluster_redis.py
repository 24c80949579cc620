"""A cluster whose runs go through Redis: on time by its messages, and none lost or doubled while it is away.

One story, since a cluster takes long to begin: Redis is killed, frozen, cut off and emptied under load, which each time is
also an empty replica that took over; a second worker joins and leaves, and the scheduler that offers is killed.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.cluster import Cluster
from tests.chaos.messages import (
    AWAY_US,
    CALM_LATE_US,
    JOBS,
    LATE_US,
    assert_all_once,
    by_message,
    live_calmly,
    live_without,
    wait_for_messages,
    wait_until,
)
from tests.chaos.process import SinkProcess, wait_for
from tests.servers.redis import RedisServer, ask, require_redis
from tests.servers.tcp_proxy import ThreadedTcpProxy

TAKEOVER_US = 5 * SECOND_US


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    require_redis()
    with RedisServer() as server:
        yield server


@pytest.fixture
def network(redis: RedisServer) -> Iterator[ThreadedTcpProxy]:
    with ThreadedTcpProxy.to_url(redis.url) as proxy:
        yield proxy


@pytest.fixture
def cluster(
    tmp_path: Path, migrated_url: str, redis: RedisServer, network: ThreadedTcpProxy
) -> Iterator[Cluster]:
    more = {"HOURHAND_QUEUE_URL": network.url_of(redis.url), "HOURHAND_WORKER_DRAIN": "2s"}
    with Cluster(tmp_path, apis=1, schedulers=2, workers=1, urls=[migrated_url], more=more) as cluster:
        yield cluster


def test_nothing_is_late_lost_or_doubled_whatever_happens_to_redis(
    cluster: Cluster, redis: RedisServer, network: ThreadedTcpProxy, sink: SinkProcess
) -> None:
    jobs, calm_at = live_calmly(cluster, sink)
    [first] = cluster.of("worker")
    second = live_without(redis, cluster)
    network.refuse()
    assert network.cut() >= 3  # two workers and a scheduler at least
    wait_until(now() + AWAY_US)
    with wait_for_messages("it was cut off", first, second):
        network.heal()
    with wait_for_messages("it was emptied", first, second):
        for _ in range(3):
            ask(redis.url, "FLUSHALL")
            wait_until(now() + SECOND_US // 4)

    wait_for("the second worker's share of the messages", lambda: by_message(second) > JOBS)
    scheduler, _ = cluster.of("scheduler")
    scheduler.kill()
    second.stop()
    wait_until(now() + TAKEOVER_US)
    offered_at = now()
    wait_until(offered_at + 3 * SECOND_US)
    assert_all_once(sink, jobs, offered_at, now() - SECOND_US, CALM_LATE_US)
    assert_all_once(sink, jobs, calm_at, now() - SECOND_US, LATE_US)
