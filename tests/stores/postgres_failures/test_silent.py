"""Servers that do not answer: nobody waits for them longer than it is worth."""

import asyncio
import os
import signal
from collections.abc import Awaitable
from typing import Any

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.ports.store import LeaseLost
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.postgres.engine import READ_S, WRITE_S
from tests.contract.builders import draft
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_databases import database_of
from tests.servers.tcp_proxy import TcpProxy
from tests.stores.postgres_failures.probes import (
    DEADLINE_S,
    HOUR_US,
    LEASE_US,
    POOL_SIZE,
    SLACK_S,
    count,
    create,
    healed,
    idle_again,
    said,
)


async def test_a_server_that_stands_still_is_not_waited_for_longer_than_it_is_worth(
    store: PostgresStore, server: PostgresServer, url: str
) -> None:
    job = await create(store)
    await store.hold_segments(5, "scheduler", "s", HOUR_US)
    server.pause()
    try:
        loop = asyncio.get_running_loop()
        began_s = loop.time()

        async def timed(verb: Awaitable[Any]) -> tuple[str, float]:
            return await said(verb), loop.time() - began_s

        lease, read, write, made = await asyncio.gather(
            timed(store.hold_segments(5, "scheduler", "s", LEASE_US)),
            timed(store.get_job(job.tenant, job.id)),
            timed(store.add_run(job.tenant, job.id, None)),
            timed(store.create_jobs([draft()])),
        )
        for (text, took_s), bound_s in ((lease, 1.0), (read, READ_S), (write, WRITE_S), (made, WRITE_S)):
            assert "does not answer" in text
            assert took_s < bound_s + SLACK_S
    finally:
        server.resume()
    await healed(store)
    await idle_again(server, url)
    assert count(server, url, "jobs") == 1
    assert not [
        row for row in await store.job_runs(job.tenant, job.id, [], None, 9) if row.scheduled_at % 100
    ]


async def test_one_dead_connection_is_enough_to_leave_them_all(
    store: PostgresStore, server: PostgresServer, url: str
) -> None:
    """As after a failover, when the machine behind the connections is gone and nobody says so."""
    await asyncio.gather(*(store.nodes() for _ in range(3 * POOL_SIZE)))
    pids = [
        row[0]
        for row in server.query(
            "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND application_name = 'hourhand'",
            database_of(url),
        )
    ]
    assert len(pids) > 1
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        await said(store.renew_node(1, "worker", "w", LEASE_US), within_s=1 + SLACK_S)
        async with asyncio.timeout(1):
            await store.renew_node(1, "worker", "w", LEASE_US)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    await idle_again(server, url)


async def test_a_server_slower_than_a_lease_costs_the_lease_and_nothing_else(
    far_store: PostgresStore, proxy: TcpProxy
) -> None:
    round_trips = 6  # begin, time, renew, peers, own, commit
    lease_us = 2 * SECOND_US
    held = await far_store.hold_segments(1, "scheduler", "slow", lease_us)
    proxy.delay(lease_us / 1000 * 0.8 / round_trips / 2)
    assert await far_store.hold_segments(1, "scheduler", "slow", lease_us) == held
    proxy.delay(lease_us / 1000 * 1.5 / round_trips / 2)
    assert "in time" in await said(far_store.hold_segments(1, "scheduler", "slow", lease_us))
    await proxy.heal()
    async with asyncio.timeout(DEADLINE_S):
        taken: dict[int, int] = {}
        while len(taken) < len(held):  # once the lease of the first has run out
            await asyncio.sleep(0.05)
            taken |= await far_store.hold_segments(2, "scheduler", "next", HOUR_US)
    with pytest.raises(LeaseLost):
        await far_store.hold_segments(1, "scheduler", "slow", lease_us)
    assert set(taken) == set(held)
    assert all(taken[segment] > held[segment] for segment in held)
