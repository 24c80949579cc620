"""The store behind a pooler that shares connections between transactions: the contract holds there too."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

from hourhand.core.identity import RunKey
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import DEFAULT_POOL, Job
from hourhand.errors import CannotStart
from hourhand.ports.store import ClaimRequest, Hint
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.postgres.store import split_pooler
from tests.contract import test_claiming, test_claiming_turns, test_create, test_dead_letters, test_settling
from tests.contract.builders import draft, once, outcome, spec
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.scene import LONG_LEASE_US, Scene
from tests.contract.storm import Storm
from tests.servers.pgbouncer import PgBouncer, require_pgbouncer
from tests.servers.postgres_databases import PostgresDatabases

CLAIM = ClaimRequest(
    node_id=1, pools=(DEFAULT_POOL,), room=5, lead_us=2 * SECOND_US, taken_before=0, cursors={}
)
LONG = {"test_manual_runs_of_one_job_are_bounded"}  # a thousand requests, nothing that a pooler changes
Check = Callable[[Scene], Awaitable[None]]


def _checks() -> list[Any]:
    """The contract's tests that need a store and nothing else."""
    return [
        pytest.param(check, id=f"{module.__name__.rpartition('.')[2]}-{name}")
        for module in (test_claiming, test_create, test_dead_letters, test_settling, test_claiming_turns)
        for name, check in vars(module).items()
        if name.startswith("test_")
        and name not in LONG
        and not is_hypothesis_test(check)
        and list(inspect.signature(check).parameters) == ["scene"]
    ]


@pytest.fixture(scope="module")
def pooler(postgres_server: PostgresDatabases) -> Any:
    """One for all tests here, with fewer connections than the stores would like."""
    require_pgbouncer()
    with PgBouncer(postgres_server, pool_size=3) as pooler:
        yield pooler


@pytest.fixture
def pooled_url(pooler: PgBouncer, migrated_url: str) -> str:
    return f"{pooler.url_of(migrated_url)}?pooler=transaction"


@pytest.fixture
async def scene(pooled_url: str) -> AsyncIterator[Scene]:
    harness = await PostgresHarness(pooled_url).open()
    yield Scene(harness)
    await harness.close()


@pytest.mark.parametrize("check", _checks())
async def test_the_contract_holds(scene: Scene, check: Check) -> None:
    await check(scene)


async def test_a_storm_loses_and_doubles_nothing(scene: Scene) -> None:
    storm = Storm(scene.harness, seed=5)
    await storm.rage(steps=30)
    await storm.calm()
    await storm.check()


async def test_without_a_way_around_it_hints_do_not_arrive_and_everything_works(pooled_url: str) -> None:
    here = await PostgresStore.open(pooled_url)
    there = await PostgresStore.open(pooled_url)
    heard: list[Hint] = []
    here.subscribe(heard.append)
    try:
        assert not here.hints_arrive
        at = await here.now() + 1
        [job] = await there.create_jobs([draft(spec(once(at)))])
        assert heard == []
        await here.renew_node(1, "worker", "one", LONG_LEASE_US)
        [run] = (await here.claim(CLAIM)).runs
        assert await here.settle("one", [outcome(run, now_at=at)]) == []
        ended = await there.get_run("default", run.key)
        assert isinstance(job, Job)
        assert run.key == RunKey(job.id, at)
        assert ended is not None
        assert ended.state is State.SUCCEEDED
        await here.create_jobs([draft()])
        assert Hint.CLOCKS in heard  # a process always hears of itself
        await here.purge(0, 0, 100)
    finally:
        await here.close()
        await there.close()


async def test_hints_arrive_by_a_url_around_the_pooler(pooled_url: str, migrated_url: str) -> None:
    here = await PostgresStore.open(pooled_url, listen_url=migrated_url)
    there = await PostgresStore.open(pooled_url)
    heard: asyncio.Queue[Hint] = asyncio.Queue()
    here.subscribe(heard.put_nowait)
    try:
        async with asyncio.timeout(20):
            while not here.hints_arrive:
                await here.ping()
            await there.create_jobs([draft()])
            while await heard.get() is not Hint.CLOCKS:
                pass
    finally:
        await here.close()
        await there.close()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://h/d", ("postgres://h/d", False)),
        ("postgres://h/d?pooler=transaction", ("postgres://h/d", True)),
        ("postgres://h/d?sslmode=require&pooler=none", ("postgres://h/d?sslmode=require", False)),
    ],
)
def test_the_url_says_whether_there_is_a_pooler(url: str, expected: tuple[str, bool]) -> None:
    assert split_pooler(url) == expected


def test_an_unknown_kind_of_pooler_is_refused() -> None:
    with pytest.raises(CannotStart, match="pooler=session"):
        split_pooler("postgres://h/d?pooler=session")
