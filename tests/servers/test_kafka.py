"""The Kafka of our own: it answers, keeps what it was given through stops, kills and pauses, and leaves nothing."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.servers import kafka, kafka_jars
from tests.servers.kafka import KafkaServer
from tests.servers.machine import Unavailable, is_running

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 30.0

StartKafka = Callable[..., KafkaServer]


def _end_offset(server: KafkaServer) -> int:
    reader = Consumer({"bootstrap.servers": server.address, "group.id": "looks"})
    try:
        return int(reader.get_watermark_offsets(TopicPartition("kept", 0), timeout=ANSWER_S)[1])
    finally:
        reader.close()


def _write(server: KafkaServer) -> None:
    producer = Producer({"bootstrap.servers": server.address, "acks": "all"})
    producer.produce("kept", b"x")
    assert producer.flush(ANSWER_S) == 0


def test_it_keeps_what_it_was_given_and_leaves_nothing_behind(own_kafka: StartKafka) -> None:
    server = own_kafka()
    pid, home, port = server.pid, server.home, server.port
    assert pid is not None
    admin = AdminClient({"bootstrap.servers": server.address})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(ANSWER_S)
    _write(server)
    server.kill()
    assert not is_running(pid)
    server.start()
    assert server.pid not in (None, pid)
    assert server.port == port
    assert _end_offset(server) == 1
    server.pause()
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": server.address, "log_level": 0}).list_topics(timeout=0.3)
    server.resume()
    _write(server)
    assert _end_offset(server) == 2
    server.pause()
    last = server.pid
    assert last is not None
    server.stop()
    assert not is_running(last)
    assert not home.exists()


def test_workers_of_one_run_share_one_server(kafka_url: str) -> None:
    """Two more processes of this run that ask at the same time are told of the one that is there."""
    program = (
        "from tests.servers import fixtures; from tests.servers.kafka import KafkaServer; "
        "print(fixtures.shared_daemon(KafkaServer).url)"
    )
    asking = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate(timeout=ANSWER_S)[0].strip() for process in asking] == [kafka_url] * 2


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_a_missing_server_skips_on_a_laptop_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    def none() -> Path:
        raise Unavailable("no Kafka here")

    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(kafka, "find_jars", none)
    with pytest.raises(outcome, match="no Kafka here"):
        kafka.require_kafka()


def test_without_java_or_maven_the_reason_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find = kafka_jars.find_jars.__wrapped__
    monkeypatch.setenv(kafka_jars.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(kafka_jars, "_on_machine", lambda: iter(()))
    monkeypatch.setattr(kafka_jars.shutil, "which", lambda name: "java" if name == "java" else None)
    with pytest.raises(Unavailable, match=r"no mvn .* set HOURHAND_TEST_KAFKA_URL"):
        find()
    monkeypatch.setattr(kafka_jars.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match=r"no java.* set HOURHAND_TEST_KAFKA_URL"):
        find()
