"""Room: never more than the process can run, all of it for whoever has work, even parts where several have."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from hourhand.core.instant import SECOND_US
from hourhand.services.room import Room, Share
from tests.services.virtual import LoopClock, run_virtual
from tests.services.world import START_AT, Gate, World, once, spec


class Member:
    """A worker as the room sees it."""

    def __init__(self, room: Room) -> None:
        self.held = 0
        self.woken = 0
        self.share: Share = room.join(lambda: self.held, self._wake)

    def _wake(self) -> None:
        self.woken += 1

    def claim(self, waiting: int, most: int = 2_000) -> int:
        """One claim of a store in which so many wait."""
        room = self.share.reserve(most)
        got = min(room, waiting)
        self.held += got
        if room:
            self.share.claimed(more=got > 0)
        return got

    def finish(self, count: int) -> None:
        self.held -= count
        self.share.freed()


def members(total: int, count: int) -> list[Member]:
    room = Room(total)
    return [Member(room) for _ in range(count)]


def test_a_lone_worker_has_all_of_it() -> None:
    (one,) = members(10, 1)
    assert one.claim(7) == 7
    assert one.claim(7) == 3
    assert one.claim(7) == 0
    one.finish(4)
    assert one.woken == 1
    assert one.share.free == 4


def test_where_one_has_no_work_the_other_has_all() -> None:
    one, other = members(10, 2)
    assert other.claim(0) == 0
    assert one.claim(100) == 10


def test_where_both_have_work_each_has_half_as_soon_as_runs_end() -> None:
    one, other = members(10, 2)
    assert one.claim(100) == 10
    assert other.claim(100) == 0, "there is none"
    one.finish(3)
    assert other.woken == 1
    assert one.claim(100) == 0, "the other is left its part"
    assert other.claim(100) == 3
    for _ in range(20):
        one.finish(1)
        one.claim(100)
        other.claim(100)
    assert (one.held, other.held) == (5, 5)
    other.finish(5)
    assert other.claim(0) == 0, "its work is done"
    assert one.woken > 0
    assert one.claim(100) == 5


def test_a_reservation_counts_until_it_is_answered() -> None:
    one, other = members(10, 2)
    assert one.share.reserve(6) == 6
    assert other.share.free == 4
    one.share.failed()
    assert other.share.free == 10


def test_one_whose_database_is_away_holds_one_place_until_it_answers() -> None:
    one, other = members(10, 2)
    assert one.share.reserve(2_000) == 10
    one.share.failed()
    assert one.share.reserve(2_000) == 1
    assert other.claim(100) == 9, "also while it waits for an answer that does not come"
    one.share.failed()
    assert other.claim(100) == 1
    other.finish(10)
    other.claim(0)
    assert one.claim(100) == 1
    assert one.claim(100) == 9


def test_a_lone_worker_goes_on_in_full_after_a_failure() -> None:
    (one,) = members(10, 1)
    one.share.reserve(5)
    one.share.failed()
    assert one.claim(100) == 10


def test_whoever_waits_is_woken_when_another_does_not_use_its_part() -> None:
    one, other = members(10, 2)
    other.share.reserve(2_000)  # under way
    assert one.claim(100) == 0
    other.share.claimed(more=False)
    assert (one.woken, other.woken) == (1, 0)
    assert one.claim(100) == 10


@given(
    total=st.integers(1, 50),
    count=st.integers(1, 5),
    acts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 60)), max_size=60),
)
def test_there_is_never_more_than_the_total(total: int, count: int, acts: list[tuple[int, int, int]]) -> None:
    parts = members(total, count)
    for who, what, amount in acts:
        member = parts[who % count]
        match what:
            case 0:
                member.claim(amount)
            case 1:
                member.finish(min(amount, member.held))
            case 2:
                member.share.reserve(amount)
            case _:
                member.share.failed()
        assert sum(one.share.taken for one in parts) <= total
    for member in parts:
        member.share.failed()
        member.finish(member.held)
    assert sum(parts[0].claim(total) for _ in range(2)) == total, "nothing leaks away"


def test_two_databases_share_one_process() -> None:
    """One is away: the other has all room. Then both have work: neither starves, and never is there too much."""

    async def main(clock: LoopClock) -> None:
        room = Room(64)
        first, second = World(clock=clock), World(clock=clock)
        gates = [Gate(), Gate()]
        nodes = []
        for world, gate in zip((first, second), gates, strict=True):
            world.target.act = gate
            node = world.new_worker_node(room=room)
            await node.start()
            nodes.append(node)
        second.store.away = True
        await first.create_all([spec(once(START_AT)) for _ in range(150)])
        await second.create_all([spec(once(START_AT)) for _ in range(150)])
        await asyncio.sleep(2)
        assert len(first.target.calls) in (63, 64), "one place at most is kept for the other"
        assert second.store.calls["claim"] < 8, "with growing pauses"
        second.store.away = False
        await asyncio.sleep(6)
        assert len(first.target.calls) + len(second.target.calls) == 64
        for gate in gates:
            gate.opened.set()
        await asyncio.sleep(2)
        assert {len(world.target.calls) for world in (first, second)} == {150}
        for node in nodes:
            await node.stop(SECOND_US)

    run_virtual(main)
