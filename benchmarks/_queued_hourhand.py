"""Our side of `queued`: the real commands on a database, from `migrate up` to worker processes that empty the queue.

One-time no-op functions are created through the API in bulk, due at once, while no worker runs. Then
`hourhand worker` is started. As with the others the time before a worker is ready for work is not counted: it
begins when the first worker has its lease, and ends when no run is left in any hot table.
"""

import asyncio
import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import asyncpg

from benchmarks._cluster import MODULES, SUCCEEDED, api, migrate, part
from benchmarks._peer_programs import settle
from benchmarks._system import NOOP
from tests.servers.postgres_databases import PostgresDatabases, run_apart

PROCESSES = 2
CONCURRENCY = 4_000  # to a process
CREATE_BATCH = 1_000
CREATORS = 3

_READY_S = 60.0
_WORK_S = 1800.0
_PAUSE_S = 0.005
_BEGUN = "SELECT EXISTS (SELECT FROM nodes WHERE kind = 'worker')"
_LEFT = "SELECT EXISTS (SELECT FROM planned) OR EXISTS (SELECT FROM running)"
_OUTCOMES = "SELECT count(*), count(*) FILTER (WHERE state = $1) FROM history"


def measure_hourhand(url: str, jobs: int) -> float:
    """Jobs a second in an empty database; whoever calls drops it."""
    migrate(url)
    with api(url) as answering:
        _create(answering.port, jobs)
    databases = PostgresDatabases(url)
    settle(databases, url)
    worker = ("worker", "--processes", str(PROCESSES), "--concurrency", str(CONCURRENCY))
    with part(url, *worker, *MODULES) as working:
        try:
            seconds = run_apart(_time(url))
        except TimeoutError as error:
            raise SystemExit(f"hourhand worker: {error}: {working.said()}") from error
    attempts, succeeded = databases.query(_OUTCOMES, SUCCEEDED, database=url)[0]
    if not attempts == succeeded == jobs:
        raise SystemExit(f"hourhand: {jobs} jobs had {attempts} attempts, of which {succeeded} succeeded")
    return jobs / seconds


def _create(port: int, jobs: int) -> None:
    """Through the API, so that the jobs are what users would have."""
    job = {
        "name": "queued",
        "at": datetime.now(UTC).isoformat(),
        "target": {"type": "python", "function": NOOP},
        "misfire": {"grace": "1h"},
    }
    counts = [min(CREATE_BATCH, jobs - done) for done in range(0, jobs, CREATE_BATCH)]
    with ThreadPoolExecutor(CREATORS) as callers:
        created = sum(callers.map(lambda count: _post(port, [job] * count), counts))
    if created != jobs:
        raise SystemExit(f"hourhand created {created} of {jobs} jobs")


def _post(port: int, batch: list[dict[str, Any]]) -> int:
    """How many of these the API created."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/jobs/bulk",
        data=json.dumps(batch).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_READY_S) as answer:
        created: int = json.load(answer)["created"]
    return created


async def _time(url: str) -> float:
    """Seconds from the first worker's lease until no run is left."""
    connection = await asyncpg.connect(url)
    try:
        await _until(connection, _BEGUN, wanted=True, timeout_s=_READY_S)
        began_s = time.perf_counter()
        await _until(connection, _LEFT, wanted=False, timeout_s=_WORK_S)
        return time.perf_counter() - began_s
    finally:
        await connection.close()


async def _until(connection: Any, question: str, *, wanted: bool, timeout_s: float) -> None:
    asked = await connection.prepare(question)
    end_s = time.monotonic() + timeout_s
    while await asked.fetchval() is not wanted:
        if time.monotonic() > end_s:
            raise TimeoutError("not done in time")
        await asyncio.sleep(_PAUSE_S)
