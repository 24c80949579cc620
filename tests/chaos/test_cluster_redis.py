"""A cluster whose runs go through Redis: on time by its messages, and none lost or doubled while it is away.

Redis is killed, frozen and emptied under load, which each time is also an empty replica that took over; the
scheduler that offers is killed, and a worker with messages in its hand.
"""

from collections.abc import Iterator

import pytest

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.cluster import Cluster
from tests.chaos.messages import assert_all_once, by_message, make_load, wait_until
from tests.chaos.process import SinkProcess, wait_for
from tests.servers.postgres import require_postgres
from tests.servers.redis import RedisServer, ask, require_redis

JOBS = 20
AWAY_US = 2 * SECOND_US
LATE_US = 4 * SECOND_US  # two by design, and a busy machine
CALM_LATE_US = SECOND_US  # before the store's own way finds anything
TAKEOVER_US = 5 * SECOND_US


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    require_redis()
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, redis: RedisServer) -> Iterator[Cluster]:
    require_postgres()
    more = {"HOURHAND_QUEUE_URL": redis.url, "HOURHAND_WORKER_DRAIN": "2s"}
    folder = tmp_path_factory.mktemp("redis")
    with Cluster(folder, apis=1, schedulers=2, workers=2, durable=False, more=more) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def jobs(cluster: Cluster, shared_sink: SinkProcess) -> list[str]:
    return make_load(cluster, shared_sink, JOBS)


def test_runs_come_by_message_and_on_time(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    wait_for(
        "messages to both workers", lambda: all(by_message(part) > JOBS for part in cluster.of("worker"))
    )
    from_at = now()
    wait_until(from_at + 3 * SECOND_US)
    assert_all_once(shared_sink, jobs, from_at, now() - SECOND_US, CALM_LATE_US)


def test_nothing_is_lost_or_doubled_while_redis_is_away_and_all_returns_to_it(
    cluster: Cluster, redis: RedisServer, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    from_at = now()
    redis.kill()
    wait_until(now() + AWAY_US)
    before = by_message(*cluster.of("worker"))
    redis.start()
    wait_for("messages after a restart", lambda: by_message(*cluster.of("worker")) > before + 2 * JOBS)
    redis.pause()
    wait_until(now() + AWAY_US)
    before = by_message(*cluster.of("worker"))
    redis.resume()
    wait_for("messages after a pause", lambda: by_message(*cluster.of("worker")) > before + 2 * JOBS)
    before = by_message(*cluster.of("worker"))
    for _ in range(3):
        ask(redis.url, "FLUSHALL")
        wait_until(now() + SECOND_US // 4)
    wait_for("messages after it was emptied", lambda: by_message(*cluster.of("worker")) > before + 2 * JOBS)
    assert_all_once(shared_sink, jobs, from_at, now() - SECOND_US, LATE_US)


def test_a_dead_scheduler_s_offers_are_made_by_the_other(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    first, _ = cluster.of("scheduler")
    from_at = now()
    first.kill()
    wait_until(from_at + TAKEOVER_US)
    calm_from = now()
    wait_until(calm_from + 2 * SECOND_US)
    assert_all_once(shared_sink, jobs, from_at, now() - SECOND_US, LATE_US)
    assert_all_once(shared_sink, jobs, calm_from, now() - SECOND_US, CALM_LATE_US)
    first.spawn()


def test_a_worker_that_joins_takes_its_share_and_one_that_leaves_gives_it_back(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str]
) -> None:
    from_at = now()
    third = cluster.add("worker", 3)
    third.start()
    wait_for("its share of the messages", lambda: by_message(third) > JOBS)
    third.stop()
    wait_until(now() + SECOND_US)
    assert_all_once(shared_sink, jobs, from_at, now() - SECOND_US // 2, LATE_US)
