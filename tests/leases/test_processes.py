"""Two real processes with a scheduler each, on PostgreSQL and a real lease server: one is killed, then the server.

What was due is read from history: every second of every job once, and none late.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chaos.api import Api, now
from tests.chaos.calls import SECOND_US
from tests.chaos.process import Command, wait_for
from tests.servers.etcd import EtcdServer
from tests.servers.machine import free_port
from tests.servers.postgres_databases import PostgresDatabases
from tests.servers.redis import RedisServer

SEGMENTS = 64
JOBS = 20
TAKEOVER_US = 5 * SECOND_US
LATE_US = 2 * SECOND_US
START_S = 120.0
AWAY_US = 4 * SECOND_US  # longer than the leases


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """`up` with all parts, another scheduler, and the servers they need."""

    postgres: PostgresDatabases
    url: str
    server: RedisServer | EtcdServer
    up: Command
    other: Command
    api: Api
    probe: Api  # of the other

    def holdings(self) -> dict[str, int]:
        """How many segments each process has in the store."""
        rows = self.postgres.query(
            "SELECT n.name, count(*) FROM segments AS s JOIN nodes AS n ON n.id = s.node_id GROUP BY 1",
            database=self.url,
        )
        return {str(name).rpartition("-")[2]: count for name, count in rows}

    def fences(self) -> dict[int, int]:
        rows = self.postgres.query("SELECT segment, fence FROM segments", database=self.url)
        return dict(rows)

    def fires(self) -> list[tuple[int, int, int]]:
        """Job, nominal time and start of each run that is over."""
        rows = self.postgres.query(
            "SELECT job_id, scheduled_at, started_at FROM history ORDER BY 1, 2", database=self.url
        )
        return [(row[0], row[1], row[2]) for row in rows]

    def lease_server(self, part: Api) -> str:
        """What a process says of it, while it is ready."""
        answer = part.call("GET", "//readyz")
        assert answer.status == 200, answer.body
        return str(answer.body["parts"]["lease server"])


@pytest.fixture(params=["redis", "etcd"])
def pair(request: pytest.FixtureRequest, migrated_url: str, tmp_path: Path) -> Iterator[Pair]:
    server = request.getfixturevalue(f"own_{request.param}")()
    settings = {"HOURHAND_STORE_URL": migrated_url, "HOURHAND_LEASES_URL": server.url}
    api, probe = Api(free_port()), Api(free_port())
    up = Command(
        tmp_path,
        name="up",
        verb="up",
        arguments=["--import", "tests.chaos.functions"],
        probe=api,
        more={**settings, "HOURHAND_SERVER_LISTEN": f"127.0.0.1:{api._port}"},
    )
    other = Command(
        tmp_path,
        name="scheduler",
        verb="scheduler",
        probe=probe,
        more={**settings, "HOURHAND_TELEMETRY_LISTEN": f"127.0.0.1:{probe._port}"},
    )
    up.spawn()
    other.spawn()
    try:
        for command in (up, other):
            wait_for(f"{command.name} ready", command.is_ready, START_S)
        postgres = request.getfixturevalue("postgres_server")
        yield Pair(
            postgres=postgres, url=migrated_url, server=server, up=up, other=other, api=api, probe=probe
        )
    finally:
        up.kill()
        other.kill()


def test_a_killed_scheduler_is_replaced_in_time_and_a_lost_lease_server_delays_nothing(pair: Pair) -> None:
    jobs = [
        pair.api.create(
            every="1s",
            phase=f"2026-01-01T00:00:00.{number:02}Z",
            target={"function": "tests.chaos.functions:well"},
            concurrency="unlimited",
        )
        for number in range(JOBS)
    ]
    wait_for("even shares", lambda: sorted(pair.holdings().values()) == [32, 32], START_S)
    wait_for("fires of every job", lambda: len({fire[0] for fire in pair.fires()}) == len(jobs))
    from_at = now()

    pair.server.kill()
    wait_for("word of the outage", lambda: pair.lease_server(pair.api).startswith("away"))
    fences = pair.fences()
    wait_for("some seconds without it", lambda: now() > from_at + AWAY_US, within_s=60)
    assert pair.fences() == fences, "nobody lost anything"
    pair.server.start()
    wait_for("word of its return", lambda: {*map(pair.lease_server, (pair.api, pair.probe))} == {"ok"})
    assert pair.fences() == fences

    assert pair.other.process is not None
    dead = str(pair.other.process.pid)
    pair.other.kill()
    killed_at = now()
    wait_for("takeover", lambda: pair.holdings().get(dead, 0) == 0, within_s=60)
    took_us = now() - killed_at
    print(f"taken over after {took_us / 1e6:.1f} s")
    assert took_us < TAKEOVER_US
    lost = [segment for segment, fence in pair.fences().items() if fence > fences[segment]]
    assert len(lost) == SEGMENTS // 2, "what the dead held, and nothing else"

    until_at = now()
    wait_for("the last fires", lambda: now() > until_at + SECOND_US, within_s=60)
    assert_undisturbed(pair, from_at, until_at - SECOND_US)


def assert_undisturbed(pair: Pair, from_at: int, to_at: int) -> None:
    """Every second of every job was run once, and on time."""
    fires = [fire for fire in pair.fires() if from_at < fire[1] <= to_at]
    assert len({fire[:2] for fire in fires}) == len(fires), "none twice"
    assert len({fire[0] for fire in fires}) == JOBS
    for job in {fire[0] for fire in fires}:
        times = [at for owner, at, _ in fires if owner == job]
        assert times == list(range(times[0], times[-1] + 1, SECOND_US))
        assert len(times) >= (to_at - from_at) // SECOND_US
    worst_us = max(started_at - at for _, at, started_at in fires)
    print(f"{len(fires)} fires, worst {worst_us / 1000:.0f} ms after its time")
    assert worst_us < LATE_US
