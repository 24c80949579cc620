"""Fixtures of real servers: one of each kind for the whole run, whatever its number of workers, and parts of it.

The first test that asks starts the server, under a lock in a directory that all workers of the run share; the
process that the user started stops it when everything is over. Tests that stop, pause or kill a server
take one of their own from `own_postgres`, `own_redis` and so on.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from tests.servers import etcd, kafka, redis
from tests.servers.daemon import Daemon
from tests.servers.etcd import EtcdServer, require_etcd
from tests.servers.kafka import KafkaServer, require_kafka
from tests.servers.machine import Unavailable, skip_or_fail
from tests.servers.pgbouncer import PgBouncer, require_pgbouncer
from tests.servers.postgres import PostgresServer, given_server, require_postgres
from tests.servers.postgres_databases import PostgresDatabases
from tests.servers.redis import RedisServer, require_redis

_DaemonT = TypeVar("_DaemonT", bound=Daemon)

_SHARED_DAEMONS: tuple[type[Daemon], ...] = (RedisServer, KafkaServer, EtcdServer)
_RUN_VARIABLE = "HOURHAND_TEST_RUN_DIRECTORY"
_RUN = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Give the run a directory that its workers inherit through the environment."""
    if not hasattr(config, "workerinput"):
        config.stash[_RUN] = Path(tempfile.mkdtemp(prefix="hourhand-test-run-"))
        (config.stash[_RUN] / "pid").write_text(str(os.getpid()))
        os.environ[_RUN_VARIABLE] = str(config.stash[_RUN])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what the run shared; workers are gone by now."""
    run = config.stash.get(_RUN, None)
    if run is not None:
        with contextlib.suppress(FileNotFoundError):
            _shared(run).stop()
        for kind in _SHARED_DAEMONS:
            with contextlib.suppress(FileNotFoundError):
                _shared_daemon(run, kind).stop()
        shutil.rmtree(run, ignore_errors=True)
        os.environ.pop(_RUN_VARIABLE, None)


@pytest.fixture(scope="session")
def postgres_server() -> PostgresDatabases:
    """The run's server, shared by all: make and drop databases, do it no harm."""
    given = given_server()
    if given is not None:
        return given
    run = Path(os.environ[_RUN_VARIABLE])
    with (run / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return _shared(run)
        except FileNotFoundError:
            return _started(run)


@pytest.fixture
def postgres_url(postgres_server: PostgresDatabases) -> Iterator[str]:
    """A fresh empty database."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresDatabases) -> Iterator[str]:
    """A database with our schema that nobody is connected to, to be copied."""
    from hourhand.stores.postgres import schema

    url = postgres_server.create_database()
    with ThreadPoolExecutor(1) as apart:  # the caller may be on an event loop
        apart.submit(lambda: asyncio.run(schema.up(url))).result()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def migrated_url(postgres_server: PostgresDatabases, migrated_template: str) -> Iterator[str]:
    """A fresh database with our schema."""
    url = postgres_server.create_database(template=migrated_template)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def own_postgres() -> Iterator[Callable[..., PostgresServer]]:
    """Starts servers of the test's own (with options of PostgresServer), which are gone when it is over."""
    require_postgres()
    with contextlib.ExitStack() as servers:
        yield lambda **options: servers.enter_context(PostgresServer(**options))


@pytest.fixture
def pgbouncer() -> Iterator[Callable[..., PgBouncer]]:
    """Starts pgbouncers in front of a server (with options of PgBouncer), which are gone after the test."""
    require_pgbouncer()
    with contextlib.ExitStack() as poolers:
        yield lambda server, **options: poolers.enter_context(PgBouncer(server, **options))


@pytest.fixture(scope="session")
def redis_server_url() -> str:
    """The run's Redis, shared by all: only what is in a database of one's own is one's own."""
    return redis.given_url() or shared_daemon(RedisServer).url


@pytest.fixture
def redis_url(redis_server_url: str) -> Iterator[str]:
    """An empty database of the run's Redis."""
    url = redis.take_database(redis_server_url)
    yield url
    redis.drop_database(url)


@pytest.fixture
def own_redis() -> Iterator[Callable[..., RedisServer]]:
    """Starts servers of the test's own (with options of RedisServer), which are gone when it is over."""
    require_redis()
    with contextlib.ExitStack() as servers:
        yield lambda **options: servers.enter_context(RedisServer(**options))


@pytest.fixture(scope="session")
def kafka_url() -> str:
    """The run's Kafka, shared by all: make and delete topics, do it no harm."""
    return kafka.given_url() or shared_daemon(KafkaServer).url


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


@pytest.fixture(scope="session")
def etcd_url() -> str:
    """The run's etcd, shared by all: each test writes under a name of its own."""
    return etcd.given_url() or shared_daemon(EtcdServer).url


@pytest.fixture
def own_etcd() -> Iterator[Callable[[], EtcdServer]]:
    """Starts servers of the test's own, which are gone when it is over."""
    require_etcd()
    with contextlib.ExitStack() as servers:
        yield lambda: servers.enter_context(EtcdServer())


def shared_daemon(kind: type[_DaemonT]) -> _DaemonT:
    """The run's server of this kind, started by whoever asks first."""
    run = Path(os.environ[_RUN_VARIABLE])
    with (run / f"{kind.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            return _shared_daemon(run, kind)
        try:
            server = kind().start(owner=int((run / "pid").read_text()))
        except Unavailable as error:
            skip_or_fail(str(error))
        state = {"home": str(server.home), "ports": server.all_ports}
        (run / f"{kind.name}.json").write_text(json.dumps(state))
        return server


def _shared_daemon(run: Path, kind: type[_DaemonT]) -> _DaemonT:
    state = json.loads((run / f"{kind.name}.json").read_text())
    return kind.running_in(Path(state["home"]), tuple(state["ports"]))


def _shared(run: Path) -> PostgresServer:
    state = json.loads((run / "postgres.json").read_text())
    return PostgresServer.running_in(Path(state["home"]), state["port"])


def _started(run: Path) -> PostgresServer:
    try:
        # The run's end stops it, not this process's: other workers may go on.
        server = PostgresServer(max_connections=300).start(stop_at_exit=False)
    except Unavailable as error:
        skip_or_fail(str(error))
    (run / "postgres.json").write_text(json.dumps({"home": str(server.home), "port": server.port}))
    return server
