"""What a scheduler makes of its lease server's word, call by call: whom it believes, when, and how often it asks."""

from collections import Counter

import pytest
from prometheus_client import generate_latest

from hourhand.core.instant import SECOND_US
from hourhand.leases.allotted import STORE_LEASE_US
from hourhand.leases.native import NativeLeases
from hourhand.ports.store import Store
from tests.leases.harness import ALL, MemoryHarness, Node
from tests.leases.rounds import even, joined, rounds


class CountedStore:
    """The real store, and how often it was asked what."""

    def __init__(self, real: Store) -> None:
        self._real = real
        self.calls: Counter[str] = Counter()

    def __getattr__(self, verb: str) -> object:
        self.calls[verb] += 1
        return getattr(self._real, verb)


async def seconds(harness: MemoryHarness, count: int, *nodes: Node) -> None:
    for _ in range(count):
        await harness.pass_time(SECOND_US)
        for node in nodes:
            await node.renew()


async def test_the_store_is_asked_every_five_seconds_instead_of_every_second() -> None:
    harness = MemoryHarness()
    store = CountedStore(harness.store)
    harness.store = store  # type: ignore[assignment]
    nodes = await joined(harness, 2)
    await seconds(harness, 10, *nodes)
    store.calls.clear()
    await seconds(harness, 60, *nodes)
    assert store.calls == {"hold_allotted": 2 * 12}


async def test_who_comes_back_first_does_not_take_the_others_for_dead() -> None:
    """The server remembers all of them, and the leases of all have run out there meanwhile."""
    harness = MemoryHarness()
    nodes = await joined(harness, 3)
    await seconds(harness, 4, *nodes)
    harness.server.away = True
    await seconds(harness, 30, *nodes)
    before = [dict(node.held) for node in nodes]
    assert even(*nodes)
    harness.server.away = False
    harness.server.calls = 0
    first = nodes[0]
    for _ in range(5):  # in less time than the others' leases in the store have
        await harness.pass_time(SECOND_US // 2)
        await first.renew()
    assert harness.server.calls >= 2
    for node in nodes[1:]:
        await node.renew()
    assert not any(first.leases.parts.values()), "it is back, and has looked round"
    await seconds(harness, 10, *nodes)
    assert [node.held for node in nodes] == before


async def test_a_lost_answer_is_asked_for_again_and_changes_nothing_more() -> None:
    harness = MemoryHarness()
    [first] = await joined(harness, 1)
    await seconds(harness, 4, first)
    second = await harness.node().join()
    for _ in range(4):
        harness.server.answers_lost = 1
        await first.renew()
        await second.renew()
        await harness.pass_time(SECOND_US)
    await rounds(harness, [first, second], lambda: even(first, second))


async def test_a_server_that_is_away_is_not_asked_all_the_time() -> None:
    harness = MemoryHarness()
    [node] = await joined(harness, 1)
    harness.server.away = True
    await seconds(harness, 2, node)
    harness.server.calls = 0
    await seconds(harness, 20, node)
    assert harness.server.calls <= 10


async def test_both_kinds_of_schedulers_share_while_a_cluster_moves_to_a_lease_server() -> None:
    """Those who know it and those who do not: everything is planned, and nothing is taken from the living."""
    harness = MemoryHarness()
    old = Node(_native(harness), harness.watch)
    await old.join()
    new = await harness.node().join()
    await rounds(harness, [old, new], lambda: even(old, new))
    before = dict(old.held)
    await seconds(harness, 2 * STORE_LEASE_US // SECOND_US, old, new)
    assert old.held == before
    await old.leave()
    await rounds(harness, [new], lambda: new.held.keys() == ALL)


async def test_metrics_and_parts_tell_of_it() -> None:
    harness = MemoryHarness()
    [node] = await joined(harness, 1)

    def up() -> list[str]:
        lines = generate_latest(harness.telemetry.registry).decode().splitlines()
        return [line for line in lines if line.startswith("hourhand_lease_server")]

    assert up() == ['hourhand_lease_server_up{database="0"} 1.0', "hourhand_lease_server_outages_total 0.0"]
    harness.server.away = True
    await seconds(harness, 5, node)
    assert up() == ['hourhand_lease_server_up{database="0"} 0.0', "hourhand_lease_server_outages_total 1.0"]
    assert node.leases.parts == {"lease server": "away, the store keeps the leases: no answer"}
    harness.server.away = False
    await seconds(harness, 5, node)
    assert up() == ['hourhand_lease_server_up{database="0"} 1.0', "hourhand_lease_server_outages_total 1.0"]


@pytest.mark.parametrize("away", [False, True])
async def test_leaving_ends_the_node_whether_the_server_hears_of_it_or_not(away: bool) -> None:
    harness = MemoryHarness()
    nodes = await joined(harness, 2)
    harness.server.away = away
    await nodes[0].leave()
    await nodes[1].renew()
    await nodes[1].renew()
    assert nodes[1].held.keys() == ALL


def _native(harness: MemoryHarness) -> NativeLeases:
    return NativeLeases(
        store=harness.store,
        ids=harness.ids,
        kind="scheduler",
        name="old",
        plans=True,
        lease_us=harness.lease_us,
    )
