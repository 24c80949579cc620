"""PostgreSQL fails in every way it can: verbs say so in time and in words, write all or nothing, and go on once it heals.

One server of this file's own is stopped, killed, paused and cut off; the store object is always the same one.
"""

import asyncio
import inspect
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.log import LogChunk, LogPlace, Stream
from hourhand.core.model import Job, JobState
from hourhand.core.plan import ClockPlan
from hourhand.core.run import ProgressNote, Settlement
from hourhand.core.serving import Serves
from hourhand.errors import CannotStart, StorageFull, Unavailable
from hourhand.ports.store import (
    ClaimRequest,
    DeadQuery,
    JobEdit,
    JobQuery,
    LeaseLost,
    Refusal,
    RunQuery,
    Store,
)
from hourhand.stores.postgres import PostgresStore, schema
from hourhand.stores.postgres.engine import READ_S, WRITE_S, PostgresTx
from tests.contract.builders import draft, every, once, outcome, spec
from tests.servers.postgres import PostgresServer, require_postgres
from tests.servers.postgres_databases import database_of
from tests.servers.tcp_proxy import TcpProxy

DEADLINE_S = 20.0
HOUR_US = 3_600 * SECOND_US
LEASE_US = SECOND_US
POOL_SIZE = 4
CANARY = "canary-swordfish"
SLACK_S = 1.5  # for a machine that is busy with other tests

Open = Callable[..., Awaitable[PostgresStore]]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    require_postgres()
    with PostgresServer(settings={"deadlock_timeout": "50ms", "synchronous_commit": "on"}) as started:
        yield started


@pytest.fixture(scope="module")
def template(server: PostgresServer) -> str:
    url = server.create_database("template_of_failures")
    asyncio.run(schema.up(url))
    return url


@pytest.fixture
def url(server: PostgresServer, template: str) -> Iterator[str]:
    made = server.create_database(template=template)
    yield made
    if server.pid is None:
        server.start()
    server.resume()
    server.drop_database(made)


@pytest.fixture
async def open_store() -> AsyncIterator[Open]:
    opened: list[PostgresStore] = []

    async def open_(url: str, **options: Any) -> PostgresStore:
        store = await PostgresStore.open(url, **{"pool_size": POOL_SIZE, **options})
        opened.append(store)
        return store

    yield open_
    for store in opened:
        await store.close()


@pytest.fixture
async def store(url: str, open_store: Open) -> PostgresStore:
    return await open_store(url)


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[TcpProxy]:
    async with TcpProxy.to_url(url) as started:
        yield started


@pytest.fixture
async def far_store(url: str, proxy: TcpProxy, open_store: Open) -> PostgresStore:
    """A store behind the proxy."""
    return await open_store(proxy.url_of(url), listen_url=url)


async def said(verb: Awaitable[Any], within_s: float = DEADLINE_S) -> str:
    """What a verb says that must fail as unavailable, in time and without naming what is nobody's business."""
    with pytest.raises(Unavailable) as failure:
        async with asyncio.timeout(within_s):
            await verb
    text = failure.value.message
    for secret in (CANARY, "127.0.0.1", "postgresql://"):
        assert secret not in text
    return text


async def healed(store: PostgresStore) -> None:
    """The same object works again; a connection or two may have to be found dead first."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await store.ping()
                return
            except Unavailable:
                await asyncio.sleep(0.02)


async def idle_again(server: PostgresServer, url: str, most: int = POOL_SIZE) -> None:
    """No connection is left behind, and none holds a transaction."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            rows = server.query(
                "SELECT state FROM pg_stat_activity WHERE datname = $1 AND application_name = 'hourhand'",
                database_of(url),
            )
            if len(rows) <= most and all(row[0] == "idle" for row in rows):
                return
            await asyncio.sleep(0.05)


def count(server: PostgresServer, url: str, table: str) -> int:
    return int(server.query(f"SELECT count(*) FROM {table}", database=url)[0][0])


def now_at() -> int:
    return time.time_ns() // 1000


async def create(store: PostgresStore, **fields: Any) -> Job:
    [job] = await store.create_jobs([draft(spec(every(1), **fields))])
    assert isinstance(job, Job)
    return job


async def claimed(store: PostgresStore, node_id: int = 7) -> list[Any]:
    await store.renew_node(node_id, "worker", "w", HOUR_US)
    request = ClaimRequest(node_id=node_id, pools=("default",), room=10, lead_us=2 * SECOND_US)
    return (await store.claim(request)).runs


# --- a server that is gone

