"""Lease servers that stop, freeze, forget, refuse or are cut off: nobody stops planning, and it is told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import pytest

from hourhand.core.instant import SECOND_US
from hourhand.leases.allotted import STORE_LEASE_US
from tests.leases.harness import ALL, LeasesHarness, MemoryHarness, Node, ServerHarness
from tests.leases.rounds import even, joined, rounds
from tests.servers.etcd import EtcdServer
from tests.servers.redis import RedisServer, ask
from tests.servers.tcp_proxy import TcpProxy

PATIENCE_S = 0.3
AWAY = "away, the store keeps the leases"


class Trouble(Protocol):
    """What can be done to a lease server."""

    harness: LeasesHarness

    def stop(self) -> None: ...

    def start(self) -> None: ...

    def forget(self) -> None: ...


class InMemory:
    """The stand-in."""

    def __init__(self) -> None:
        self.harness = MemoryHarness()

    def stop(self) -> None:
        self.harness.server.away = True

    def start(self) -> None:
        self.harness.server.away = False

    def forget(self) -> None:
        self.harness.server.forget()


class OfRedis:
    """A Redis of the test's own, which keeps nothing when it stops."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.harness = ServerHarness(server.url, PATIENCE_S)

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def forget(self) -> None:
        ask(self.server.url, "FLUSHALL")


class OfEtcd:
    """An etcd of the test's own, which keeps everything when it stops."""

    def __init__(self, server: EtcdServer) -> None:
        self.server = server
        self.harness = ServerHarness(server.url, PATIENCE_S)

    def stop(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def forget(self) -> None:
        self.server.forget()


@pytest.fixture(params=["memory", "redis", "etcd"])
async def trouble(request: pytest.FixtureRequest) -> AsyncIterator[Trouble]:
    made: InMemory | OfRedis | OfEtcd
    match request.param:
        case "memory":
            made = InMemory()
        case "redis":
            made = OfRedis(request.getfixturevalue("own_redis")())
        case _:
            made = OfEtcd(request.getfixturevalue("own_etcd")())
    yield made
    await made.harness.close()


def said(node: Node) -> str | None:
    [(part, wrong)] = node.leases.parts.items()
    assert part == "lease server"
    return wrong


async def renew_for(harness: LeasesHarness, us: int, *nodes: Node) -> None:
    """Time passes while they renew as they should."""
    for _ in range(us // SECOND_US):
        await harness.pass_time(SECOND_US)
        for node in nodes:
            await node.renew()


async def test_a_server_that_is_away_costs_nobody_a_segment_and_is_told(trouble: Trouble) -> None:
    harness = trouble.harness
    nodes = await joined(harness, 2)
    before = [dict(node.held) for node in nodes]
    trouble.stop()
    await renew_for(harness, 2 * STORE_LEASE_US, *nodes)
    assert [node.held for node in nodes] == before
    assert all((said(node) or "").startswith(AWAY) for node in nodes)
    trouble.start()
    await renew_for(harness, 8 * SECOND_US, *nodes)
    assert [node.held for node in nodes] == before
    assert [said(node) for node in nodes] == [None, None]


async def test_the_dead_are_replaced_without_it_too(trouble: Trouble) -> None:
    harness = trouble.harness
    dying, living = await joined(harness, 2)
    await renew_for(harness, 6 * SECOND_US, dying, living)
    trouble.stop()
    await renew_for(harness, STORE_LEASE_US + SECOND_US, living)
    assert living.held.keys() == ALL
    later = await harness.node().join()
    await rounds(harness, [living, later], lambda: even(living, later))
    assert said(later) is not None


async def test_a_server_that_forgets_everything_is_told_it_again(trouble: Trouble) -> None:
    harness = trouble.harness
    nodes = await joined(harness, 3)
    before = [dict(node.held) for node in nodes]
    trouble.forget()
    await renew_for(harness, 8 * SECOND_US, *nodes)
    assert [node.held for node in nodes] == before
    assert [said(node) for node in nodes] == [None] * 3
    _, *living = nodes
    await rounds(harness, living, lambda: even(*living))


async def test_one_that_was_never_there_is_no_reason_not_to_start(
    own_redis: Callable[..., RedisServer],
) -> None:
    server = own_redis()
    url = server.url
    server.kill()
    harness = ServerHarness(url, PATIENCE_S)
    nodes = await joined(harness, 2)
    assert all(said(node) for node in nodes)
    server.start()
    await renew_for(harness, 8 * SECOND_US, *nodes)
    assert even(*nodes)
    assert [said(node) for node in nodes] == [None, None]
    await harness.close()


@pytest.mark.parametrize("kind", ["redis", "etcd"])
async def test_a_frozen_server_delays_a_renewal_by_its_patience_at_most(
    request: pytest.FixtureRequest, kind: str
) -> None:
    server = request.getfixturevalue(f"own_{kind}")()
    harness = ServerHarness(server.url, PATIENCE_S)
    [node] = await joined(harness, 1)
    server.pause()
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await node.renew()
    took_s = loop.time() - began_s
    assert PATIENCE_S * 0.9 < took_s < PATIENCE_S + 2, "the store's part is some milliseconds"
    assert node.held.keys() == ALL
    assert (said(node) or "").startswith(AWAY)
    server.resume()
    await rounds(harness, [node], lambda: said(node) is None)
    await harness.close()


@pytest.mark.parametrize("kind", ["redis", "etcd"])
async def test_whoever_is_cut_off_loses_its_segments_to_the_others_and_comes_back(
    request: pytest.FixtureRequest, kind: str
) -> None:
    url = request.getfixturevalue(f"{kind}_url")
    harness = ServerHarness(url, PATIENCE_S)
    async with TcpProxy.to_url(url) as proxy:
        near = await harness.node().join()
        through = harness.allotted(harness.ways.board(harness.lease_us, proxy.url_of(url)))
        far = await Node(through, harness.watch).join()
        await rounds(harness, [near, far], lambda: even(near, far))
        await renew_for(harness, 4 * SECOND_US, near, far)
        stale = dict(far.held)
        await proxy.refuse()
        proxy.cut()
        await renew_for(harness, 6 * SECOND_US, near, far)
        assert near.held.keys() == ALL, "the server says that the other is gone"
        assert far.held == {}, "and the store has told it so"
        assert all(near.held[segment] > fence for segment, fence in stale.items())
        await proxy.heal()
        await rounds(harness, [near, far], lambda: even(near, far) and said(far) is None)
    await harness.close()


async def test_a_redis_that_is_full_costs_nobody_a_segment(own_redis: Callable[..., RedisServer]) -> None:
    """Whether it refuses or not: a board needs next to nothing, and takes away before it writes."""
    server = own_redis()
    harness = ServerHarness(server.url, PATIENCE_S)
    nodes = await joined(harness, 2)
    before = [dict(node.held) for node in nodes]
    ask(server.url, "CONFIG SET maxmemory 1")
    await renew_for(harness, 8 * SECOND_US, *nodes)
    assert [node.held for node in nodes] == before
    late = await harness.node().join()
    await rounds(harness, [*nodes, late], lambda: even(*nodes, late))
    await harness.close()
