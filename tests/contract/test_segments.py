"""Segments: nodes without a leader share them evenly, take over what the dead held, and never hold one twice."""

import asyncio
import random
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hourhand.clock import ManualClock
from hourhand.core.identity import SEGMENTS
from hourhand.core.instant import SECOND_US
from hourhand.core.plan import plan_clock
from hourhand.core.schedule import parse_key
from hourhand.ports.store import LeaseLost, Store
from hourhand.stores.sqlite import SqliteStore
from tests.contract.builders import every, spec
from tests.contract.harness import START_AT
from tests.contract.scene import Scene

LEASE_US = 3 * SECOND_US
ALL = frozenset(range(SEGMENTS))


class Cluster:
    """Schedulers on one store: who is there, and what each was told last that it holds."""

    def __init__(self, store: Store, *, kind: str = "scheduler") -> None:
        self.store = store
        self.kind = kind
        self.held: dict[int, Mapping[int, int]] = {}
        self.fences: dict[int, int] = {}
        self.owners: dict[int, int] = {}

    async def renew(self, node: int) -> Mapping[int, int]:
        held = await self.store.hold_segments(node, self.kind, f"node {node}", LEASE_US)
        self.held[node] = held
        for given_back in [one for one, owner in self.owners.items() if owner == node and one not in held]:
            del self.owners[given_back]
        for segment, fence in held.items():
            known = self.fences.get(segment, 0)
            changed_hands = self.owners.get(segment) != node
            assert fence > known if changed_hands else fence == known, f"segment {segment} of {node}"
            self.fences[segment], self.owners[segment] = fence, node
        self.check_nothing_is_held_twice()
        return held

    async def end(self, node: int) -> None:
        await self.store.end_node(node)
        del self.held[node]

    async def round(self) -> None:
        for node in list(self.held):
            await self.renew(node)

    def check_nothing_is_held_twice(self) -> None:
        held = [segment for segments in self.held.values() for segment in segments]
        assert len(held) == len(set(held)), "held twice"

    def check_even(self) -> None:
        counts = [len(segments) for segments in self.held.values()]
        assert sum(counts) == SEGMENTS, "some are held by nobody"
        assert max(counts) - min(counts) <= 1, counts


async def test_a_lone_node_holds_all_and_keeps_them_under_the_same_fence(scene: Scene) -> None:
    cluster = Cluster(scene.store)
    first = await cluster.renew(1)
    assert set(first) == ALL
    assert set(first.values()) == {1}
    scene.pass_time(2)
    assert await cluster.renew(1) == first


@pytest.mark.parametrize("nodes", range(2, 8))
async def test_a_newcomer_has_its_share_after_two_renewals_and_the_others_give_it_in_one(
    scene: Scene, nodes: int
) -> None:
    cluster = Cluster(scene.store)
    for node in range(2, nodes + 1):
        await cluster.renew(node)
        await cluster.round()
        await cluster.round()
    assert await cluster.renew(1) == {}  # its id is the lowest, so that every share may change
    await cluster.round()
    await cluster.renew(1)
    assert abs(len(cluster.held[1]) - SEGMENTS / nodes) < 1
    await cluster.round()
    cluster.check_even()


async def test_what_a_dead_node_held_is_taken_when_its_lease_is_over_and_not_before(scene: Scene) -> None:
    cluster = Cluster(scene.store)
    await cluster.renew(1)
    await cluster.renew(2)
    await cluster.round()
    lost = set(cluster.held[1])
    scene.harness.advance(LEASE_US - 1)
    alone = await cluster.renew(2)
    assert not lost & set(alone)
    scene.harness.advance(1)
    del cluster.held[1]
    assert set(await cluster.renew(2)) == ALL
    with pytest.raises(LeaseLost):
        await cluster.renew(1)
    assert set(await cluster.renew(2)) == ALL


async def test_a_lease_that_ran_out_is_lost_even_if_nobody_took_anything(scene: Scene) -> None:
    cluster = Cluster(scene.store)
    await cluster.renew(1)
    scene.harness.advance(LEASE_US)
    with pytest.raises(LeaseLost):
        await cluster.renew(1)
    del cluster.held[1]
    assert set(await cluster.renew(9)) == ALL  # under a new id, and a new fence


