"""A real Kafka of our own: one node that is broker and controller, started, paused, killed and stopped by its pid.

A server is where its files are, so that another process of the same test run can take hold of it with
`KafkaServer.running_in`. Finding the program is left to `kafka_jars`.
"""

import atexit
import base64
import contextlib
import os
import shutil
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.servers.kafka_jars import find_jars
from tests.servers.machine import Unavailable, free_port, is_running, make_directory, skip_or_fail, wait_until

URL_VARIABLE = "HOURHAND_TEST_KAFKA_URL"

_START_S = 90.0
_STOP_S = 30.0
_GONE_S = 20.0
_TRIES = 5  # a free port may be taken before the server listens on it
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # starts sooner, and computes slower
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


class KafkaServer:
    """One server on 127.0.0.1; a context manager that starts and stops it."""

    def __init__(self, *, heap_mb: int = 512, quick: bool = True) -> None:
        self._options = (f"-Xmx{heap_mb}m", *(_QUICK if quick else ()))
        self._home: Path | None = None
        self._port = 0

    @classmethod
    def running_in(cls, home: Path, port: int) -> Self:
        """Take hold of a server that another process started."""
        server = cls()
        server._home, server._port = home, port
        return server

    @property
    def home(self) -> Path:
        """Holds the data and the log."""
        if self._home is None:
            raise RuntimeError("this server has not been started")
        return self._home

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.home / "kafka.log"

    @property
    def port(self) -> int:
        """The same through all restarts."""
        return self._port

    @property
    def address(self) -> str:
        """Where clients begin."""
        return f"127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """As in `queue.url`."""
        return f"kafka://{self.address}"

    @property
    def pid(self) -> int | None:
        """Of the server, if it runs."""
        try:
            pid = int((self.home / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if is_running(pid) else None

    def start(self, *, stop_at_exit: bool = True) -> Self:
        """Make its files if they are not there, and return once it answers."""
        if self._home is None:
            find_jars()  # before anything is left behind
            self._home = make_directory("hourhand-kafka-")
            if stop_at_exit:
                atexit.register(self._stop_at_exit, os.getpid())
        if self._port:
            self._launch()
            return self
        for left in reversed(range(_TRIES)):
            self._port = free_port()
            try:
                self._configure()
                self._launch()
                return self
            except RuntimeError as error:
                shutil.rmtree(self.home / "data", ignore_errors=True)
                if not left or "Address already in use" not in str(error):
                    raise
        raise AssertionError("the last try has answered or raised")

    def halt(self) -> None:
        """Stop as an operator would and keep the data; `start` brings it back."""
        self.resume()
        self._end(signal.SIGTERM, _STOP_S)

    def kill(self) -> None:
        """SIGKILL; data stay."""
        self._end(signal.SIGKILL, _GONE_S)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo `pause`."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop for good; its files go away."""
        if self._home is None:
            return
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)
        self._home, self._port = None, 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _settings(self) -> Path:
        return self.home / "server.properties"

    def _configure(self) -> None:
        text = _SETTINGS.format(port=self._port, controller=free_port(), data=self.home / "data")
        self._settings.write_text(text)
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        answer = subprocess.run(
            self._command("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings)),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if answer.returncode != 0:
            raise RuntimeError(f"Kafka's storage could not be made: {answer.stdout}{answer.stderr}")

    def _launch(self) -> None:
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._settings)),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # what the user's terminal sends is not for it
            )
        (self.home / "pid").write_text(str(process.pid))
        wait_until("Kafka", lambda: process.poll() is not None or self._answers(), _START_S)
        if process.poll() is not None:
            raise RuntimeError(f"Kafka did not start: {self.log.read_text(errors='replace')[-4000:]}")

    def _command(self, program: str, *arguments: str) -> list[str]:
        return ["java", *self._options, "-cp", f"{find_jars()}/*", program, *arguments]

    def _answers(self) -> bool:
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        try:
            return bool(client.list_topics(timeout=0.5).brokers)
        except KafkaException:
            return False

    def _end(self, number: signal.Signals, within_s: float) -> None:
        pid = self.pid
        if pid is None:
            return
        self._signal(number)
        with contextlib.suppress(TimeoutError):
            wait_until("end of Kafka", lambda: not is_running(pid), within_s)
            return
        self._signal(signal.SIGKILL)
        wait_until("end of a killed Kafka", lambda: not is_running(pid), _GONE_S)

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _stop_at_exit(self, started_by: int) -> None:
        if os.getpid() == started_by:  # not in a fork
            self.stop()


def require_kafka() -> None:
    """Go on only if a server of our own can be had; otherwise skip on a laptop and fail in CI."""
    try:
        find_jars()
    except Unavailable as error:
        skip_or_fail(str(error))
