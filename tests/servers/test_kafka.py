"""The Kafka of our own: it answers, keeps what it was given through stops, kills and pauses, and leaves nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.servers import kafka, kafka_jars
from tests.servers.kafka import KafkaServer
from tests.servers.machine import Unavailable, is_running, wait_until

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 30.0

StartKafka = Callable[..., KafkaServer]


def _end_offset(server: KafkaServer) -> int:
    from confluent_kafka import Consumer, TopicPartition

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


def test_workers_of_one_run_share_one_server(tmp_path: Path) -> None:
    kafka.require_kafka()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        "import os, pytest\n"
        "from pathlib import Path\n"
        "@pytest.mark.parametrize('n', range(8))\n"
        "def test_it(n, kafka_url, worker_id):\n"
        "    state = (Path(os.environ['HOURHAND_TEST_RUN_DIRECTORY']) / 'kafka.json').read_text()\n"
        "    print('server', kafka_url, worker_id, state.replace(' ', ''))\n"
    )
    outside = ("PYTEST", "HOURHAND_TEST_KAFKA", "HOURHAND_TEST_RUN")
    plugins = ("-p", "tests.servers.fixtures", "-p", "tests.servers.kafka_fixtures")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-n", "2", "-rP", "-q", tmp_path],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(outside)}
        | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    _, urls, workers, states = zip(
        *(line.split() for line in ended.stdout.splitlines() if line.startswith("server ")), strict=True
    )
    assert set(workers) == {"gw0", "gw1"}
    assert len(set(urls)) == 1
    assert len(set(states)) == 1
    home = Path(states[0].split('"')[3])
    wait_until("end of the server", lambda: not home.exists(), ANSWER_S)


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
    with pytest.raises(Unavailable, match="no mvn .* set HOURHAND_TEST_KAFKA_URL"):
        find()
    monkeypatch.setattr(kafka_jars.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match="no java.* set HOURHAND_TEST_KAFKA_URL"):
        find()
