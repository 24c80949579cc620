"""The adapters that the contract suite is run on."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.contract.harness import Harness, SqliteFileHarness, SqliteMemoryHarness
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.scene import Scene

Open = Callable[[pytest.FixtureRequest, Path], Awaitable[Harness]]


async def _sqlite_file(_: pytest.FixtureRequest, folder: Path) -> Harness:
    return SqliteFileHarness(folder)


async def _sqlite_memory(_: pytest.FixtureRequest, __: Path) -> Harness:
    return SqliteMemoryHarness()


async def _postgres(request: pytest.FixtureRequest, _: Path) -> Harness:
    return await PostgresHarness(request.getfixturevalue("migrated_url")).open()


ADAPTERS: dict[str, Open] = {
    "sqlite-file": _sqlite_file,
    "sqlite-memory": _sqlite_memory,
    "postgres": _postgres,
}


@pytest.fixture(params=list(ADAPTERS))
async def store_harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    """A fresh store of each adapter."""
    harness = await ADAPTERS[request.param](request, tmp_path)
    yield harness
    await harness.close()


@pytest.fixture
def scene(store_harness: Harness) -> Scene:
    """A fresh store with short words for its verbs."""
    return Scene(store_harness)
