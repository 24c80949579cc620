"""Schedulers come, go, die and stand still: their segments change hands in time, and nothing is late or twice."""

import signal
from collections.abc import Iterator

import pytest

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.cluster import Cluster, Part
from tests.chaos.messages import assert_all_once
from tests.chaos.process import SinkProcess, wait_for
from tests.servers.postgres import require_postgres

SEGMENTS = 64
JOBS = 20
TAKEOVER_US = 5 * SECOND_US
LATE_US = SECOND_US  # what waits for a takeover waits for the lease at least
HORIZON_US = 60 * SECOND_US


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require_postgres()
    folder = tmp_path_factory.mktemp("takeover")
    with Cluster(folder, apis=1, schedulers=3, workers=1, durable=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def jobs(cluster: Cluster, shared_sink: SinkProcess) -> list[str]:
    """A load with times in every second, over many clocks."""
    url = shared_sink.url("ok")
    made = []
    for number in range(JOBS):
        phase = f"2026-01-01T00:00:00.{number:02}Z"
        made.append(cluster.api.create(every="1s", phase=phase, callback_url=url, concurrency="unlimited"))
    wait_for("calls of every job", lambda: {call.job for call in shared_sink.log.calls()} >= set(made))
    return made


@pytest.fixture
def even(cluster: Cluster) -> list[Part]:
    """The schedulers, once they share evenly."""
    schedulers = cluster.of("scheduler")
    wait_for("even shares", lambda: shares(cluster) == split(len(schedulers)))
    return schedulers


def shares(cluster: Cluster) -> list[int]:
    return sorted(cluster.holdings().values())


def split(among: int) -> list[int]:
    return sorted(SEGMENTS // among + (number < SEGMENTS % among) for number in range(among))


def wait_until(at: int) -> None:
    wait_for("some seconds", lambda: now() > at, within_s=60)


def planned_ahead_us(cluster: Cluster) -> int:
    """How far ahead the runs of every job are written."""
    rows = cluster.read("SELECT max(scheduled_at) FROM planned GROUP BY job_id")
    return min(row[0] for row in rows) - now() if len(rows) == JOBS else 0


def test_a_killed_scheduler_is_replaced_in_time_and_nothing_fires_late(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str], even: list[Part]
) -> None:
    wait_for("runs up to the horizon", lambda: planned_ahead_us(cluster) > HORIZON_US - 5 * SECOND_US)
    victim = even[0]
    fences = cluster.fences()
    killed_at = now()
    victim.kill()
    wait_for("takeover", lambda: shares(cluster) == split(2))
    took_us = now() - killed_at
    print(f"taken over after {took_us / 1e6:.1f} s")
    assert took_us < TAKEOVER_US
    assert planned_ahead_us(cluster) > HORIZON_US - 2 * TAKEOVER_US  # nothing near was waiting for anybody
    grown = [segment for segment, fence in cluster.fences().items() if fence > fences[segment]]
    assert len(grown) in (SEGMENTS // 3, SEGMENTS // 3 + 1)  # what the dead held, and nothing else
    wait_until(killed_at + 8 * SECOND_US)
    assert_all_once(shared_sink, jobs, killed_at, now() - 2 * SECOND_US, LATE_US)
    victim.start()


def test_one_that_is_stopped_gives_back_at_once_and_one_that_joins_gets_its_share(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str], even: list[Part]
) -> None:
    leaver = even[1]
    asked_at = now()
    leaver.send(signal.SIGTERM)
    wait_for("its share at the others", lambda: shares(cluster) == split(2))
    assert now() - asked_at < 3 * SECOND_US  # less than the lease
    assert leaver.wait() == 0
    leaver.start()
    joined_at = now()
    wait_for("its share", lambda: shares(cluster) == split(3))
    assert now() - joined_at < TAKEOVER_US
    assert cluster.holdings()[cluster.node(leaver)[0]] in (21, 22)
    wait_until(now() + 4 * SECOND_US)  # it may all have taken less than a second
    assert_all_once(shared_sink, jobs, asked_at, now() - 2 * SECOND_US, LATE_US)


def test_one_that_stood_still_is_refused_and_starts_again(
    cluster: Cluster, shared_sink: SinkProcess, jobs: list[str], even: list[Part]
) -> None:
    """Its lease ran out in the middle of whatever it did; what it goes on with bears an old fence."""
    sleeper = even[2]
    before, fences = cluster.node(sleeper)[0], cluster.fences()
    stopped_at = now()
    sleeper.send(signal.SIGSTOP)
    wait_for("takeover", lambda: shares(cluster) == split(2))
    assert now() - stopped_at < TAKEOVER_US
    others = cluster.fences()
    sleeper.send(signal.SIGCONT)
    wait_for("a new id", lambda: cluster.node(sleeper) != (before, False) and cluster.node(sleeper)[1])
    assert cluster.node(sleeper)[0] != before
    wait_for("even shares", lambda: shares(cluster) == split(3))
    assert "lease lost; starting again under a new id" in sleeper.output()
    after = cluster.fences()
    assert all(fences[segment] <= others[segment] <= after[segment] for segment in fences)
    wait_until(now() + 3 * SECOND_US)
    assert_all_once(shared_sink, jobs, stopped_at, now() - 2 * SECOND_US, LATE_US)
    doubles = cluster.read("SELECT job_id, scheduled_at FROM history GROUP BY 1, 2 HAVING count(*) > 1")
    assert not doubles
