"""Every interleaving of the pairs of operations that matter, on real connections: whatever the order, nothing is lost.

`make test` goes through some of those of the larger pairs, always the same; `make soak` goes through all.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contract.checker import assert_covered, assert_sound
from tests.contract.scene import Scene
from tests.interleavings.explorer import Account, Passage, ended, explore, interleave
from tests.interleavings.footprints import are_independent, committed, footprint
from tests.interleavings.pairs import PAIRS, Pair
from tests.interleavings.stages import HORIZON_US, Stage
from tests.interleavings.worlds import PostgresWorld, SqliteWorld, World, named
from tests.servers.postgres_databases import PostgresDatabases

BUDGET = 24
SOAK_BUDGET = 5_000
MOST_STEPS = 100

by_name = pytest.mark.parametrize("pair", PAIRS, ids=[pair.name.replace(" ", "_") for pair in PAIRS])


on_one_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres(
    postgres_server: PostgresDatabases, migrated_template: str
) -> AsyncIterator[PostgresWorld]:
    """One database for all pairs: each begins with empty tables."""
    url = postgres_server.create_database(template=migrated_template)
    world = await PostgresWorld(url).open()
    yield world
    await world.close()
    postgres_server.drop_database(url)


@by_name
@on_one_loop
async def test_some_interleavings_on_postgres(pair: Pair, postgres: PostgresWorld) -> None:
    account = await search(postgres, pair, BUDGET)
    print(f"{pair.name}: {account}")
    assert account.explored > 1


@pytest.mark.soak
@by_name
@on_one_loop
async def test_all_interleavings_on_postgres(pair: Pair, postgres: PostgresWorld) -> None:
    account = await search(postgres, pair, SOAK_BUDGET)
    print(f"{pair.name}: {account}")
    assert account.explored > 1


@by_name
async def test_all_orders_of_transactions_on_sqlite(pair: Pair) -> None:
    world = SqliteWorld()
    account = await search(world, pair, None)
    await world.close()
    print(f"{pair.name}: {account}")
    assert account.explored > 1


@by_name
async def test_whoever_dies_between_two_transactions_leaves_the_rest_whole_on_sqlite(pair: Pair) -> None:
    world = SqliteWorld()
    assert await deaths(world, pair) > 1
    await world.close()


@pytest.mark.soak
@by_name
@on_one_loop
async def test_whoever_dies_before_any_statement_leaves_the_rest_whole_on_postgres(
    pair: Pair, postgres: PostgresWorld
) -> None:
    assert await deaths(postgres, pair) > 2


async def search(world: World, pair: Pair, budget: int | None) -> Account:
    return await explore(lambda prefix, asleep: once(world, pair, prefix, asleep), budget)


async def once(world: World, pair: Pair, prefix: str = "", asleep: frozenset[str] = frozenset()) -> Passage:
    """One interleaving, from the beginning to what must hold after it."""
    scene = await world.begin()
    stage = await pair.setup(scene)
    sides, (left, right) = await world.sides()
    sides[0].begin(lambda: pair.left(left, stage))
    sides[1].begin(lambda: pair.right(right, stage))
    passage = Passage()
    try:
        await interleave(sides, world.observer, passage, prefix, asleep)
        if not passage.redundant:
            answers = [await ended(side) for side in sides]
            await pair.expect(scene, stage, *answers)
            await whole(scene, stage)
    except Exception as error:
        story = "\n  ".join(named(passage.story))
        raise AssertionError(f"{pair.name} as {passage.word}: {error!r}\n  {story}") from None
    finally:
        for side in sides:
            if not side.is_over:
                await side.die()
    return passage


async def deaths(world: World, pair: Pair) -> int:
    """Let each side be gone before each of its steps, and the other do its work after it; how many times one died."""
    count = 0
    for victim in (0, 1):
        for steps in range(MOST_STEPS):
            if not await _die(world, pair, victim, steps):
                break
            count += 1
    return count


async def _die(world: World, pair: Pair, victim: int, steps: int) -> bool:
    """One side does so many steps and is gone; False if it was over by then."""
    scene = await world.begin()
    stage = await pair.setup(scene)
    sides, doors = await world.sides()
    acts = (pair.left, pair.right)
    sides[victim].begin(lambda: acts[victim](doors[victim], stage))
    died = False
    while not await sides[victim].come_to_rest(None) and sides[victim].stands:
        if len(sides[victim].done_steps) == steps:
            await sides[victim].die()
            died = True
        else:
            sides[victim].let_go()
    await acts[1 - victim](scene, stage)
    try:
        await whole(scene, stage)
    except AssertionError as error:
        raise AssertionError(f"{pair.name}, side {victim} dead after {steps} steps: {error}") from None
    return died


async def whole(scene: Scene, stage: Stage) -> None:
    """What must hold after any pair, once the clocks are planned as far as pairs do."""
    await scene.plan(HORIZON_US)
    tables = await scene.tables()
    assert_sound(tables, {job.id: job.spec.concurrency for job in stage.jobs})
    stranded = {row.job_id for row in tables.blocked} - {row.job_id for row in tables.running}
    assert not stranded, f"runs wait for slots that nobody holds: {stranded}"
    for job in stage.jobs:
        if job.spec.rule is not None:
            versions = await scene.store.versions(job.tenant, job.id)
            assert_covered(tables, job.id, versions, scene.now + HORIZON_US - 1)


# --- the machinery itself


def test_what_steps_mind() -> None:
    read = footprint("SELECT lease_until FROM nodes WHERE id = $1")
    write = footprint("UPDATE nodes SET lease_until = $1")
    lock = footprint("SELECT job_id FROM running FOR NO KEY UPDATE")
    taken = footprint("INSERT INTO running SELECT * FROM planned")
    assert are_independent(read, write), "what is not committed is not seen"
    assert not are_independent(read, committed(frozenset({"nodes"})))
    assert not are_independent(write, write)
    assert not are_independent(lock, taken)
    assert are_independent(write, taken)
    assert not are_independent(taken, committed(frozenset({"planned"}))), "it reads them"
    assert are_independent(committed(frozenset({"nodes"})), committed(frozenset({"nodes"})))
    assert footprint("SELECT pg_advisory_xact_lock($1)").writes


async def test_a_lost_update_is_found_and_its_order_named() -> None:
    """Two who read and then write what they read plus one, on anything: one order in six keeps both."""
    outcomes = await _lost_updates()
    assert outcomes == {"LLRR": 2, "LRLR": 1, "LRRL": 1, "RLLR": 1, "RLRL": 1, "RRLL": 2}


async def _lost_updates() -> dict[str, int]:
    from tests.interleavings.footprints import WHOLE
    from tests.interleavings.stepper import Side

    found: dict[str, int] = {}

    async def pass_once(prefix: str, asleep: frozenset[str]) -> Passage:
        count = 0

        async def add(side: Side) -> None:
            nonlocal count
            await side.stop("read", WHOLE)
            seen = count
            await side.stop("write", WHOLE)
            count = seen + 1

        left, right = Side("L"), Side("R")
        left.begin(lambda: add(left))
        right.begin(lambda: add(right))
        passage = Passage()
        await interleave((left, right), None, passage, prefix, asleep)
        await asyncio.gather(ended(left), ended(right))
        found[passage.word] = count
        return passage

    account = await explore(pass_once, None)
    assert account.is_complete
    assert account.explored == 6
    return found
