"""The days of history: made ahead, dropped as a whole, and never in anybody's way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.ports.reading import RunQuery
from hourhand.stores.postgres import partitions
from tests.contract.builders import once, spec
from tests.contract.harness import START_AT
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.scene import Scene

TODAY = START_AT // DAY_US
AROUND = list(range(TODAY - 1, TODAY + 4))
ROW = (
    "INSERT INTO history (job_id, scheduled_at, due_at, finished_at, bucket, attempt, state, trigger, tries)"
    " SELECT n, $1, $1, $1, $2, 1, 3, 0, 0 FROM generate_series($3::bigint, $4::bigint) AS n"
)


@pytest.fixture
async def connections(migrated_url: str) -> AsyncIterator[list[Any]]:
    """Four of them, on a fresh database without any day."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(4):
            connection = await asyncpg.connect(migrated_url)
            stack.push_async_callback(connection.close)
            found.append(connection)
        yield found


@pytest.fixture
async def scene(migrated_url: str) -> AsyncIterator[Scene]:
    harness = await PostgresHarness(migrated_url).open()
    yield Scene(harness)
    await harness.close()


async def days(connection: Any) -> list[int]:
    return [day for day, _, state in await partitions._partitions(connection) if state == "attached"]


async def states(connection: Any) -> dict[int, str]:
    return {day: state for day, _, state in await partitions._partitions(connection)}


async def add_rows(connection: Any, day: int, first: int = 1, last: int = 1) -> None:
    await connection.execute(ROW, day * DAY_US, day, first, last)


async def waits_for_lock(connection: Any, text: str) -> int:
    """The process whose statement with this text waits for somebody."""
    async with asyncio.timeout(20):
        while True:
            pid = await connection.fetchval(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                " AND query LIKE $1",
                f"%{text}%",
            )
            if pid is not None:
                return int(pid)


async def test_days_are_made_ahead(connections: list[Any]) -> None:
    connection = connections[0]
    await partitions.make_ahead(connection, START_AT)
    assert await days(connection) == AROUND
    await partitions.make_ahead(connection, START_AT + 2 * DAY_US)
    assert await days(connection) == [*AROUND, TODAY + 4, TODAY + 5]
    for day in AROUND:
        await add_rows(connection, day)


async def test_several_processes_make_the_same_days(connections: list[Any]) -> None:
    await asyncio.gather(*(partitions.make_ahead(connection, START_AT) for connection in connections))
    assert await days(connections[0]) == AROUND


async def test_a_day_is_dropped_when_all_that_it_may_hold_is_old_enough(connections: list[Any]) -> None:
    """A run of the last moment of a day may have ended a day later, and is kept from then on."""
    connection = connections[0]
    await partitions.make_ahead(connection, START_AT)
    first = AROUND[0]
    assert await partitions.drop_old(connection, (first + 2) * DAY_US) == 0
    assert await partitions.drop_old(connection, (first + 2) * DAY_US + 1) == 1
    assert list(await states(connection)) == AROUND[1:]
    assert await partitions.drop_old(connection, (first + 4) * DAY_US + 1) == 2
    assert list(await states(connection)) == AROUND[3:]


async def test_several_processes_drop_the_same_days(connections: list[Any]) -> None:
    await partitions.make_ahead(connections[0], START_AT)
    dropped = await asyncio.gather(
        *(partitions.drop_old(connection, (TODAY + 2) * DAY_US) for connection in connections),
        return_exceptions=True,
    )
    while sum(await asyncio.gather(*(partitions.drop_old(c, (TODAY + 2) * DAY_US) for c in connections[:1]))):
        pass
    assert not [answer for answer in dropped if isinstance(answer, BaseException)], dropped
    assert list(await states(connections[0])) == AROUND[1:]


async def test_nobody_waits_for_a_day_that_is_dropped_while_it_is_read(connections: list[Any]) -> None:
    reader, dropper, writer, watcher = connections
    await partitions.make_ahead(dropper, START_AT)
    await add_rows(writer, AROUND[0], 1, 100)
    await reader.execute("BEGIN")
    assert await reader.fetchval("SELECT count(*) FROM history") == 100  # and holds on to every day
    dropping = asyncio.create_task(partitions.drop_old(dropper, AROUND[2] * DAY_US + 1))
    await waits_for_lock(watcher, "DETACH")
    for number in range(50):
        async with asyncio.timeout(1):
            await add_rows(writer, TODAY, 1_000 + number, 1_000 + number)
        async with asyncio.timeout(1):
            assert (
                await writer.fetchval("SELECT count(*) FROM history WHERE job_id = $1", 1_000 + number) == 1
            )
    async with asyncio.timeout(1):
        await partitions.make_ahead(writer, START_AT + DAY_US)
    assert not dropping.done()
    await reader.execute("COMMIT")
    async with asyncio.timeout(10):
        assert await dropping == 1
    assert AROUND[0] not in await states(watcher)


