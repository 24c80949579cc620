"""From process to process over a real PostgreSQL: what is heard, what is merged, and how a cut is got over."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import asyncpg
import pytest

from hourhand.clock import ManualClock
from hourhand.errors import Unavailable
from hourhand.ports.events import Event, EventBatch, EventData, EventType
from hourhand.services.event_log import EventFilter, EventLog, Reset
from hourhand.services.local_events import LocalEvents
from hourhand.stores.postgres import channel as module
from hourhand.stores.postgres.channel import EVENTS, HINTS, Channel
from hourhand.stores.postgres.events import PostgresEvents
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres_databases import PostgresDatabases
from tests.servers.tcp_proxy import TcpProxy

DEADLINE_S = 15.0


class Process:
    """A process of the cluster: its channel, and what it heard over it."""

    def __init__(
        self, name: str, url: str, *, listen_url: str | None = "", channels: Sequence[str] = (HINTS, EVENTS)
    ) -> None:
        self._name = name
        self._url = url
        self._pool: asyncpg.Connection | None = None
        self.sent: list[tuple[str, str]] = []
        self.heard: list[tuple[str, str]] = []
        self.resyncs = 0
        self._changed = asyncio.Condition()
        self._using = asyncio.Lock()
        self.before_send: Callable[[], None] = lambda: None
        self.channel = Channel(
            listen_url=url if listen_url == "" else listen_url, execute_notify=self._execute, publisher=name
        )
        for one in channels:
            self.listen(one)

    def listen(self, channel: str) -> None:
        def heard(payload: str) -> None:
            self.heard.append((channel, payload))
            self._note()

        self.channel.listen(channel, heard, self._resync)

    def _resync(self) -> None:
        self.resyncs += 1
        self._note()

    def _note(self) -> None:
        async def tell() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._noting = asyncio.ensure_future(tell())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something was heard or sent that makes it true."""
        async with asyncio.timeout(DEADLINE_S), self._changed:
            await self._changed.wait_for(condition)

    async def _execute(self, channel: str, payload: str) -> None:
        self.before_send()
        async with self._using:
            await self._notify(channel, payload)

    async def _notify(self, channel: str, payload: str) -> None:
        if self._pool is None or self._pool.is_closed():
            self._pool = await asyncpg.connect(self._url, statement_cache_size=0)
        await self._pool.execute("SELECT pg_notify($1, $2)", channel, payload)
        if payload != f"{self._name} ":  # its echo
            self.sent.append((channel, payload.partition(" ")[2]))
            self._note()

    async def close(self) -> None:
        await self.channel.close()
        if self._pool is not None:
            await self._pool.close()


@asynccontextmanager
async def cluster(url: str, *names: str, listen_url: str | None = "") -> AsyncIterator[list[Process]]:
    processes = [Process(name, url, listen_url=listen_url) for name in names]
    for process in processes:
        await process.channel.start()
    try:
        yield processes
    finally:
        for process in processes:
            await process.close()


async def cut_listeners(url: str) -> int:
    """End every connection that listens, as an operator would."""
    connection = await asyncpg.connect(url)
    try:
        return len(
            await connection.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
        )
    finally:
        await connection.close()


