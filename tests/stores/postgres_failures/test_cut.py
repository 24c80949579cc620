"""Connections that are cut, also within a commit: all is written or nothing, and a repetition does no harm."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.model import Job
from hourhand.core.run import Settlement
from hourhand.ports.store import ClaimRequest, Refusal
from hourhand.stores.postgres import PostgresStore
from tests.contract.builders import draft, every, once, spec
from tests.servers.postgres import PostgresServer
from tests.servers.tcp_proxy import TcpProxy
from tests.stores.postgres_failures.probes import (
    HOUR_US,
    count,
    create,
    holding,
    idle_again,
    now_at,
    said,
    waits_for_lock,
)

TABLES = ("jobs", "clocks", "members", "planned")


@pytest.mark.parametrize("table", TABLES)
async def test_a_create_that_is_cut_in_the_middle_leaves_nothing_of_the_job(
    table: str, far_store: PostgresStore, proxy: TcpProxy, server: PostgresServer, url: str
) -> None:
    trap = proxy.cut_before(f"INSERT INTO {table} ".encode())
    drafts = [draft(spec(every(1))), draft(spec(once(now_at() + HOUR_US)))]
    assert "lost" in await said(far_store.create_jobs(drafts))
    assert trap.sprung
    # The clock is made in a commit of its own before: the one rule's, and without members it plans nothing.
    assert count(server, url, "clocks") == int(table != "clocks")
    assert [count(server, url, name) for name in TABLES if name != "clocks"] == [0, 0, 0]
    assert [type(answer) for answer in await far_store.create_jobs(drafts)] == [Job, Job]
    await idle_again(server, url)


async def test_a_commit_that_never_arrived_did_not_happen(
    far_store: PostgresStore, proxy: TcpProxy, server: PostgresServer, url: str
) -> None:
    trap = proxy.cut_before(b"COMMIT")
    new = draft()
    await said(far_store.create_jobs([new]))
    assert trap.sprung
    assert count(server, url, "jobs") == 0
    [job] = await far_store.create_jobs([new])
    assert isinstance(job, Job)


async def test_a_commit_whose_answer_is_lost_happened_and_a_repetition_does_no_harm(
    far_store: PostgresStore, proxy: TcpProxy, server: PostgresServer, url: str
) -> None:
    async def lose_answer(verb: Coroutine[Any, Any, Any]) -> None:
        trap = proxy.cut_after(b"COMMIT", reply=b"COMMIT")
        await said(verb)
        assert trap.sprung

    new = draft(spec(once(now_at())))
    await lose_answer(far_store.create_jobs([new]))
    assert await far_store.create_jobs([new]) == [Refusal.ID_TAKEN]

    await lose_answer(far_store.add_run(new.tenant, new.id, "same request"))
    made = await far_store.add_run(new.tenant, new.id, "same request")
    assert made is not None
    assert count(server, url, "planned") == 2  # its own time and this one

    await far_store.renew_node(7, "worker", "w", HOUR_US)
    request = ClaimRequest(node_id=7, pools=("default",), room=1, lead_us=SECOND_US)
    await lose_answer(far_store.claim(request))
    [held] = await far_store.held_runs(7)  # what a worker asks after an answer was lost

    settlement = Settlement(
        job_id=held.job_id, scheduled_at=held.scheduled_at, slot=held.slot, fence=held.fence,
        event=Event.SUCCEED, version=1, tries=0, finished_at=now_at(),
    )  # fmt: skip
    await lose_answer(far_store.settle("w", [settlement]))
    assert await far_store.settle("w", [settlement]) == [settlement]
    assert count(server, url, "history") == 1


async def test_a_caller_who_gives_up_takes_its_transaction_back(
    store: PostgresStore, server: PostgresServer, url: str
) -> None:
    job = await create(store)
    async with holding(url, "LOCK TABLE planned IN ACCESS EXCLUSIVE MODE"):
        waiting = asyncio.create_task(store.add_run(job.tenant, job.id, "k"))
        await waits_for_lock(server, url)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await idle_again(server, url)
    assert count(server, url, "request_keys") == 0
    assert await store.add_run(job.tenant, job.id, "k") is not None
