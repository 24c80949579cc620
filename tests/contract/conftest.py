"""The adapters that the contract suite is run on."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.contract.harness import Harness, SqliteFileHarness, SqliteMemoryHarness
from tests.contract.scene import Scene

ADAPTERS: dict[str, Callable[[Path], Harness]] = {
    "sqlite-file": SqliteFileHarness,
    "sqlite-memory": lambda _: SqliteMemoryHarness(),
}


@pytest.fixture(params=list(ADAPTERS))
async def store_harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    """A fresh store of each adapter."""
    harness: Harness = ADAPTERS[request.param](tmp_path)
    yield harness
    await harness.close()


@pytest.fixture
def scene(store_harness: Harness) -> Scene:
    """A fresh store with short words for its verbs."""
    return Scene(store_harness)
