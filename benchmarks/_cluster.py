"""The parts of a cluster as real processes: `hourhand migrate up`, then `api`, `scheduler` and `worker`.

Each part has its defaults but for the settings that a benchmark names; it is ended by SIGTERM as an operator ends it,
or killed. Also what benchmarks ask: a database, whether a part has its lease and what became of runs; workers, how they
came by them.
"""

import contextlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from benchmarks._process import ROOT, Child, environment, free_port, is_ready
from benchmarks._system import NOOP
from hourhand.core.instant import HOUR_US
from hourhand.core.lifecycle import State
from hourhand.core.model import JobSpec, Misfire, PythonTarget, Timing
from hourhand.ids import IdSource
from hourhand.ports.store import JobDraft
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.relational.rows import STATE_CODES
from tests.servers.postgres_databases import PostgresDatabases, database_of

FUNCTIONS = "benchmarks._system"  # the module with the no-op
MODULES = ("--import", FUNCTIONS)
SUCCEEDED = STATE_CODES[State.SUCCEEDED]

_READY_S = 120.0
_STOP_S = 60.0
_PAUSE_S = 0.05
_BATCH = 1_000
_TAKEN = re.compile(r'^hourhand_queue_taken_total\{way="(message|store)"\} (\S+)$', re.MULTILINE)
_LEASED = "SELECT id FROM nodes WHERE name LIKE '%-' || $1 AND lease_until > $2"


@dataclass(slots=True)
class Part(Child):
    """A process of the cluster, and what it said."""

    name: str
    log: IO[str]

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def said(self) -> str:
        """The end of what it said."""
        self.log.seek(0)
        return self.log.read()[-2000:]

    def stop(self, patience_s: float = _STOP_S) -> None:
        """End it by SIGTERM; one that does not end in time is killed, and that is an error."""
        if not self.runs:
            return
        self.process.terminate()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise SystemExit(f"hourhand {self.name} did not stop: {self.said()}") from None


def migrate(url: str) -> None:
    """Make the schema."""
    done = subprocess.run(_command("migrate", "up"), cwd=ROOT, env=_environment(url, {}), capture_output=True)
    if done.returncode:
        raise SystemExit(f"hourhand migrate up failed: {done.stderr.decode(errors='replace')[-2000:]}")


@contextlib.contextmanager
def part(url: str, *arguments: str, settings: Mapping[str, str] | None = None) -> Iterator[Part]:
    """One of our commands on a database; does not wait until it is ready."""
    port = free_port()
    listen = ("--port", str(port)) if arguments[0] == "api" else ()
    probed = {} if listen else {"telemetry_listen": f"127.0.0.1:{port}"}
    with tempfile.TemporaryFile("w+", prefix="bench-") as log:
        process = subprocess.Popen(
            _command(*arguments, *listen),
            cwd=ROOT,
            env=_environment(url, {**probed, **(settings or {})}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        started = Part(process, port, arguments[0], log)
        try:
            yield started
        finally:
            started.stop()


@contextlib.contextmanager
def api(url: str, settings: Mapping[str, str] | None = None) -> Iterator[Part]:
    """An API that answers."""
    with part(url, "api", settings=settings) as started:
        _wait(started, lambda: is_ready(started.port))
        yield started


@contextlib.contextmanager
def nodes(
    databases: PostgresDatabases, url: str, commands: Sequence[Sequence[str]], settings: Mapping[str, str]
) -> Iterator[list[Part]]:
    """Schedulers and workers that have their leases; started side by side."""
    with contextlib.ExitStack() as stack:
        parts = [stack.enter_context(part(url, *command, settings=settings)) for command in commands]
        for one in parts:
            _wait(one, lambda one=one: node_id(databases, url, one) is not None)  # type: ignore[misc]
        yield parts


def worker(concurrency: int, *modules: str) -> tuple[str, ...]:
    """The command of a worker with this much room."""
    return ("worker", "--concurrency", str(concurrency), *(modules or MODULES))


def node_id(databases: PostgresDatabases, url: str, one: Part) -> int | None:
    """Under which id a part has a lease."""
    now_at = time.time_ns() // 1000
    found = databases.query(_LEASED, str(one.process.pid), now_at, database=database_of(url))
    return found[0][0] if found else None


def check_alive(parts: Sequence[Part]) -> None:
    """A measurement without all its parts is none."""
    for one in parts:
        if not one.runs:
            raise SystemExit(f"hourhand {one.name} ended before its time: {one.said()}")


class Taken(NamedTuple):
    """How many runs workers have claimed where there is a broker: because of messages, and by the store's own way."""

    by_message: float
    by_store: float

    def share(self, before: "Taken") -> float:
        """Of a hundred since then, those by message."""
        messages, others = self.by_message - before.by_message, self.by_store - before.by_store
        return 100 * messages / max(1.0, messages + others)


NOTHING_TAKEN = Taken(0, 0)


def taken(parts: Sequence[Part]) -> Taken:
    """What the workers among them say so far."""
    ways = {"message": 0.0, "store": 0.0}
    for one in parts:
        if one.name == "worker":
            with urllib.request.urlopen(f"http://127.0.0.1:{one.port}/metrics", timeout=_READY_S) as answer:
                for way, count in _TAKEN.findall(answer.read().decode()):
                    ways[way] += float(count)
    return Taken(ways["message"], ways["store"])


async def create_jobs(
    url: str, timings: Sequence[Timing], *, function: str = NOOP, tenant: str = "default", **fields: Any
) -> None:
    """Jobs through the store's own way in, 1,000 at a time."""
    store = await PostgresStore.open(url)
    try:
        ids = IdSource(store.clock)
        for start in range(0, len(timings), _BATCH):
            batch = [
                JobDraft(id=ids.job_id(), tenant=tenant, spec=spec_of(timing, function, **fields))
                for timing in timings[start : start + _BATCH]
            ]
            await store_all(store, batch)
    finally:
        await store.close()


async def store_all(store: PostgresStore, drafts: Sequence[JobDraft]) -> None:
    """Store drafts, of which none may be refused."""
    for answer in await store.create_jobs(drafts):
        if isinstance(answer, str):
            raise SystemExit(f"a job was refused: {answer}")


def spec_of(timing: Timing, function: str = NOOP, **fields: Any) -> JobSpec:
    """A job that calls a function and is never skipped for being late."""
    given = {"name": "bench", "misfire": Misfire(grace_us=HOUR_US), **fields}
    return JobSpec(timing=timing, target=PythonTarget(function=function), **given)


def settle(databases: PostgresDatabases, url: str) -> None:
    """Let the server end what loading left to do."""
    databases.execute("ANALYZE", database=database_of(url))
    databases.execute("CHECKPOINT")


def _wait(one: Part, question: Any) -> None:
    end_s = time.monotonic() + _READY_S
    while not question():
        if not one.runs or time.monotonic() > end_s:
            raise SystemExit(f"hourhand {one.name} did not become ready: {one.said()}")
        time.sleep(_PAUSE_S)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "hourhand", *arguments]


def _environment(url: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Ours without settings but those given."""
    given = {f"HOURHAND_{name.upper()}": value for name, value in settings.items()}
    return {**environment(), **given, "HOURHAND_STORE_URL": url}
