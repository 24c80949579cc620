"""Fixtures of a real Kafka: one for the whole run, whatever its number of workers, and topics of each test's own.

As with PostgreSQL the first test that asks starts it, under a lock in the directory that all workers of the run
share, and the process that the user started stops it. Tests that harm a server take `own_kafka`.
"""

import contextlib
import fcntl
import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.fixtures import RUN_VARIABLE
from tests.servers.kafka import URL_VARIABLE, KafkaServer, require_kafka
from tests.servers.machine import Unavailable, skip_or_fail


@pytest.hookimpl(tryfirst=True)  # before the run's directory goes away
def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what the run shared; workers are gone by now."""
    run = os.environ.get(RUN_VARIABLE)
    if run is not None and not hasattr(config, "workerinput"):
        with contextlib.suppress(FileNotFoundError):
            _shared(Path(run)).stop()


@pytest.fixture(scope="session")
def kafka_url() -> str:
    """The run's server, shared by all: make and delete topics, do it no harm."""
    return shared_url()


@pytest.fixture
def kafka_topics() -> str:
    """The beginning of topics that only this test has."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def own_kafka() -> Iterator[Callable[..., KafkaServer]]:
    """Starts servers of the test's own (with options of KafkaServer), which are gone when it is over."""
    require_kafka()
    with contextlib.ExitStack() as servers:
        yield lambda **options: servers.enter_context(KafkaServer(**options))


def shared_url() -> str:
    """Where the run's server is; whoever asks first starts it."""
    given = os.environ.get(URL_VARIABLE)
    if given:
        return given
    run = Path(os.environ[RUN_VARIABLE])
    with (run / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return _shared(run).url
        except FileNotFoundError:
            return _started(run).url


def _shared(run: Path) -> KafkaServer:
    state = json.loads((run / "kafka.json").read_text())
    return KafkaServer.running_in(Path(state["home"]), state["port"])


def _started(run: Path) -> KafkaServer:
    try:
        # The run's end stops it, not this process's: other workers may go on.
        server = KafkaServer().start(stop_at_exit=False)
    except Unavailable as error:
        skip_or_fail(str(error))
    (run / "kafka.json").write_text(json.dumps({"home": str(server.home), "port": server.port}))
    return server