async def test_a_day_that_is_read_for_too_long_is_dropped_later(connections: list[Any]) -> None:
    reader, dropper, writer, _ = connections
    await partitions.make_ahead(dropper, START_AT)
    await reader.execute("BEGIN")
    await reader.fetch("SELECT count(*) FROM history")
    await dropper.execute("SET lock_timeout = '50ms'")
    assert await partitions.drop_old(dropper, AROUND[2] * DAY_US + 1) == 0
    await add_rows(writer, TODAY)
    await reader.execute("COMMIT")
    assert await partitions.drop_old(dropper, AROUND[2] * DAY_US + 1) == 1


async def test_a_drop_that_was_interrupted_is_completed_the_next_time(connections: list[Any]) -> None:
    reader, dropper, writer, watcher = connections
    await partitions.make_ahead(dropper, START_AT)
    await reader.execute("BEGIN")
    await reader.fetch("SELECT count(*) FROM history")
    dropping = asyncio.create_task(partitions.drop_old(dropper, AROUND[2] * DAY_US + 1))
    pid = await waits_for_lock(watcher, "DETACH")
    await watcher.fetch("SELECT pg_terminate_backend($1)", pid)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        await dropping
    assert (await states(watcher))[AROUND[0]] == "detaching"
    await add_rows(writer, TODAY)  # meanwhile life goes on
    await partitions.make_ahead(writer, START_AT + DAY_US)
    await reader.execute("COMMIT")
    assert await partitions.drop_old(watcher, AROUND[2] * DAY_US + 1) == 1
    assert AROUND[0] not in await states(watcher)


async def test_a_day_that_was_detached_and_not_dropped_is_dropped(connections: list[Any]) -> None:
    connection = connections[0]
    await partitions.make_ahead(connection, START_AT)
    await connection.execute(f"ALTER TABLE history DETACH PARTITION {partitions.name_of(AROUND[0])}")
    assert await partitions.drop_old(connection, AROUND[2] * DAY_US + 1) == 1
    assert list(await states(connection)) == AROUND[1:]


@pytest.mark.parametrize("away_us", [-400 * DAY_US, -25 * HOUR_US])
async def test_runs_far_from_the_present_are_found_again(scene: Scene, away_us: int) -> None:
    at = scene.now + away_us + 7
    job = await scene.create(spec(once(at)))
    node = await scene.worker()
    await scene.finish(await scene.take(node))
    assert await scene.state(job, at) is State.SUCCEEDED
    assert [view.scheduled_at for view in await scene.runs(job)] == [at]
    page = await scene.store.list_runs("default", RunQuery(from_at=scene.now - HOUR_US, to_at=scene.now))
    assert [(run.job_id, run.scheduled_at) for run in page.runs] == [RunKey(job.id, at)]
    of_job = RunQuery(from_at=0, to_at=scene.now, job_id=job.id)
    assert len((await scene.store.list_runs("default", of_job)).runs) == 1
    assert await far_rows(scene) == 1


async def test_old_runs_far_from_their_time_are_purged_a_few_at_a_time(scene: Scene) -> None:
    async def fill(connection: Any) -> None:
        await connection.execute(ROW, START_AT - 100 * DAY_US, 0, 1, 250)

    await scene.harness.store._engine.on_connection(fill)  # type: ignore[attr-defined]
    left = []
    for _ in range(3):
        more = await scene.store.purge(START_AT - 30 * DAY_US, 0, 100)
        left.append((await far_rows(scene), more))
    assert left == [(150, True), (50, True), (0, False)]


async def test_a_write_that_finds_no_day_makes_it(scene: Scene) -> None:
    """Nobody has made days for a week: the sweeper was away."""
    scene.pass_time(9 * DAY_US / SECOND_US)
    job = await scene.create(spec(once(scene.now + 5)))
    scene.pass_time(1)
    node = await scene.worker()
    await scene.finish(await scene.take(node))
    assert await scene.state(job, job.spec.timing.at) is State.SUCCEEDED  # type: ignore[union-attr]
    assert await far_rows(scene) == 0


async def test_purging_drops_old_days_and_makes_new_ones(scene: Scene) -> None:
    scene.pass_time(40 * DAY_US / SECOND_US)
    await scene.store.purge(scene.now - 30 * DAY_US, 0, 100)
    found = await scene.harness.store._engine.on_connection(days)  # type: ignore[attr-defined]
    today = scene.now // DAY_US
    assert found == list(range(today - 1, today + 4))


async def far_rows(scene: Scene) -> int:
    async def count(connection: Any) -> int:
        return int(await connection.fetchval("SELECT count(*) FROM history_far"))

    return await scene.harness.store._engine.on_connection(count)  # type: ignore[attr-defined,no-any-return]
