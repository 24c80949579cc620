"""The Kafka of our own is one for all workers, and what is missing for it is said; its faults are for the queue's tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import kafka, kafka_jars
from tests.servers.machine import Unavailable

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 30.0


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