_KEY = RunKey(1, 2)
_CHUNK = LogChunk(job_id=1, scheduled_at=2, attempt=1, seq=1, at=3, stream=Stream.OUTPUT, text="said")
_SETTLEMENT = Settlement(
    job_id=1, scheduled_at=2, slot=0, fence=1, event=Event.SUCCEED, version=1, tries=0, finished_at=3
)
EXAMPLES: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "now": lambda s: s.now(),
    "ping": lambda s: s.ping(),
    "backlog": lambda s: s.backlog(),
    "create_jobs": lambda s: s.create_jobs([draft()]),
    "change_job": lambda s: s.change_job("t", 1, lambda job, _: JobEdit(spec=job.spec, paused=True)),
    "delete_job": lambda s: s.delete_job("t", 1, cancel_running=True),
    "get_job": lambda s: s.get_job("t", 1),
    "find_jobs": lambda s: s.find_jobs("t", "name", 1),
    "list_jobs": lambda s: s.list_jobs("t", JobQuery()),
    "versions": lambda s: s.versions("t", 1),
    "missed": lambda s: s.missed("t", 1),
    "tend_jobs": lambda s: s.tend_jobs(1),
    "due_clocks": lambda s: s.due_clocks([0], 1, 1),
    "next_clock_at": lambda s: s.next_clock_at([0]),
    "plan": lambda s: s.plan([ClockPlan(clock_id=1, expected_next_at=1, new_next_at=2, times=())]),
    "add_run": lambda s: s.add_run("t", 1, "key"),
    "claim": lambda s: s.claim(ClaimRequest(node_id=11, pools=("default",), room=1, lead_us=0)),
    "settle": lambda s: s.settle("w", [_SETTLEMENT]),
    "held_runs": lambda s: s.held_runs(1),
    "cancel_asked": lambda s: s.cancel_asked(1),
    "cancel_run": lambda s: s.cancel_run("t", _KEY),
    "stray_runs": lambda s: s.stray_runs(1, 1),
    "judge_late": lambda s: s.judge_late({}, 1),
    "hand_on_slots": lambda s: s.hand_on_slots(1),
    "purge": lambda s: s.purge(0, 0, 1),
    "tidy": lambda s: s.tidy(),
    "renew_node": lambda s: s.renew_node(1, "worker", "w", LEASE_US),
    "end_node": lambda s: s.end_node(1),
    "hold_segments": lambda s: s.hold_segments(1, "scheduler", "s", LEASE_US),
    "tell_served": lambda s: s.tell_served(1, Serves(pools=("default",))),
    "nodes": lambda s: s.nodes(),
    "job_runs": lambda s: s.job_runs("t", 1, [], None, 1),
    "get_run": lambda s: s.get_run("t", _KEY),
    "list_runs": lambda s: s.list_runs("t", RunQuery(from_at=0, to_at=1)),
    "dead_letters": lambda s: s.dead_letters("t", DeadQuery()),
    "dead_groups": lambda s: s.dead_groups("t", "error", 1),
    "requeue": lambda s: s.requeue("t", [_KEY]),
    "discard": lambda s: s.discard("t", [_KEY]),
    "find_attempt": lambda s: s.find_attempt(_KEY, 1),
    "note_progress": lambda s: s.note_progress([ProgressNote(job_id=1, scheduled_at=1, slot=0, fence=1)]),
    "descend": lambda s: s.descend(1),
    "judge_waits": lambda s: s.judge_waits(1),
    "run_facts": lambda s: s.run_facts("t", _KEY),
    "job_marks": lambda s: s.job_marks("t", [1], 1),
    "append_log": lambda s: s.append_log([_CHUNK]),
    "read_log": lambda s: s.read_log(_KEY, LogPlace(), None, 1),
    "graph": lambda s: s.graph("t", 1),
    "peek_jobs": lambda s: s.peek_jobs("t", [1]),
    "glance": lambda s: s.glance("t", [1], None),
}


def test_every_verb_has_an_example() -> None:
    verbs = {name for name, verb in vars(Store).items() if inspect.iscoroutinefunction(verb)}
    assert set(EXAMPLES) == verbs - {"close", "report_key"}  # the key is read at the start and kept


