"""Kafka's topics by the commands: made and checked by `migrate`, replayed by `queue replay`, refused where they cannot be."""

import dataclasses
from collections.abc import Callable

import msgspec
import pytest

from hourhand.__main__ import Wired
from hourhand.cli.app import run
from hourhand.config import Settings
from hourhand.config.settings import QueueSettings, StoreSettings
from hourhand.errors import CannotStart
from hourhand.wiring.kafka import kafka_addresses, topic_findings
from hourhand.wiring.queues import refuse_broker

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def hourhand(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Command:
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    for name in ("HOURHAND_TEST_RUN_DIRECTORY", "HOURHAND_TEST_POSTGRES_URL", "HOURHAND_TEST_KAFKA_URL"):
        monkeypatch.delenv(name, raising=False)

    def command(store: str, queue: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setenv("HOURHAND_STORE_URL", store)
        monkeypatch.setenv("HOURHAND_QUEUE_URL", queue)
        code = run(arguments, Wired())
        return code, *capsys.readouterr()

    return command


def settings(queue: str, *databases: str) -> Settings:
    return Settings(store=StoreSettings(shards=databases), queue=QueueSettings(url=queue))


def test_topics_are_made_with_the_schema(
    hourhand: Command, migrated_url: str, kafka_url: str, kafka_topics: str
) -> None:
    queue = f"{kafka_url}/{kafka_topics}?partitions=2"
    code, out, _ = hourhand(migrated_url, queue, "migrate", "status", "--json")
    topics = msgspec.json.decode(out)["databases"][1]
    assert (code, topics["state"], topics["version"], topics["newest"]) == (8, "pending", 0, 3)
    assert len(topic_findings(settings(queue, migrated_url))) == 3
    code, out, _ = hourhand(migrated_url, queue, "migrate", "up", "--dry-run")
    assert f"topic {kafka_topics}.high" in out
    code, out, _ = hourhand(migrated_url, queue, "migrate", "up", "--json")
    assert [one["applied"] for one in msgspec.json.decode(out)["applied"]] == [
        f"topic {kafka_topics}.{name}" for name in ("high", "medium", "low")
    ]
    assert hourhand(migrated_url, queue, "migrate", "status")[0] == 0
    assert topic_findings(settings(queue, migrated_url)) == []
    code, out, err = hourhand(migrated_url, queue, "queue", "replay", "--from", "2026-01-01T00:00:00Z")
    assert (code, out) == (0, "offered 0 runs again\n"), err


def test_without_a_kafka_there_is_nothing_to_replay(hourhand: Command) -> None:
    code, _, err = hourhand("postgres://db/x", "", "queue", "replay", "--from", "2026-01-01T00:00:00Z")
    assert code == 1
    assert "neither queue.url nor queue.fast_url is a kafka:// URL" in err


def test_a_kafka_that_does_not_answer_is_said(hourhand: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hourhand.queues.kafka.window._PATIENCE_S", 0.5)
    queue = "kafka://me:secret@127.0.0.1:1?security.protocol=PLAINTEXT"
    code, _, err = hourhand("postgres://db/x", queue, "queue", "replay", "--from", "2026-01-01T00:00:00Z")
    assert code == 6
    assert "Kafka at 127.0.0.1:1" in err
    assert "secret" not in err


def test_each_database_has_topics_of_its_own() -> None:
    assert [one.topics for one in kafka_addresses(settings("kafka://k/t", "postgres://a/x"))] == ["t"]
    both = settings("kafka://k/t", "postgres://a/x", "postgres://b/x")
    assert [one.topics for one in kafka_addresses(both)] == ["t.0", "t.1"]
    fast = dataclasses.replace(both, queue=QueueSettings(url="redis://r", fast_url="kafka://k"))
    assert [one.topics for one in kafka_addresses(fast)] == ["job-triggers.0", "job-triggers.1"]
    assert kafka_addresses(settings("", "postgres://a/x")) == []


def test_a_store_of_one_process_takes_no_broker() -> None:
    refuse_broker(Settings())
    with pytest.raises(CannotStart, match=r"queue.url is for clusters"):
        refuse_broker(Settings(queue=QueueSettings(url="kafka://k")))
