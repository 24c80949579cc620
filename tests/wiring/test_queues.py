"""Which broker is used: by the scheme of its URL, loaded only when it is chosen, refused with words that help."""

import sys

import pytest

from hourhand.config.settings import QueueSettings, Settings, StoreSettings
from hourhand.errors import CannotStart
from hourhand.queues.dual import DualOffers
from hourhand.queues.redis import RedisFeed, RedisOffers
from hourhand.telemetry import Telemetry
from hourhand.wiring.queues import Brokers, broker_urls, redis_address, refuse_broker

POSTGRES = StoreSettings(url="postgres://h/x")
REDIS = "redis://127.0.0.1:1/0"


def settings(store: StoreSettings = POSTGRES, **queue: str) -> Settings:
    return Settings(store=store, queue=QueueSettings(**queue))  # type: ignore[arg-type]


def brokers(**queue: str) -> Brokers:
    return Brokers(settings=settings(**queue), telemetry=Telemetry())


def test_without_a_url_workers_ask_the_store() -> None:
    assert brokers().offers(0) is None
    assert brokers().feeds(0, ("default",)) == []


async def test_redis_is_one_feed_for_all_pools() -> None:
    made = brokers(url=REDIS)
    offers, feeds = made.offers(0), made.feeds(0, ("default", "gpu"))
    assert isinstance(offers, RedisOffers)
    [feed] = feeds
    assert isinstance(feed, RedisFeed)
    await feed.close()
    await offers.close()


async def test_two_brokers_are_both_read_and_chosen_between() -> None:
    made = brokers(url=f"{REDIS}?name=a", fast_url=f"{REDIS}?name=b")
    offers, feeds = made.offers(0), made.feeds(0, ("default",))
    assert isinstance(offers, DualOffers)
    assert len(feeds) == 2
    for feed in feeds:
        await feed.close()
    await offers.close()


def test_each_database_has_streams_of_its_own() -> None:
    one = settings(url=f"{REDIS}?name=prod")
    assert redis_address(one.queue.url, one, 0).name == "prod"
    several = settings(StoreSettings(shards=("postgres://a/x", "postgres://b/x")), url=f"{REDIS}?name=prod")
    assert [redis_address(several.queue.url, several, shard).name for shard in (0, 1)] == ["prod.0", "prod.1"]


def test_a_fast_broker_needs_the_other() -> None:
    with pytest.raises(CannotStart, match=r"queue\.fast_url is beside queue\.url"):
        broker_urls(settings(fast_url=REDIS))


@pytest.mark.parametrize("key", ["url", "fast_url"])
def test_a_file_refuses_a_broker(key: str) -> None:
    refuse_broker(settings(StoreSettings()))
    with pytest.raises(CannotStart, match="for clusters on PostgreSQL"):
        refuse_broker(settings(StoreSettings(), **{key: REDIS}))


@pytest.mark.parametrize(
    ("url", "extra"), [(REDIS, "redis"), ("rediss://h", "redis"), ("kafka://h", "kafka")]
)
def test_a_missing_package_names_its_extra(url: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CannotStart, match=rf"pip install 'hourhand\[{extra}\]'"):
        broker_urls(settings(url=url))


def test_nobody_loads_a_driver_that_was_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("redis", "confluent_kafka")]:
        monkeypatch.setitem(sys.modules, name, None)  # an import of it would fail
    for name in ("hourhand.queues.redis", "hourhand.queues.kafka"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert brokers().offers(0) is None
    assert brokers().feeds(0, ("default",)) == []