@pytest.mark.parametrize("fault", ["refused", "cut at the beginning", "cut at the end"])
async def test_every_verb_says_that_the_database_is_unavailable(
    fault: str, far_store: PostgresStore, proxy: TcpProxy, server: PostgresServer, url: str
) -> None:
    await far_store.renew_node(11, "worker", "the one that claims", HOUR_US)
    if fault == "refused":
        await proxy.refuse()
        proxy.cut()
    for name, verb in EXAMPLES.items():
        if name == "tidy":  # works outside transactions
            proxy.cut_before(b"SELECT")
        elif fault != "refused":
            proxy.cut_before(b"BEGIN" if fault == "cut at the beginning" else b"COMMIT")
        try:
            assert await said(verb(far_store)), name
        except BaseException as error:
            error.add_note(f"verb: {name}")
            raise
    await proxy.heal()
    await healed(far_store)
    assert (count(server, url, "jobs"), count(server, url, "nodes")) == (0, 1)
    await idle_again(server, url)


@pytest.mark.parametrize("fault", ["restart", "immediate stop", "kill"])
async def test_a_stop_of_the_server_loses_nothing_that_was_acknowledged(
    fault: str, store: PostgresStore, server: PostgresServer, url: str
) -> None:
    acknowledged: list[Job] = []
    asked: list[int] = []
    failures: list[Unavailable] = []
    stop = asyncio.Event()

    async def creator() -> None:
        while not stop.is_set():
            one = draft(spec(once(now_at() + HOUR_US)))
            asked.append(one.id)
            try:
                [job] = await store.create_jobs([one])
            except Unavailable as error:
                failures.append(error)
                await asyncio.sleep(0.02)
            else:
                assert isinstance(job, Job)
                acknowledged.append(job)

    creators = [asyncio.create_task(creator()) for _ in range(4)]
    await _until(lambda: len(acknowledged) > 5)
    if fault == "kill":
        await asyncio.to_thread(server.kill)
        await _until(lambda: len(failures) > 0)
        await asyncio.to_thread(server.start)
    else:
        await asyncio.to_thread(server.restart, "fast" if fault == "restart" else "immediate")
    before = len(acknowledged)
    await _until(lambda: len(acknowledged) > before + 5)
    stop.set()
    await asyncio.gather(*creators)
    assert failures
    kept = {row[0] for row in server.query("SELECT id FROM jobs", database=url)}
    assert {job.id for job in acknowledged} <= kept <= set(asked)
    planned = {row[0] for row in server.query("SELECT job_id FROM planned", database=url)}
    assert planned == kept  # each whole, or not at all
    await idle_again(server, url)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


# --- connections that are cut

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


@asynccontextmanager
async def holding(url: str, statement: str) -> AsyncIterator[None]:
    """Somebody else's transaction that has something locked."""
    other = await asyncpg.connect(url)
    try:
        async with other.transaction():
            await other.execute(statement)
            yield
    finally:
        await other.close()


async def waits_for_lock(server: PostgresServer, url: str) -> None:
    """Until one of ours waits for a lock."""
    query = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'"
        " AND application_name = 'hourhand'"
    )
    await _until(lambda: bool(server.query(query, database_of(url))))


# --- servers that do not answer


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


# --- servers that refuse


async def test_locks_of_others_and_a_busy_pool_are_told_apart(
    url: str, open_store: Open, server: PostgresServer
) -> None:
    store = await open_store(url, pool_size=1)
    job = await create(store)
    pause: Callable[[Job, int], JobEdit] = lambda job, _: JobEdit(spec=job.spec, paused=True)  # noqa: E731
    async with holding(url, f"SELECT 1 FROM jobs WHERE id = {job.id} FOR UPDATE"):
        waiting = asyncio.create_task(said(store.change_job(job.tenant, job.id, pause)))
        await waits_for_lock(server, url)
        assert "all 1 connections" in await said(store.renew_node(1, "worker", "w", LEASE_US), 1 + SLACK_S)
        assert "somebody else holds the rows" in await waiting
    changed = await store.change_job(job.tenant, job.id, pause)
    assert changed is not None
    assert (changed.job.version, changed.job.state) == (2, JobState.PAUSED)
    await idle_again(server, url, 1)


async def test_a_deadlock_is_started_over_unseen(store: PostgresStore, server: PostgresServer) -> None:
    first, second = await create(store), await create(store)
    both_hold = asyncio.Barrier(2)
    tries = 0

    async def in_order(*ids: int) -> None:
        meets = True

        async def lock(tx: PostgresTx) -> None:
            nonlocal meets, tries
            tries += 1
            await tx.one("lock_job", (ids[0],))
            if meets:
                meets = False
                await both_hold.wait()
            await tx.one("lock_job", (ids[1],))

        await store._engine.write(lock)

    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(in_order(first.id, second.id), in_order(second.id, first.id))
    assert tries == 3


