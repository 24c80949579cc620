"""Databases that are away at the start, or come later than the others."""

import asyncio
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from hourhand.clock import ManualClock
from hourhand.config import Settings
from hourhand.config.settings import StoreSettings
from hourhand.errors import CannotStart, Unavailable
from hourhand.ports.store import Hint, Store
from hourhand.stores.postgres import schema
from hourhand.stores.sqlite import SqliteStore
from hourhand.wiring.databases import Database, Databases, LateStore, require_postgres
from hourhand.wiring.life import Ending, Pauses, farewell
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_databases import PostgresDatabases

DEADLINE_S = 30


async def test_a_server_that_is_away_is_waited_for_until_the_process_is_told_to_end(
    unused_tcp_port: int,
) -> None:
    ending = Ending()
    url = f"postgres://ann:canary@127.0.0.1:{unused_tcp_port}/x"
    databases = Databases(Settings(store=StoreSettings(url=url)), ending)
    began = asyncio.create_task(databases.begin())
    done, _ = await asyncio.wait([began], timeout=0.5)
    assert not done
    ending.ask()
    async with asyncio.timeout(DEADLINE_S):
        assert await began is False
    await databases.close()


async def test_a_late_store_says_that_it_is_away_and_then_is_the_one_that_came() -> None:
    late = LateStore("postgres://db/x")
    as_store = cast(Store, late)
    heard: list[Hint] = []
    as_store.subscribe(heard.append)
    with pytest.raises(Unavailable, match="postgres://db/x does not answer"):
        await as_store.ping()
    came = SqliteStore.in_memory(clock=ManualClock())
    late.arrive(came)
    await as_store.ping()
    assert (await as_store.backlog()).jobs == 0
    came._hints.publish([Hint.RUNS])
    assert heard == [Hint.RUNS]
    await came.close()


async def test_told_once_it_ends_and_told_again_it_hurries() -> None:
    ending = Ending()
    assert await ending.asked_within(0) is False
    ending.ask()
    assert await ending.asked_within(DEADLINE_S) is True
    assert not ending.hurried.is_set()
    ending.ask()
    assert ending.hurried.is_set()


@pytest.mark.parametrize(
    ("in_hand", "words"),
    [
        (0, "stopping"),
        (1, "stopping: waiting for 1 run in hand (at most 30 s)"),
        (1_200, "stopping: waiting for 1,200 runs in hand (at most 30 s)"),
    ],
)
def test_a_farewell_counts_what_is_waited_for(in_hand: int, words: str) -> None:
    assert farewell(in_hand, 30_000_000) == words


def test_pauses_grow_to_a_bound_and_begin_small_again() -> None:
    pauses = Pauses(first_s=1, longest_s=4)
    for longest_s in (1, 2, 4, 4, 4):
        assert longest_s / 2 <= pauses.next_s() <= longest_s
    for _ in range(100):
        assert pauses.next_s() <= 4
    pauses.reset()
    assert pauses.next_s() <= 1


def test_a_part_of_a_cluster_needs_postgres() -> None:
    with pytest.raises(CannotStart, match="hourhand up"):
        require_postgres(Settings(), "worker")
    with pytest.raises(CannotStart, match="no store for mysql://db/x") as caught:
        require_postgres(Settings(store=StoreSettings(url="mysql://db/x")), "worker")
    assert "hourhand up" not in caught.value.message
    require_postgres(Settings(store=StoreSettings(url="postgresql://db/x")), "worker")
    require_postgres(Settings(store=StoreSettings(shards=("postgres://a/x",))), "worker")


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("postgres://db/x", True),
        ("postgresql://ann:secret@db:5432/x?sslmode=require", True),
        ("postgres://ann:p%40ss%2Fword@db/x", True),
        ("postgres://a:1,b:2,[::1]:3/x", True),
        ("postgres:///x?host=/run/postgresql", True),
        ("postgres://db?pooler=transaction", True),
        ("postgres://db:port/x", False),
        ("postgres://[::1/x", False),
        ("postgres://ann:se/cret@db/x", False),
        ("postgres://ann:se#cret@db/x", False),
        ("postgres://ann:se@cret@db/x", False),
        ("postgres://db:123456/x", False),
    ],
)
def test_what_is_no_url_is_refused_without_its_password(url: str, good: bool) -> None:
    settings = Settings(store=StoreSettings(url=url))
    if good:
        require_postgres(settings, "api")
        return
    with pytest.raises(CannotStart, match="%40 for @") as caught:
        require_postgres(settings, "api")
    assert "cret" not in caught.value.message


def sharded(*urls: str) -> Databases:
    return Databases(Settings(store=StoreSettings(shards=urls)), Ending())


@pytest.fixture
def two_urls(postgres_server: PostgresDatabases, migrated_template: str) -> Iterator[tuple[str, str]]:
    one, two = (postgres_server.create_database(template=migrated_template) for _ in range(2))
    yield one, two
    for url in (one, two):
        postgres_server.drop_database(url)


async def test_databases_learn_which_shard_they_are_and_refuse_another_order(
    two_urls: tuple[str, str],
) -> None:
    one, two = two_urls
    async with asyncio.timeout(DEADLINE_S):
        first, second = sharded(one, two), sharded(one, two)  # two processes at once
        assert await asyncio.gather(first.begin(), second.begin()) == [True, True]
        assert [database.index for database in first.opened] == [0, 1]
        await first.front.ping()
        await asyncio.gather(first.close(), second.close())
        for wrong in ((two, one), (one,)):
            databases = sharded(*wrong)
            with pytest.raises(CannotStart, match=r"store\.shards"):
                await databases.begin()
            await databases.close()


async def test_a_cluster_in_use_begins_without_a_shard_that_is_away_and_takes_it_in_later(
    two_urls: tuple[str, str], own_postgres: Callable[..., PostgresServer]
) -> None:
    own = own_postgres()
    here, there = two_urls[0], own.create_database()
    await schema.up(there)
    async with asyncio.timeout(2 * DEADLINE_S):
        before = sharded(here, there)
        assert await before.begin()
        await before.close()
        await asyncio.to_thread(own.halt)
        databases = sharded(here, there)
        assert await databases.begin()
        assert [database.index for database in databases.opened] == [0]
        store = databases.front
        await store.ping()
        came: asyncio.Queue[int] = asyncio.Queue()

        async def arrived(database: Database) -> None:
            came.put_nowait(database.index)

        following = asyncio.create_task(databases.follow(arrived))
        await asyncio.to_thread(own.start)
        assert await came.get() == 1
        await following
        assert [database.index for database in databases.opened] == [0, 1]
        assert len(await store.nodes()) == 0
        await databases.close()
