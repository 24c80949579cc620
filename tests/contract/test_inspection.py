"""What a look at a store from outside says: who is there, what jobs call, which zone data was used."""

import pytest

from hourhand.core.model import HttpTarget, PythonTarget
from hourhand.core.schedule import tzdata_version
from hourhand.core.serving import Serves
from hourhand.ports.inspection import CalledFunction, StoreFacts
from tests.contract.builders import every, spec
from tests.contract.harness import Harness, SqliteFileHarness
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.scene import Scene


async def facts(harness: Harness) -> StoreFacts:
    match harness:
        case SqliteFileHarness():
            from hourhand.stores.sqlite.inspection import facts_of

            return facts_of(harness.path, harness.clock.now())
        case PostgresHarness():
            from hourhand.stores.postgres.inspection import facts_of as facts_of_database

            return await facts_of_database(harness.url)
        case _:
            pytest.skip("a store in memory cannot be looked at from outside")


def calling(function: str, **fields: str) -> dict[str, object]:
    return {"target": PythonTarget(function=function), **fields}


async def test_functions_that_jobs_call_and_who_serves_them(scene: Scene, store_harness: Harness) -> None:
    before = await facts(store_harness)
    assert (before.nodes, before.called, before.tzdata) == ((), (), tzdata_version())
    for function, pool in (("app:one", "default"), ("app:one", "default"), ("app:two", "reports")):
        await scene.create(spec(every(60), **calling(function, pool=pool)))
    await scene.create(spec(every(60), target=HttpTarget(url="https://example.com")))
    await scene.pause(await scene.create(spec(every(60), **calling("app:paused"))))
    node = await scene.worker()
    serves = Serves(pools=("default",), functions=("app:one",))
    await scene.store.tell_served(node, serves)
    found = await facts(store_harness)
    assert found.called == (
        CalledFunction(function="app:one", pool="default"),
        CalledFunction(function="app:two", pool="reports"),
    )
    assert [(one.id, one.serves) for one in found.nodes] == [(node, serves)]
    assert found.snapshot is None


async def test_a_file_that_nobody_has_open_is_left_without_a_trace(store_harness: Harness) -> None:
    if not isinstance(store_harness, SqliteFileHarness):
        pytest.skip("files only")
    await store_harness.store.close()
    before = sorted(one.name for one in store_harness.path.parent.iterdir())
    assert (await facts(store_harness)).tzdata == tzdata_version()
    assert sorted(one.name for one in store_harness.path.parent.iterdir()) == before
    await store_harness.reopen()