async def test_a_node_that_ends_gives_back_at_once(scene: Scene) -> None:
    cluster = Cluster(scene.store)
    for node in (1, 2, 3):
        await cluster.renew(node)
    await cluster.round()
    await cluster.round()
    await cluster.end(2)
    await cluster.round()
    await cluster.round()
    cluster.check_even()
    with pytest.raises(LeaseLost):
        await cluster.renew(2)


async def test_nodes_of_other_kinds_take_no_part(scene: Scene) -> None:
    await scene.worker()
    cluster = Cluster(scene.store)
    assert set(await cluster.renew(1)) == ALL


async def test_what_is_allotted_is_held_and_nothing_else(scene: Scene) -> None:
    async def hold(node: int, *segments: int) -> Mapping[int, int]:
        allotted = dict.fromkeys(segments, 0)
        return await scene.store.hold_allotted(node, "scheduler", f"node {node}", LEASE_US, allotted)

    assert await hold(1) == {}
    assert await hold(1, 3, 5, 7) == {3: 1, 5: 1, 7: 1}
    assert await hold(1, 3, 5, 7) == {3: 1, 5: 1, 7: 1}
    assert await hold(1, 5, 9) == {5: 1, 9: 1}
    assert await hold(2, 3, 5, 9, 11) == {3: 2, 11: 1}, "what a live node holds stays its own"
    assert await hold(1, 5, 9) == {5: 1, 9: 1}
    assert await hold(2) == {}
    assert await hold(1, 3, 5) == {3: 3, 5: 1}


async def test_an_heir_takes_from_the_one_it_names_and_from_nobody_else(scene: Scene) -> None:
    async def hold(node: int, allotted: dict[int, int]) -> Mapping[int, int]:
        return await scene.store.hold_allotted(node, "scheduler", f"node {node}", LEASE_US, allotted)

    await hold(1, {3: 0, 5: 0})
    await hold(2, {7: 0})
    assert await hold(3, {3: 2, 5: 1, 7: 1, 9: 2}) == {5: 2, 9: 1}
    assert await hold(1, {3: 0, 5: 0}) == {3: 1}, "and whoever lost it is told so"


async def test_what_is_allotted_can_be_had_once_its_holders_lease_is_over(scene: Scene) -> None:
    async def hold(node: int, *segments: int) -> Mapping[int, int]:
        allotted = dict.fromkeys(segments, 0)
        return await scene.store.hold_allotted(node, "scheduler", f"node {node}", LEASE_US, allotted)

    await hold(1, 3, 5)
    scene.harness.advance(LEASE_US - 1)
    assert await hold(2, 3, 5) == {}
    scene.harness.advance(1)
    assert await hold(2, 3, 5) == {3: 2, 5: 2}
    with pytest.raises(LeaseLost):
        await hold(1, 3, 5)
    assert await hold(2, 3, 5) == {3: 2, 5: 2}


async def test_both_ways_to_hold_segments_respect_each_other(scene: Scene) -> None:
    """As while a lease server comes or goes, and some nodes know it sooner than others."""
    shared = await scene.store.hold_segments(1, "scheduler", "one", LEASE_US)
    assert await scene.store.hold_allotted(2, "scheduler", "two", LEASE_US, dict.fromkeys(ALL, 0)) == {}
    halved = await scene.store.hold_segments(1, "scheduler", "one", LEASE_US)
    assert halved.items() < shared.items()
    rest = await scene.store.hold_allotted(2, "scheduler", "two", LEASE_US, dict.fromkeys(ALL, 0))
    assert set(rest) == ALL - set(halved)
    assert set(rest.values()) == {2}
    assert await scene.store.hold_segments(2, "scheduler", "two", LEASE_US) == rest


