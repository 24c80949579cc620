"""Everything at once, from seeds: nodes that come, go, die and are cut off, a server that goes, forgets and answers
in vain, a store that fails. No fence is ever two nodes', and once all is well the shares are even and it stays so.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hourhand.core.instant import SECOND_US
from hourhand.errors import Unavailable
from hourhand.leases.allotted import STORE_LEASE_US
from hourhand.ports.store import LeaseLost
from tests.leases.harness import MemoryHarness, Node
from tests.leases.memory_board import MemoryBoard
from tests.leases.rounds import even

ACTS = (
    "join",
    "leave",
    "die",
    "cut",
    "mend",
    "away",
    "back",
    "forget",
    "lose",
    "store",
    "pass",
    "pass",
    "renew",
)
MOST_NODES = 6


class Storm:
    """One world under a list of acts."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.harness = StormHarness()
        self.nodes: list[Node] = []

    async def act(self, act: str) -> None:
        server = self.harness.server
        match act:
            case "join" if len(self.nodes) < MOST_NODES:
                self.nodes.append(self.harness.node())
            case "leave" if len(self.nodes) > 1:
                await self._trying(self._take_one().leave())
            case "die" if len(self.nodes) > 1:
                self._take_one()
            case "cut":
                self._any_board().cut = True
            case "mend":
                self._any_board().cut = False
            case "away":
                server.away = True
            case "back":
                server.away = False
            case "forget":
                server.forget()
            case "lose":
                server.answers_lost += self.draw.randint(1, 2)
            case "store":
                self.harness.failures += 1
            case "pass":
                await self.harness.pass_time(self.draw.randint(1, 4) * SECOND_US // 2)
        order = self.draw.sample(self.nodes, len(self.nodes))
        await asyncio.gather(*(self._trying(one) for one in map(self._renewed, order)))

    async def calm(self) -> None:
        """All is well again, and time passes."""
        server = self.harness.server
        server.away, server.answers_lost, self.harness.failures = False, 0, 0
        for board in self.harness.boards:
            assert isinstance(board, MemoryBoard)
            board.cut = False
        for _ in range(2 * STORE_LEASE_US // SECOND_US):
            await self.harness.pass_time(SECOND_US)
            for node in self.nodes:
                await self._renewed(node)

    async def _renewed(self, node: Node) -> None:
        if node.id == 0:
            await node.join()
            return
        try:
            await node.renew()
        except LeaseLost:
            await node.join()

    async def _trying(self, what: Awaitable[None]) -> None:
        with contextlib.suppress(Unavailable):
            await what

    def _take_one(self) -> Node:
        return self.nodes.pop(self.draw.randrange(len(self.nodes)))

    def _any_board(self) -> MemoryBoard:
        board = self.draw.choice(self.harness.boards)
        assert isinstance(board, MemoryBoard)
        return board


class StormHarness(MemoryHarness):
    """Its store fails as often as it is told to, before or after it has done what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0
        self._real = self.store
        self._draw = random.Random(3)
        self.store = FailingStore(self)  # type: ignore[assignment]


class FailingStore:
    """Verbs of segments and nodes that may raise."""

    def __init__(self, harness: StormHarness) -> None:
        self._harness = harness

    def __getattr__(self, verb: str) -> object:
        harness = self._harness
        real = getattr(harness._real, verb)

        async def call(*arguments: object) -> object:
            failing = harness.failures > 0 and verb != "close"
            if failing:
                harness.failures -= 1
                if harness._draw.random() < 0.5:
                    raise Unavailable("before it was done")
            answer = await real(*arguments)
            if failing:
                raise Unavailable("after it was done")
            return answer

        return call


async def _storm(acts: list[str], seed: int) -> None:
    storm = Storm(seed)
    await storm.act("join")
    for act in acts:
        await storm.act(act)
    await storm.calm()
    assert even(*storm.nodes), [len(node.held) for node in storm.nodes]
    before = [dict(node.held) for node in storm.nodes]
    await storm.calm()
    assert [node.held for node in storm.nodes] == before, "and nothing moves any more"
    await storm.harness.close()


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(ACTS), max_size=40), st.integers(0, 10_000))
def test_any_trouble_ends_with_even_shares(acts: list[str], seed: int) -> None:
    asyncio.run(_storm(acts, seed))


@pytest.mark.parametrize("seed", range(5))
def test_long_trouble_ends_with_even_shares(seed: int) -> None:
    draw = random.Random(seed)
    asyncio.run(_storm([draw.choice(ACTS) for _ in range(150)], seed))