async def test_a_database_that_turned_read_only_is_read_and_written_again_later(
    store: PostgresStore, server: PostgresServer, url: str
) -> None:
    job = await create(store)
    name = database_of(url)
    server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    end_sessions(server, url)
    assert "read-only" in await said(_second_try(lambda: store.create_jobs([draft()])))
    assert await store.get_job(job.tenant, job.id) == job
    assert "read-only" in await said(store.renew_node(1, "worker", "w", LEASE_US))
    server.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    await store.renew_node(1, "worker", "w", LEASE_US)
    await create(store)
    await idle_again(server, url)


def end_sessions(server: PostgresServer, url: str) -> None:
    server.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", database_of(url)
    )


async def _second_try(verb: Callable[[], Awaitable[Any]]) -> Any:
    """The first may still meet a connection that was just ended."""
    try:
        return await verb()
    except Unavailable as error:
        if "lost" not in error.message and "terminating" not in error.message:
            raise
    return await verb()


async def test_a_full_disk_is_said_to_be_one(store: PostgresStore, server: PostgresServer, url: str) -> None:
    server.execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END $$;"
        "CREATE TRIGGER full_disk BEFORE INSERT ON planned EXECUTE FUNCTION full_disk()",
        database=url,
    )
    with pytest.raises(StorageFull, match="disk of the database is full"):
        await store.create_jobs([draft(spec(once(now_at())))])
    assert count(server, url, "jobs") == 0
    server.execute("DROP TRIGGER full_disk ON planned", database=url)
    await create(store)


async def test_a_database_that_is_dropped_and_restored(
    store: PostgresStore, server: PostgresServer, url: str, template: str
) -> None:
    await create(store)
    server.drop_database(url)
    assert "gone" in await said(_second_try(store.ping))
    server.create_database(database_of(url), template=template)
    await healed(store)
    await create(store)


@pytest.fixture
async def guarded(server: PostgresServer) -> AsyncIterator[str]:
    """A database whose owner needs a password."""
    rules = server.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{before}")
    server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{CANARY}'")
    server.query("SELECT pg_reload_conf()")
    made = server.create_database()
    server.execute(f"ALTER DATABASE {database_of(made)} OWNER TO guarded")
    server.execute("ALTER SCHEMA public OWNER TO guarded", database=made)
    url = made.replace("postgres@", f"guarded:{CANARY}@")
    await schema.up(url)
    yield url
    server.drop_database(made)
    server.execute("DROP ROLE guarded")
    rules.write_text(before)
    server.query("SELECT pg_reload_conf()")


async def test_a_password_that_changes_and_connections_that_run_out(
    guarded: str, server: PostgresServer, open_store: Open
) -> None:
    store = await open_store(guarded)
    server.execute("ALTER ROLE guarded PASSWORD 'another'")
    end_sessions(server, guarded)
    assert "refuses the login" in await said(_second_try(store.ping))
    with pytest.raises(CannotStart, match="refuses the connection") as failure:
        await open_store(guarded)
    assert CANARY not in str(failure.value)
    server.execute(f"ALTER ROLE guarded PASSWORD '{CANARY}' CONNECTION LIMIT 1")
    await healed(store)
    job = await create(store)
    plain = server.url_of(database_of(guarded))
    async with holding(plain, f"SELECT 1 FROM jobs WHERE id = {job.id} FOR UPDATE"):
        waiting = asyncio.create_task(store.delete_job(job.tenant, job.id, cancel_running=False))
        await waits_for_lock(server, guarded)
        assert "no connection left" in await said(store.ping())
    assert await waiting is not None
    server.execute("ALTER ROLE guarded CONNECTION LIMIT -1")
    await asyncio.gather(*(store.ping() for _ in range(POOL_SIZE)))
    await idle_again(server, guarded)


async def test_a_value_that_no_column_holds_is_no_outage(store: PostgresStore) -> None:
    with pytest.raises(asyncpg.DataError):
        await store.create_jobs([draft(spec(every(1), name="nul \0 in it"))])
    with pytest.raises(asyncpg.DataError, match="int64"):
        await store.get_job("t", 1 << 70)
    await create(store)


async def test_an_error_text_with_odd_characters_still_becomes_a_dead_letter(store: PostgresStore) -> None:
    [job] = await store.create_jobs([draft(spec(once(now_at())))])
    assert isinstance(job, Job)
    [run] = await claimed(store)
    odd = outcome(run, Event.EXHAUST, now_at=now_at(), tries=1, detail={"error": "bytes \0 of nothing"})
    assert await store.settle("w", [odd]) == []
    [letter] = (await store.dead_letters(job.tenant, DeadQuery())).letters
    assert letter.error.startswith("bytes ")
