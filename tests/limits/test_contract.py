"""What `ports/limits.py` promises: in this process, in the store and in a real Redis, which all count alike."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourhand.clock import ManualClock, SystemClock
from hourhand.core.bucket import Limit, take
from hourhand.core.instant import SECOND_US
from hourhand.errors import Unavailable
from hourhand.limits.local import LocalLimits
from hourhand.limits.redis import RedisLimits
from hourhand.limits.shared import PORTION_SHARE, SharedLimits
from hourhand.ports.limits import Limits, Portion
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.sqlite.store import SqliteStore
from tests.servers.redis import RedisServer, ask

SLOW = Limit(burst=5, per_s=0.01)  # nothing comes back while a test runs
PATIENCE_S = 5.0


@pytest.fixture(params=["local", "shared-sqlite", "shared-postgres", "redis"])
async def limits(request: pytest.FixtureRequest) -> AsyncIterator[Limits]:
    if request.param == "local":
        yield LocalLimits(SystemClock())
        return
    if request.param == "shared-sqlite":
        kept = SqliteStore.in_memory(clock=SystemClock())
        yield SharedLimits(kept, SystemClock())
        await kept.close()
        return
    if request.param == "shared-postgres":
        store = await PostgresStore.open(request.getfixturevalue("migrated_url"))
        yield SharedLimits(store, store.clock, patience_s=PATIENCE_S)
        await store.close()
        return
    from redis.asyncio import Redis

    client = Redis.from_url(request.getfixturevalue("redis_url"))
    yield RedisLimits(client, name="test", patience_s=PATIENCE_S)
    await client.aclose()


async def test_a_burst_passes_and_then_nothing_until_a_token_is_back(limits: Limits) -> None:
    verdicts = [await limits.take("ann", SLOW) for _ in range(7)]
    assert [one.allowed for one in verdicts] == [True] * 5 + [False] * 2
    assert [one.left for one in verdicts] == [4, 3, 2, 1, 0, 0, 0]
    assert verdicts[0].retry_after_us == 0
    assert 0 < verdicts[5].retry_after_us <= 100 * SECOND_US


async def test_keys_are_counted_apart(limits: Limits) -> None:
    assert (await limits.take("ann", SLOW, 5)).allowed
    assert not (await limits.take("ann", SLOW)).allowed
    assert (await limits.take("bob", SLOW, 5)).allowed


async def test_all_tokens_are_taken_or_none(limits: Limits) -> None:
    assert (await limits.take("ann", SLOW, 3)).left == 2
    refused = await limits.take("ann", SLOW, 3)
    assert (refused.allowed, refused.left) == (False, 2)
    assert (await limits.take("ann", SLOW, 2)).allowed
    for amount in (0, 6):
        with pytest.raises(ValueError, match="from 1 to 5"):
            await limits.take("ann", SLOW, amount)


async def test_what_was_taken_comes_back(limits: Limits) -> None:
    quick = Limit(burst=2, per_s=50)
    assert (await limits.take("ann", quick, 2)).allowed
    async with asyncio.timeout(20):
        while not (verdict := await limits.take("ann", quick, 2)).allowed:
            assert verdict.retry_after_us > 0


async def test_many_at_once_get_no_more_than_there_is(limits: Limits) -> None:
    limit = Limit(burst=40, per_s=0.01)
    verdicts = await asyncio.gather(*(limits.take("ann", limit) for _ in range(100)))
    assert sum(one.allowed for one in verdicts) == 40


@given(
    st.integers(1, 20),
    st.floats(0.01, 1000),
    st.lists(st.tuples(st.integers(0, 3 * SECOND_US), st.integers(1, 20)), max_size=40),
)
def test_never_more_than_burst_and_rate_allow(burst: int, per_s: float, asked: list[tuple[int, int]]) -> None:
    limit = Limit(burst=burst, per_s=per_s)
    now_at, full_at, taken = 0, 0, []
    for pause_us, amount in asked:
        now_at += pause_us
        amount = min(amount, burst)
        full_at, verdict = take(full_at, now_at, limit, amount)
        assert 0 <= verdict.left <= burst
        if verdict.allowed:
            taken.append((now_at, amount))
        else:
            assert take(full_at, now_at + verdict.retry_after_us, limit, amount)[1].allowed
            assert not take(full_at, now_at + verdict.retry_after_us - 1, limit, amount)[1].allowed
        for from_at, _ in taken:
            within = sum(count for at, count in taken if at >= from_at)
            assert within <= burst + (now_at - from_at) / limit.token_us + 1e-9


async def test_this_process_remembers_a_bounded_number_of_keys() -> None:
    clock = ManualClock(SECOND_US)
    limits = LocalLimits(clock, most_keys=100)
    await limits.take("greedy", SLOW, 5)
    for number in range(1_000):
        await limits.take(f"key {number}", SLOW)
    assert len(limits._full_at) <= 100
    assert not (await limits.take("greedy", SLOW)).allowed, "the emptiest are kept"


async def test_redis_forgets_full_buckets_and_says_when_it_is_away(
    own_redis: Callable[..., RedisServer],
) -> None:
    from redis.asyncio import Redis

    server = own_redis()
    client = Redis.from_url(server.url)
    limits = RedisLimits(client, name="test", patience_s=PATIENCE_S)
    await limits.take("ann", SLOW)
    assert 0 < int(ask(server.url, "PTTL {hh:test}:limit:ann")[1:]) <= 100_000
    server.kill()
    with pytest.raises(Unavailable, match="does not answer"):
        await limits.take("ann", SLOW)
    await client.aclose()


async def test_two_processes_let_no_more_pass_than_stated(migrated_url: str) -> None:
    """At most burst and rate, and what each has in hand; and refuse only while less than that is left."""
    clock = ManualClock()
    stores = [await PostgresStore.open(migrated_url, clock=clock) for _ in range(2)]
    trips: list[str] = []
    both = [SharedLimits(Counted(store, trips), clock, patience_s=PATIENCE_S) for store in stores]
    limit = Limit(burst=100, per_s=10)
    portion = 100 // PORTION_SHARE
    passed = 0
    for second in range(30):  # a flood through both at once, for half a minute
        asked = [both[n % 2].take("ann", limit) for n in range(40)]
        passed += sum(one.allowed for one in await asyncio.gather(*asked))
        assert passed <= 100 + second * 10
        clock.advance(SECOND_US)
    assert passed >= 100 + 29 * 10 - 2 * portion
    assert len(trips) <= passed / portion + 2 * 30, "never a round trip for each request"
    clock.advance(60 * SECOND_US)  # all comes back, while each has up to a portion in hand
    burst = [both[n % 2].take("ann", limit) for n in range(300)]
    at_once = sum(one.allowed for one in await asyncio.gather(*burst))
    assert 100 - 2 * portion <= at_once <= 100 + 2 * portion
    for store in stores:
        await store.close()


async def test_one_process_alone_gives_out_all_there_is_and_asks_seldom(migrated_url: str) -> None:
    store = await PostgresStore.open(migrated_url)
    trips: list[str] = []
    limits = SharedLimits(Counted(store, trips), store.clock, patience_s=PATIENCE_S)
    limit = Limit(burst=1_000, per_s=0.1)
    allowed = [(await limits.take("ann", limit)).allowed for _ in range(3_000)]
    assert allowed == [True] * 1_000 + [False] * 2_000
    assert len(trips) <= PORTION_SHARE + 1
    await store.close()


async def test_a_store_that_is_away_is_said_so_in_time() -> None:
    class Silent:
        async def take_tokens(self, key: str, limit: Limit, least: int, most: int) -> Portion:
            await asyncio.Event().wait()
            raise AssertionError

    with pytest.raises(Unavailable, match="in time"):
        await SharedLimits(Silent(), SystemClock(), patience_s=0.01).take("ann", SLOW)


async def test_what_is_in_hand_of_too_many_keys_is_forgotten() -> None:
    store = SqliteStore.in_memory(clock=SystemClock())
    limits = SharedLimits(store, SystemClock(), most_keys=10)
    for number in range(100):
        assert (await limits.take(f"key {number}", SLOW)).allowed
        assert len(limits._hands) <= 10
    await store.close()


class Counted:
    """A store's buckets, and how often they were asked."""

    def __init__(self, store: PostgresStore, trips: list[str]) -> None:
        self._store = store
        self._trips = trips

    async def take_tokens(self, key: str, limit: Limit, least: int, most: int) -> Portion:
        self._trips.append(key)
        return await self._store.take_tokens(key, limit, least, most)


@pytest.mark.parametrize(("burst", "per_s"), [(0, 1.0), (1, 0.0), (1, 2e6)])
def test_what_is_no_limit(burst: int, per_s: float) -> None:
    with pytest.raises(ValueError, match="burst of 1 or more"):
        Limit(burst=burst, per_s=per_s)
