"""Nothing is stuck, lost, doubled or started too early in random graphs under random trouble."""

from collections import Counter

import pytest

from tests.contract.graph_storm import GraphStorm
from tests.contract.harness import SqliteMemoryHarness
from tests.contract.scene import Scene


@pytest.mark.parametrize("seed", [*range(40), 153, 219, 252, 266, 295])
async def test_random_graphs(seed: int) -> None:
    storm = GraphStorm(Scene(SqliteMemoryHarness()), seed)
    await storm.run(250)
    await storm.check()


@pytest.mark.parametrize("seed", [1001, 1002])
async def test_random_graphs_on_every_store(scene: Scene, seed: int) -> None:
    storm = GraphStorm(scene, seed)
    await storm.run(120)
    await storm.check()


async def test_storms_meet_what_they_are_about() -> None:
    counts: Counter[str] = Counter()
    for seed in range(50, 58):
        storm = GraphStorm(Scene(SqliteMemoryHarness()), seed)
        await storm.run(250)
        await storm.check()
        counts += storm.counts
    wanted = {
        "rewired", "circle refused", "deleted", "delete refused", "sent down", "requeued", "cancelled",
        "paused or resumed", "child SUCCEEDED", "child SKIPPED", "child FAILED", "child CANCELLED",
    }  # fmt: skip
    assert wanted <= set(counts), wanted - set(counts)
