"""The engine under the SQLite store: operations share commits but never one another's fate."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from hourhand.clock import ManualClock
from hourhand.core.lifecycle import State
from hourhand.core.model import Job
from hourhand.errors import Conflict, StorageFull, Unavailable
from hourhand.ports.reading import JobQuery
from hourhand.ports.store import Store
from hourhand.stores.relational.tx import Operation
from hourhand.stores.sqlite import SqliteStore
from hourhand.stores.sqlite.engine import SqliteTx, execute_group
from hourhand.stores.sqlite.file import open_writer
from tests.contract.builders import draft, every, spec
from tests.contract.checker import assert_sound
from tests.contract.harness import SqliteFileHarness
from tests.contract.scene import Scene

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[SqliteFileHarness]:
    """A store on a file."""
    harness = SqliteFileHarness(tmp_path)
    yield harness
    await harness.close()


def put(key: str) -> Operation[str]:
    async def operation(tx: SqliteTx) -> str:
        tx._connection.execute("INSERT INTO meta (key, value) VALUES (?, '')", (key,))
        tx.hints.add(key)
        return key

    return operation


def keys(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT key FROM meta WHERE key NOT IN ('segments', 'tzdata', 'report_key')")
    return {row[0] for row in rows}


# --- groups


def test_an_operation_that_fails_undoes_itself_and_no_neighbour(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "store.db", 64)

    async def fails_halfway(tx: SqliteTx) -> None:
        await put("half")(tx)
        raise Conflict("no")

    async def breaks_a_key(tx: SqliteTx) -> None:
        await put("broken")(tx)
        await put("first")(tx)

    async def breaks_halfway(tx: SqliteTx) -> None:
        await put("half, too")(tx)
        raise ZeroDivisionError

    operations = [put("first"), fails_halfway, put("second"), breaks_a_key, breaks_halfway, put("third")]
    results, hints = execute_group(connection, ManualClock(), [(one, None) for one in operations])
    assert [type(result) for result in results] == [str, Conflict, str, Unavailable, ZeroDivisionError, str]
    assert keys(connection) == hints == {"first", "second", "third"}
    assert not connection.in_transaction
    connection.close()


def test_a_commit_that_fails_fails_them_all_and_leaves_nothing(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "store.db", 64)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE child (id REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")

    async def breaks_the_commit(tx: SqliteTx) -> None:
        tx._connection.execute("INSERT INTO child VALUES (1)")

    results, hints = execute_group(
        connection, ManualClock(), [(put("first"), None), (breaks_the_commit, None)]
    )
    assert [type(result) for result in results] == [Unavailable, Unavailable]
    assert hints == keys(connection) == set()
    results, _ = execute_group(connection, ManualClock(), [(put("second"), None)])
    assert results == ["second"]
    connection.close()


async def test_operations_that_arrive_together_share_commits(harness: SqliteFileHarness) -> None:
    commits = 0

    def traced(statement: str) -> None:
        nonlocal commits
        commits += statement == "COMMIT"

    harness.store._engine._writer.set_trace_callback(traced)  # type: ignore[attr-defined]
    answers = await asyncio.gather(*(harness.store.create_jobs([draft()]) for _ in range(300)))
    assert all(isinstance(answer[0], Job) for answer in answers)
    assert commits < 100
    page = await harness.store.list_jobs("default", JobQuery(limit=1_000))
    assert len(page.jobs) == 300


async def test_who_stops_waiting_undoes_nothing(harness: SqliteFileHarness) -> None:
    one = draft()
    task = asyncio.create_task(harness.store.create_jobs([one]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await harness.store.ping()
    assert await harness.store.get_job("default", one.id) is not None


async def test_closing_finishes_what_was_asked_for(harness: SqliteFileHarness) -> None:
    drafts = [draft() for _ in range(50)]
    tasks = [asyncio.create_task(harness.store.create_jobs([one])) for one in drafts]
    await asyncio.sleep(0)
    await harness.store.close()
    answers = await asyncio.gather(*tasks)
    assert all(isinstance(answer[0], Job) for answer in answers)
    await harness.reopen()
    assert await harness.store.get_job("default", drafts[-1].id) is not None


async def test_an_answer_means_that_others_can_read_it(harness: SqliteFileHarness) -> None:
    for _ in range(50):
        one = draft()
        await harness.store.create_jobs([one])
        assert await harness.store.get_job("default", one.id) is not None


async def test_no_thread_is_left_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    harness = SqliteFileHarness(tmp_path)
    await harness.store.create_jobs([draft()])
    await asyncio.gather(*(harness.store.nodes() for _ in range(10)))
    await harness.close()
    left = {thread.name for thread in set(threading.enumerate()) - before if thread.is_alive()}
    assert not {name for name in left if name.startswith("hourhand")}


# --- a full disk


def limit_pages(store: SqliteStore, pages: int) -> None:
    store._engine._writer.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]


async def fill(store: Store, free: list[int]) -> None:
    """Create jobs with payloads until there is no space."""
    payload = msgspec.Raw(msgspec.json.encode("x" * 20_000))
    for _ in range(1_000):
        [made] = await store.create_jobs([draft(spec(every(60), payload=payload))])
        assert isinstance(made, Job)
        free.append(made.id)


async def test_a_full_disk_is_told_writes_nothing_half_and_ends(harness: SqliteFileHarness) -> None:
    scene = Scene(harness)
    job = await scene.create(spec(every(1)))
    await scene.plan()
    node = await scene.worker()
    pages = harness.store._engine._writer.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[attr-defined]
    limit_pages(harness.store, pages + 40)
    made: list[int] = []
    with pytest.raises(StorageFull) as full:
        await fill(scene.store, made)
    assert full.value.retryable
    found = await scene.store.list_jobs("default", JobQuery(limit=1_000))
    assert sorted(one.id for one in found.jobs) == sorted([*made, job.id])
    assert await scene.get(job) == job
    limit_pages(harness.store, 1_000_000)
    await scene.create()
    scene.pass_time(1)
    [run] = [one for one in await scene.take(node, lead_us=0) if one.job_id == job.id]
    await scene.finish(run)
    assert await scene.state(job, run.scheduled_at) is State.SUCCEEDED
    assert_sound(await scene.tables())
    assert harness.store._engine._writer.execute("PRAGMA integrity_check").fetchone() == ("ok",)  # type: ignore[attr-defined]


async def test_with_a_full_disk_what_needs_no_space_goes_on(harness: SqliteFileHarness) -> None:
    """Of operations in one group some fail and some do not."""
    scene = Scene(harness)
    job = await scene.create()
    pages = harness.store._engine._writer.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[attr-defined]
    limit_pages(harness.store, pages + 1)
    large = spec(payload=msgspec.Raw(msgspec.json.encode("x" * 200_000)))
    answers = await asyncio.gather(
        scene.store.ping(),
        scene.store.create_jobs([draft(large)]),
        scene.store.held_runs(1),
        return_exceptions=True,
    )
    assert isinstance(answers[1], StorageFull)
    assert await scene.get(job) == job
    limit_pages(harness.store, 1_000_000)
    await scene.create(large)


async def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A limit on the size of files, as the operating system sees it, in a process of its own."""
    code = """
import asyncio, resource, signal, sys
from pathlib import Path
import msgspec
from hourhand.clock import ManualClock
from hourhand.errors import Unavailable
from hourhand.ports.reading import JobQuery
from hourhand.stores.sqlite import SqliteStore
from tests.contract.builders import draft, spec

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = SqliteStore.open(Path(sys.argv[1]), clock=ManualClock())
    await store.ping()
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
    payload = msgspec.Raw(msgspec.json.encode("x" * 100_000))
    made = 0
    try:
        while made < 200:
            await store.create_jobs([draft(spec(payload=payload))])
            made += 1
    except Unavailable as error:
        print(type(error).__name__)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    found = await store.list_jobs("default", JobQuery(limit=1000))
    assert len(found.jobs) == made, (len(found.jobs), made)
    await store.create_jobs([draft(spec(payload=payload))])
    await store.close()
    print(made)

asyncio.run(main())
"""
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, str(tmp_path / "store.db")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ended.returncode == 0, ended.stderr
    kind, made = ended.stdout.split()
    assert kind in ("StorageFull", "Unavailable")
    assert 0 < int(made) < 200
