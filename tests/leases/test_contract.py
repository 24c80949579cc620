"""What `ports/leases.py` promises, of every adapter: shares, takeover, fences, and who lost its lease."""

import asyncio
import random

import pytest

from hourhand.ports.store import LeaseLost
from tests.leases.harness import ALL, LeasesHarness
from tests.leases.rounds import ROUNDS, even, joined, rejoined, rounds


async def test_a_lone_node_holds_all_at_once_and_keeps_them_under_the_same_fences(
    harness: LeasesHarness,
) -> None:
    node = await harness.node().join()
    assert set(node.held) == ALL
    first = dict(node.held)
    for _ in range(4):
        await harness.pass_time(harness.lease_us // 3)
        assert (await node.renew()).held == first


async def test_a_newcomer_gets_its_share_and_nobody_elses_fences_change(harness: LeasesHarness) -> None:
    first, second = await joined(harness, 2)
    before = {**first.held, **second.held}
    third = await harness.node().join()
    took = await rounds(harness, [first, second, third], lambda: even(first, second, third))
    assert took <= 12, "two leases"
    for node in (first, second):
        assert node.held.items() <= before.items()
    assert all(fence == before[segment] + 1 for segment, fence in third.held.items())


async def test_the_dead_are_replaced_when_their_lease_is_over_and_not_before(harness: LeasesHarness) -> None:
    dying, living = await joined(harness, 2)
    for _ in range(7):  # whoever has just entered calls nobody dead for the time of a lease
        await harness.pass_time(harness.lease_us // 6)
        await dying.renew()
        await living.renew()
    lost = dict(dying.held)
    for _ in range(3):
        await harness.pass_time(harness.lease_us // 6)
        await living.renew()
        assert not lost.keys() & living.held.keys()
    kept = dict(living.held)
    took = await rounds(harness, [living], lambda: living.held.keys() == ALL)
    assert took <= 10
    assert all(living.held[segment] == fence for segment, fence in kept.items())
    assert all(living.held[segment] > fence for segment, fence in lost.items())
    with pytest.raises(LeaseLost):
        await dying.renew()
    assert await dying.leases.segments() == {}
    assert (await living.renew()).held.keys() == ALL


async def test_whoever_lost_its_lease_begins_again_under_a_new_id(harness: LeasesHarness) -> None:
    node = await harness.node().join()
    first = node.id
    for _ in range(4):
        await harness.pass_time(harness.lease_us // 3)
        await node.renew()
    await harness.pass_time(harness.lease_us * 3 // 2)
    with pytest.raises(LeaseLost):
        await node.renew()
    await node.join()
    assert node.id != first
    assert node.held.keys() == ALL, "nobody else has taken them, and its former self does not keep them"
    other = await harness.node().join()
    await rounds(harness, [node, other], lambda: even(node, other))


async def test_what_is_given_back_can_be_had_at_once(harness: LeasesHarness) -> None:
    leaving, *others = await joined(harness, 3)
    held = dict(leaving.held)
    await leaving.leave()
    assert leaving.held == {}
    for _ in range(2):
        for node in others:
            await node.renew()
    assert even(*others)
    now = {segment: fence for node in others for segment, fence in node.held.items()}
    assert all(now[segment] == fence + 1 for segment, fence in held.items())


async def test_the_store_has_the_fences_that_were_told(harness: LeasesHarness) -> None:
    """So that plans under them are taken, and those under older ones are not."""
    nodes = await joined(harness, 2)
    for node in nodes:
        kept = await harness.store.hold_allotted(
            node.id, "scheduler", "asks", harness.lease_us * 10, dict.fromkeys(node.held, 0)
        )
        assert kept == node.held


async def test_any_order_of_comings_and_goings_ends_evenly(harness: LeasesHarness) -> None:
    """`Watch` sees to it meanwhile that no fence is ever two nodes'."""
    draw = random.Random(7)
    nodes = [await harness.node().join()]
    for _ in range(14):
        act = draw.choice(["join", "join", "leave", "die", "renew"])
        if act == "join" and len(nodes) < 5:
            nodes.append(await harness.node().join())
        elif act == "leave" and len(nodes) > 1:
            await nodes.pop(draw.randrange(len(nodes))).leave()
        elif act == "die" and len(nodes) > 2:
            nodes.pop(draw.randrange(len(nodes)))
        await asyncio.gather(*map(rejoined, draw.sample(nodes, len(nodes))))
    for _ in range(ROUNDS):
        await asyncio.gather(*map(rejoined, nodes))
        if even(*nodes):
            break
        await harness.pass_time(harness.lease_us // 6)
    assert even(*nodes)


async def test_whoever_renews_lives_in_the_store_too(harness: LeasesHarness) -> None:
    """There it is seen by people, and by schedulers that know no lease server."""
    node = await harness.node().join()
    for _ in range(20):
        await harness.pass_time(harness.lease_us // 3)
        await node.renew()
        [seen] = await harness.store.nodes()
        assert seen.id == node.id
        assert seen.lease_until > await harness.store.now()
    await node.leave()
    [seen] = await harness.store.nodes()
    assert seen.lease_until <= await harness.store.now()


async def test_nothing_is_wrong_with_what_works(harness: LeasesHarness) -> None:
    node = await harness.node().join()
    await node.renew()
    assert not any(node.leases.parts.values())
