"""Redis Streams: bounded, named for a cluster, mended after whatever happens to a server."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from redis.asyncio import Redis

from hourhand.core.instant import SECOND_US
from hourhand.core.offer import Offer
from hourhand.errors import CannotStart, Unavailable
from hourhand.ports.queue import Message
from hourhand.queues import redis as module
from hourhand.queues.redis import PER_ENTRY, RedisAddress, RedisFeed, RedisOffers, check, parse_address
from tests.servers.redis import RedisServer

AT = 1_794_819_600 * SECOND_US
ROOM = {0: 1_000, 1: 1_000, 2: 1_000}
DEADLINE_S = 20.0


def offer(job_id: int, run_class: int = 1, pool: str = "default") -> Offer:
    return Offer(job_id=job_id, scheduled_at=AT, due_at=AT, fence=0, run_class=run_class, pool=pool)


class Streams:
    """Both sides of one server, and a client to look at it."""

    def __init__(self, url: str) -> None:
        self.address = RedisAddress(url=url)
        self.client = Redis.from_url(url)
        self.offers = RedisOffers(self.address)
        self._feeds: list[RedisFeed] = []

    def feed(self, *pools: str, name: str = "") -> RedisFeed:
        feed = RedisFeed(self.address, pools or ("default",), name or f"worker-{len(self._feeds)}")
        self._feeds.append(feed)
        return feed

    async def length(self) -> int:
        """Entries of all streams."""
        return sum([await self.client.xlen(key) for key in await self.client.keys("{hh:*")])

    async def close(self) -> None:
        for feed in self._feeds:
            await feed.close()
        await self.offers.close()
        await self.client.aclose()


async def read(feed: RedisFeed, count: int, room: dict[int, int] = ROOM) -> list[Message]:
    """So many messages; a server that is away is waited for."""
    found: list[Message] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(found) < count:
            try:
                found += await feed.read(room)
            except Unavailable:
                await asyncio.sleep(0.02)
    return found


def jobs(messages: list[Message]) -> list[int]:
    return sorted(message.offer.job_id for message in messages)


@pytest.fixture
async def streams(redis_url: str) -> AsyncIterator[Streams]:
    made = Streams(redis_url)
    yield made
    await made.close()


@pytest.fixture
async def own(own_redis: Callable[..., RedisServer]) -> AsyncIterator[tuple[RedisServer, Streams]]:
    server = own_redis()
    made = Streams(server.url)
    yield server, made
    await made.close()


# --- names


def test_the_parts_of_a_cluster_are_told_by_hash_tags() -> None:
    address = RedisAddress(url="redis://h", name="hh", parts=4)
    assert address.stream(3, "default", 0) == "{hh:3}:default:high"
    assert address.stream(3, "a b}{", 2) == "{hh:3}:a%20b%7D%7B:low"


def test_our_own_parameters_are_not_the_client_s() -> None:
    address = parse_address("rediss://u:p@h:7000/2?name=prod&parts=8&ssl_cert_reqs=none")
    assert address == RedisAddress(url="rediss://u:p@h:7000/2?ssl_cert_reqs=none", name="prod", parts=8)
    assert parse_address("redis://h") == RedisAddress(url="redis://h")


@pytest.mark.parametrize(
    "query", ["parts=0", "parts=65", "parts=x", "name={x}", "name=a%20b", "name=" + "n" * 101]
)
def test_parameters_that_cannot_be_are_refused(query: str) -> None:
    with pytest.raises(CannotStart, match=r"queue\.url"):
        parse_address(f"redis://h/0?{query}")


# --- what is kept


async def test_what_is_acknowledged_is_deleted(streams: Streams) -> None:
    await streams.offers.offer([offer(n, n % 3) for n in range(300)])
    feed = streams.feed()
    found = await read(feed, 300)
    assert await streams.length() > 0
    await feed.ack(found[:-1])
    assert await streams.length() == 1  # the entry of the last
    await feed.ack(found[-1:])
    assert await streams.length() == 0
    assert feed._owed == {}


async def test_many_offers_are_few_entries(streams: Streams) -> None:
    await streams.offers.offer([offer(n) for n in range(1_000)])
    assert 1_000 / PER_ENTRY <= await streams.length() <= 1_000 / PER_ENTRY + 4


async def test_streams_are_trimmed(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OFFERS", 1_600)
    for start in range(0, 20_000, 1_000):
        await streams.offers.offer([offer(4 * n) for n in range(start, start + 1_000)])
    assert await streams.length() <= 1_600 / PER_ENTRY + 200  # trimmed by whole nodes of a hundred


async def test_a_worker_with_little_room_reads_little(streams: Streams) -> None:
    await streams.offers.offer([offer(n) for n in range(1_000)])
    feed = streams.feed()
    found = await read(feed, 3, {0: 3, 1: 3, 2: 3})
    assert len(found) == 3
    assert sum(map(len, feed._read.values())) < 4 * PER_ENTRY
    rest = await read(streams.feed(), 1_000 - 4 * PER_ENTRY)
    assert not set(jobs(found)) & set(jobs(rest))


async def test_messages_that_cannot_be_read_are_dropped(streams: Streams) -> None:
    feed = streams.feed()
    await streams.offers.offer([offer(1)])
    stream = streams.address.stream(1, "default", 1)
    await streams.client.xadd(stream, {"offers": "not json\n{}"})
    await streams.client.xadd(stream, {"other": "field"})
    await streams.offers.offer([offer(5)])
    found = await read(feed, 2)
    assert jobs(found) == [1, 5]
    await feed.ack(found)
    assert await streams.length() == 0


# --- workers come and go


async def test_what_a_dead_worker_held_is_taken_over(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ABANDONED_MS", 50)
    monkeypatch.setattr(module, "_LOOK_FOR_ABANDONED_S", 0.05)
    await streams.offers.offer([offer(n) for n in range(40)])
    dead = await read(streams.feed(), 40)
    assert jobs(dead) == list(range(40))
    heir = streams.feed()
    found = await read(heir, 40)
    assert jobs(found) == list(range(40))
    await heir.ack(found)
    assert await streams.length() == 0


async def test_who_leaves_gives_back_what_it_had(streams: Streams) -> None:
    leaver, heir = streams.feed(), streams.feed()
    await streams.offers.offer([offer(n) for n in range(40)])
    await read(leaver, 40)
    await leaver.close()
    heir._look_at = 0.0
    assert jobs(await read(heir, 40)) == list(range(40))
    names = {one["name"] for one in await streams.client.xinfo_consumers("{hh:0}:default:medium", "workers")}
    assert names <= {b"worker-1", b"returned"}


async def test_workers_that_are_long_gone_are_forgotten(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def consumers() -> set[bytes]:
        found = await streams.client.xinfo_consumers("{hh:0}:default:medium", "workers")
        return {one["name"] for one in found}

    gone, holder = streams.feed(name="gone"), streams.feed(name="holder")
    await streams.offers.offer([offer(0)])
    await gone.ack(await read(gone, 1))
    await streams.offers.offer([offer(0)])
    await read(holder, 1)
    assert await consumers() == {b"gone", b"holder"}
    monkeypatch.setattr(module, "_FORGET_CONSUMERS_MS", -1)
    await streams.feed(name="new").read({0: 1, 1: 1, 2: 0})
    assert b"holder" in await consumers()
    assert b"gone" not in await consumers()


# --- what happens to servers


async def test_an_emptied_server_gets_its_groups_again(streams: Streams) -> None:
    feed = streams.feed()
    await streams.offers.offer([offer(1)])
    await feed.ack(await read(feed, 1))
    reading = asyncio.create_task(read(feed, 1))
    await asyncio.sleep(0)
    await streams.client.flushdb()
    await streams.offers.offer([offer(2)])
    assert jobs(await reading) == [2]


async def test_a_message_to_be_acknowledged_may_be_gone(streams: Streams) -> None:
    feed = streams.feed()
    await streams.offers.offer([offer(1)])
    found = await read(feed, 1)
    await streams.client.flushdb()
    await feed.ack(found)
    await feed.ack(found)


async def test_a_restart_is_survived(own: tuple[RedisServer, Streams]) -> None:
    server, streams = own
    feed = streams.feed()
    await streams.offers.offer([offer(1)])
    assert jobs(await read(feed, 1)) == [1]
    server.kill()
    with pytest.raises(Unavailable):
        await streams.offers.offer([offer(2)])
    with pytest.raises(Unavailable):
        await feed.read(ROOM)
    server.start()
    await streams.offers.offer([offer(3)])
    assert jobs(await read(feed, 1)) == [3]


async def test_a_frozen_server_is_given_up_soon(
    own: tuple[RedisServer, Streams], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(module, "_BLOCK_MS", 100)
    server, _ = own
    quick = Streams(server.url)
    feed = quick.feed()
    await quick.offers.offer([offer(1)])
    found = await read(feed, 1)
    server.pause()
    async with asyncio.timeout(DEADLINE_S):
        for asked in (quick.offers.offer([offer(2)]), feed.read(ROOM), feed.ack(found)):
            with pytest.raises(Unavailable):
                await asked
    server.resume()
    await quick.offers.offer([offer(3)])
    assert 3 in jobs(await read(feed, 1)) or 3 in jobs(await read(feed, 1))
    await quick.close()


async def test_a_full_server_refuses_and_is_used_again(own_redis: Callable[..., RedisServer]) -> None:
    server = own_redis(settings={"maxmemory": "3mb", "maxmemory-policy": "noeviction"})
    streams = Streams(server.url)
    feed = streams.feed()
    await feed.read({0: 1, 1: 1, 2: 0})

    async def fill() -> None:
        for start in range(0, 200_000, 1_000):
            await streams.offers.offer([offer(n) for n in range(start, start + 1_000)])

    with pytest.raises(Unavailable, match="maxmemory"):
        await fill()
    await feed.ack(await read(feed, 1_000))
    await streams.client.flushall()
    await streams.offers.offer([offer(1_000_000)])
    found = await read(feed, 1)
    while 1_000_000 not in jobs(found):
        found += await read(feed, 1)
    await streams.close()


async def test_a_server_that_is_not_there_is_said_so() -> None:
    address = RedisAddress(url="redis://127.0.0.1:1/0")
    with pytest.raises(Unavailable, match="Redis: "):
        await check(address)
    offers, feed = RedisOffers(address), RedisFeed(address, ("default",), "w")
    with pytest.raises(Unavailable):
        await offers.offer([offer(1)])
    with pytest.raises(Unavailable):
        await feed.read(ROOM)
    await feed.close()
    await offers.close()


async def test_a_check_names_the_server(redis_url: str) -> None:
    assert (await check(parse_address(redis_url))).startswith("Redis ")