async def last_asked(url: str) -> list[str]:
    """The last statement of each connection that listens."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        return sorted(row["query"].replace('"', "") for row in rows)
    finally:
        await connection.close()


async def test_others_hear_what_one_says_and_oneself_does_not(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b", "c") as (a, b, c):
        assert a.channel.listening
        a.channel.notify(HINTS, "runs clocks")
        a.channel.notify(EVENTS, "[one]")
        await b.until(lambda: len(b.heard) == 2)
        await c.until(lambda: len(c.heard) == 2)
        assert b.heard == c.heard == [(HINTS, "runs clocks"), (EVENTS, "[one]")]
        b.channel.notify(EVENTS, "[two]")  # comes after all of a's on every connection
        await a.until(lambda: len(a.heard) == 1)
        assert a.heard == [(EVENTS, "[two]")]
        assert (a.resyncs, b.resyncs) == (0, 0)


async def test_hints_are_merged_and_events_are_not(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as (a, b):
        first_sent = asyncio.Event()
        a.before_send = first_sent.set
        a.channel.notify(HINTS, "runs")
        await first_sent.wait()  # the first does not wait for others
        for _ in range(200):
            a.channel.notify(HINTS, "runs")
            a.channel.notify(HINTS, "clocks runs")
        for number in range(3):
            a.channel.notify(EVENTS, f"[{number}]")
        await b.until(lambda: (EVENTS, "[2]") in b.heard)
        assert b.heard == [
            (HINTS, "runs"),
            (HINTS, "runs clocks"),
            (EVENTS, "[0]"),
            (EVENTS, "[1]"),
            (EVENTS, "[2]"),
        ]
        await a.until(lambda: len(a.sent) >= 5)  # the other may hear the last before this one has its answer
        assert len(a.sent) == 5


async def test_a_cut_connection_comes_back_and_says_that_something_may_be_missing(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as (a, b):
        for round_number in range(1, 4):
            assert await cut_listeners(postgres_url) == 2
            await a.until(lambda n=round_number: a.resyncs == 2 * n)  # one for each of its two listeners
            await b.until(lambda n=round_number: b.resyncs == 2 * n)
            assert a.channel.listening
            a.channel.notify(HINTS, f"word{round_number}")
            await b.until(lambda n=round_number: (HINTS, f"word{n}") in b.heard)


async def test_without_a_server_it_waits_for_one(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSES_S", (0.1, 0.2))
    async with TcpProxy.to_url(postgres_url) as proxy:
        await proxy.refuse()
        async with cluster(postgres_url, "a", "b", listen_url=proxy.url_of(postgres_url)) as (a, b):
            assert not b.channel.listening
            a.channel.notify(HINTS, "lost")
            await proxy.heal()
            await b.until(lambda: b.resyncs == 2)
            assert b.channel.listening
            a.channel.notify(HINTS, "found")
            await b.until(lambda: (HINTS, "found") in b.heard)


async def test_a_half_open_connection_is_noticed(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHECK_S", 0.1)
    monkeypatch.setattr(module, "_ANSWER_S", 0.3)
    async with (
        TcpProxy.to_url(postgres_url) as proxy,
        cluster(postgres_url, "a", listen_url=proxy.url_of(postgres_url)) as [a],
    ):
        assert a.channel.listening
        proxy.stall()
        async with asyncio.timeout(DEADLINE_S):
            while a.channel.listening:  # noqa: ASYNC110 - nobody tells of silence
                await asyncio.sleep(0.01)
        await proxy.heal()
        await a.until(lambda: a.resyncs == 2)


async def test_who_cannot_send_goes_on_and_sends_again_later(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as (a, b):
        failed = asyncio.Event()

        def fail() -> None:
            failed.set()
            raise RuntimeError("the pool is exhausted")

        a.before_send = fail
        a.channel.notify(HINTS, "lost")
        a.channel.notify(EVENTS, "x" * 9_000)
        async with asyncio.timeout(DEADLINE_S):
            await failed.wait()
        a.before_send = lambda: None
        a.channel.notify(HINTS, "found")
        await b.until(lambda: b.heard == [(HINTS, "found")])


async def test_a_listener_that_fails_does_not_make_the_others_deaf(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as (a, b):

        def fail(payload: str) -> None:
            raise RuntimeError("broken")

        b.channel._heard[HINTS].insert(0, fail)
        a.channel.notify(HINTS, "one")
        await b.until(lambda: b.heard == [(HINTS, "one")])


async def test_without_an_address_it_is_deaf_but_not_mute(postgres_url: str) -> None:
    async with cluster(postgres_url, "b") as [b], cluster(postgres_url, "a", listen_url=None) as [a]:
        assert not a.channel.listening
        a.channel.notify(HINTS, "runs")
        await b.until(lambda: b.heard == [(HINTS, "runs")])


async def test_closing_sends_what_waits_and_takes_no_more(postgres_url: str) -> None:
    async with cluster(postgres_url, "b") as [b]:
        async with cluster(postgres_url, "a") as [a]:
            for number in range(3):
                a.channel.notify(EVENTS, f"[{number}]")
        a.channel.notify(EVENTS, "[too late]")
        await b.until(lambda: len(b.heard) == 3)


async def test_the_server_can_tell_listeners_from_others(postgres_url: str) -> None:
    async with cluster(postgres_url, "a"):
        connection = await asyncpg.connect(postgres_url)
        try:
            names = await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE application_name = 'hourhand listen' AND datname = current_database()"
            )
        finally:
            await connection.close()
        assert names == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ConnectionRefusedError(111, "at 10.0.0.1"),
            "the database cannot be reached (ConnectionRefusedError)",
        ),
        (TimeoutError(), "the database does not answer in time"),
        (asyncpg.TooManyConnectionsError("sorry"), "the database has no connection left"),
        (asyncpg.InterfaceError("closed"), "the connection to the database was lost"),
        (Unavailable("the database is away"), "the database is away"),
        (KeyError("ours"), "KeyError: 'ours'"),
    ],
)
def test_what_goes_wrong_is_told_in_our_words(error: Exception, words: str) -> None:
    assert module._words_of(error) == words


async def test_only_what_somebody_wants_is_listened_to(postgres_url: str) -> None:
    async with cluster(postgres_url, "a") as [a]:
        b = Process("b", postgres_url, channels=())
        await b.channel.start()
        try:
            assert await last_asked(postgres_url) == [f"LISTEN {EVENTS}", f"LISTEN {HINTS}"]
            b.listen(EVENTS)
            async with asyncio.timeout(DEADLINE_S):
                while await last_asked(postgres_url) != [f"LISTEN {EVENTS}"] * 2:
                    pass
            a.channel.notify(EVENTS, "[1]")
            await b.until(lambda: b.heard == [(EVENTS, "[1]")])
        finally:
            await b.close()


async def test_behind_a_pooler_that_swallows_listen_it_knows_that_it_is_deaf(
    postgres_server: PostgresDatabases,
    postgres_url: str,
    pgbouncer: Callable[..., PgBouncer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_ECHO_S", 0.3)
    pooled_url = pgbouncer(postgres_server).url_of(postgres_url)
    async with cluster(postgres_url, "b") as [b]:
        async with cluster(pooled_url, "a") as [a]:
            assert not a.channel.listening
            a.channel.notify(HINTS, "runs")
            await b.until(lambda: b.heard == [(HINTS, "runs")])
        async with cluster(pooled_url, "c", listen_url=postgres_url) as [c]:
            assert c.channel.listening


# --- events over it


def event(number: int) -> Event:
    data = EventData(state="SUCCEEDED", name="täglich", error="x" * 200)
    return Event(f"{number:016d}-a", EventType.RUN_SUCCEEDED, "default", 1, 5, 1, data)


async def test_events_reach_the_clients_of_every_process_once(postgres_url: str) -> None:
    async with cluster(postgres_url, "a", "b") as (a, b):
        logs = []
        buses = []
        for process in (a, b):
            local, log = LocalEvents(), EventLog(clock=ManualClock(1))
            local.subscribe(log.add)
            logs.append(log)
            buses.append(PostgresEvents(process.channel, local))
        clients = [log.follow(EventFilter(tenant="default")) for log in logs]
        for sender, number in ((0, 1), (0, 2), (1, 3)):
            buses[sender].publish(EventBatch((event(number),), {"default": {EventType.RUN_FAILED: 1}}))
            for client in clients:
                assert await client.take(DEADLINE_S) == [event(number)]
        a.channel.notify(EVENTS, "not a batch")
        await b.until(lambda: (EVENTS, "not a batch") in b.heard)
        assert await cut_listeners(postgres_url) == 2
        for client in clients:
            messages = await client.take(DEADLINE_S) or []
            while not any(isinstance(message, Reset) for message in messages):
                messages = await client.take(DEADLINE_S) or []
        for client in clients:
            client.close()
