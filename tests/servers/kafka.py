"""A real Kafka of our own: one node that is broker and controller. Finding the program is left to `kafka_jars`."""

import base64
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import ClassVar

from tests.servers.daemon import Daemon
from tests.servers.kafka_jars import find_jars, kept
from tests.servers.machine import Account, Unavailable, skip_or_fail

URL_VARIABLE = "HOURHAND_TEST_KAFKA_URL"

# Starts sooner, and computes slower.
_QUICK = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-XX:-UsePerfData",
)
_SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=300
broker.session.timeout.ms=1500
"""


class KafkaServer(Daemon):
    """One Kafka; `quick` is for tests, which start it more often than they keep it busy."""

    name: ClassVar[str] = "kafka"
    ports: ClassVar[int] = 2  # of the broker, and of the controller

    def __init__(self, *, heap_mb: int = 512, quick: bool = True) -> None:
        super().__init__()
        self._options = (f"-Xmx{heap_mb}m", *(_QUICK if quick else ()))

    @property
    def url(self) -> str:
        """As in `queue.url`."""
        return f"kafka://{self.address}"

    @property
    def address(self) -> str:
        """Where clients begin."""
        return f"127.0.0.1:{self.port}"

    def account(self) -> Account:
        """Whoever runs the tests, since the jars are in the cache of that user."""
        return Account()

    def command(self) -> list[str]:
        """The server, whose storage is made first."""
        if self._home is None:
            return self._java("kafka.Kafka")
        settings = self.home / "server.properties"
        if not settings.exists() or f":{self.port}," not in settings.read_text():
            port, controller = self.all_ports
            data = self.home / f"data-{port}"
            settings.write_text(_SETTINGS.format(port=port, controller=controller, data=data))
            shutil.copytree(kept("storage", self._format), data)
        return self._java("kafka.Kafka", str(settings))

    def is_ready(self) -> bool:
        """Whether it tells of itself as a broker."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        try:
            return bool(client.list_topics(timeout=0.5).brokers)
        except KafkaException:
            return False

    def _format(self, data: Path) -> None:
        """Storage that no server has used yet. That of one is as good for another, and making it takes a Java's start."""
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        settings = self.home / "format.properties"
        settings.write_text(_SETTINGS.format(port=1, controller=2, data=data))
        program = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings))
        done = subprocess.run(
            program, cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"Kafka's storage could not be made: {done.stdout}{done.stderr}")

    def _java(self, program: str, *arguments: str) -> list[str]:
        # What it unpacks stays behind when it is killed, unless it is in the directory that goes away.
        place = () if self._home is None else (f"-Djava.io.tmpdir={self.home}",)
        return ["java", *self._options, *place, "-cp", f"{find_jars()}/*", program, *arguments]


def given_url() -> str | None:
    """The server that the environment names, if it does."""
    return os.environ.get(URL_VARIABLE) or None


def require_kafka() -> None:
    """Go on only if a server of our own can be had; otherwise skip on a laptop and fail in CI."""
    try:
        find_jars()
    except Unavailable as error:
        skip_or_fail(str(error))