async def test_a_plan_under_an_earlier_fence_changes_nothing(scene: Scene) -> None:
    job = await scene.create(spec(every(10)))
    earlier = await scene.store.hold_segments(1, "scheduler", "earlier", LEASE_US)
    horizon_at = scene.now + 60 * SECOND_US
    [clock] = await scene.store.due_clocks(list(earlier), horizon_at, 10)
    before = await scene.planned(job)
    scene.harness.advance(LEASE_US)
    later = await scene.store.hold_segments(2, "scheduler", "later", LEASE_US)

    async def plan(fence: int) -> int:
        plan = plan_clock(clock.id, parse_key(clock.rule_key), clock.next_at, scene.now, horizon_at, ())
        return await scene.store.plan([msgspec.structs.replace(plan, fence=fence)])

    assert await plan(earlier[clock.segment]) == 0
    assert await scene.planned(job) == before
    assert await scene.store.next_clock_at([clock.segment]) == clock.next_at
    assert await plan(later[clock.segment]) > 0


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(["join", "end", "die", "renew"]), st.integers(0, 6)), max_size=30))
def test_any_order_of_comings_and_goings_ends_evenly(steps: list[tuple[str, int]]) -> None:
    asyncio.run(_come_and_go(steps))


async def _come_and_go(steps: list[tuple[str, int]]) -> None:
    clock = ManualClock(START_AT)
    store = SqliteStore.in_memory(clock=clock)
    cluster = Cluster(store)
    names = iter(random.Random(len(steps)).sample(range(1, 1_000), 100))  # ids are drawn, not counted
    await cluster.renew(next(names))
    for act, which in steps:
        there = list(cluster.held)
        node = there[which % len(there)]
        if act == "join" and len(there) < 7:
            await cluster.renew(next(names))
        elif act == "end" and len(there) > 1:
            await cluster.end(node)
        elif act == "die" and len(there) > 1:
            del cluster.held[node]
            for _ in range(3):  # the others go on while its lease runs out
                clock.advance(SECOND_US)
                await cluster.round()
        else:
            await cluster.renew(node)
    for _ in range(3):
        clock.advance(SECOND_US)
        await cluster.round()
    cluster.check_even()
    await store.close()


async def test_nothing_is_held_twice_while_all_renew_at_once(scene: Scene) -> None:
    """What each was told last, whatever the order in which the store did it, never overlaps among the living."""
    draw = random.Random(4)

    async def renew(node: int) -> tuple[int, Mapping[int, int] | None]:
        try:
            return node, await scene.store.hold_segments(node, "scheduler", str(node), LEASE_US)
        except LeaseLost:
            return node, None

    last: dict[int, Mapping[int, int]] = {}
    fences: dict[int, int] = {}
    nodes, newest = [1, 2, 3], 3
    for _ in range(25):
        if draw.random() < 0.3:
            newest += 1
            nodes.append(newest)
        if len(nodes) > 2 and draw.random() < 0.3:
            last.pop(nodes.pop(draw.randrange(len(nodes))), None)  # dies
        for _ in range(3):  # so that leases run out while others are renewed
            scene.harness.advance(draw.choice([SECOND_US // 2, SECOND_US]))
            batch = draw.sample(nodes, draw.randint(1, len(nodes)))
            for node, held in await asyncio.gather(*map(renew, batch)):
                last.pop(node, None)
                if held is None:
                    nodes.remove(node)
                else:
                    last[node] = held
            alive = {one.id for one in await scene.store.nodes() if one.lease_until > scene.now}
            present = [segment for node, held in last.items() if node in alive for segment in held]
            assert len(present) == len(set(present)), "held twice"
            for node in last.keys() & alive:
                for segment, fence in last[node].items():
                    assert fence >= fences.get(segment, 0), "a fence went back"
                    fences[segment] = fence
        if not nodes:
            newest += 1
            nodes.append(newest)


async def test_who_holds_what_can_be_read(scene: Scene) -> None:
    assert [one for one in await scene.store.segments() if one.node_id] == []
    cluster = Cluster(scene.store)
    await cluster.renew(1)
    await cluster.renew(2)
    await cluster.round()
    found = await scene.store.segments()
    assert [one.segment for one in found] == sorted(ALL)
    assert {one.segment: (one.node_id, one.fence) for one in found} == {
        segment: (node, fence) for node, held in cluster.held.items() for segment, fence in held.items()
    }
    assert {one.node_id for one in found} == {1, 2}
