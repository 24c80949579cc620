"""The store's file: one process at a time, ours only, of a version we know; and never touched when it is not."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hourhand.clock import ManualClock
from hourhand.errors import CannotStart
from hourhand.ports.reading import JobQuery
from hourhand.stores.sqlite import SqliteStore
from hourhand.stores.sqlite.file import APPLICATION_ID
from hourhand.stores.sqlite.statements import migrations
from tests.contract.builders import draft

ROOT = Path(__file__).resolve().parents[2]
_OPENING = (
    "import asyncio, os, sys; from pathlib import Path",
    "from hourhand.clock import SystemClock; from hourhand.stores.sqlite import SqliteStore",
    "from tests.contract.builders import draft",
    "async def main():",
    "    store = SqliteStore.open(Path(sys.argv[1]), clock=SystemClock())",
)


def open_store(path: Path, segments: int = 64) -> SqliteStore:
    return SqliteStore.open(path, clock=ManualClock(), segments=segments)


async def in_a_process(path: Path, *lines: str) -> int:
    """Do something with a store on this file in a process of its own; its exit code."""
    program = "\n".join((*_OPENING, *(f"    {line}" for line in lines), "asyncio.run(main())"))
    command = [sys.executable, "-c", program, str(path)]
    return (await asyncio.to_thread(subprocess.run, command, cwd=ROOT, timeout=60)).returncode


async def test_a_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "store.db"
    store = open_store(path)
    await store.create_jobs([draft()])
    await store.close()
    found = sqlite3.connect(path)
    assert found.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert found.execute("PRAGMA user_version").fetchone() == (len(migrations()),)
    assert found.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found.close()


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    await open_store(path).close()
    assert path.stat().st_size > 0


async def test_a_second_process_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(path)
    with pytest.raises(
        CannotStart, match=f"already runs .*process {os.getpid()}|process {os.getpid()}.*already"
    ):
        open_store(path)
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from hourhand.clock import SystemClock; from hourhand.stores.sqlite import SqliteStore\n"
        "async def main(): SqliteStore.open(Path(sys.argv[1]), clock=SystemClock())\n"
        "asyncio.run(main())"
    )
    other = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60
    )
    assert other.returncode != 0
    assert "AlreadyRuns" in other.stderr
    assert str(os.getpid()) in other.stderr
    await store.ping()
    await store.close()
    await open_store(path).close()


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
        connection.execute("INSERT INTO theirs VALUES (1)")
    connection.close()


def _foreign_wal(path: Path) -> None:
    """Somebody else's database with changes that are not yet in its file."""
    _foreign(path)
    code = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA journal_mode = WAL')\n"
        "c.execute('INSERT INTO theirs VALUES (2)')\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    assert Path(f"{path}-wal").stat().st_size > 0


def _marked(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 77")
    connection.close()


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
        connection.execute("CREATE TABLE jobs (of_the_future)")
    connection.close()


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all, only some text " * 100)


def _short_garbage(path: Path) -> None:
    path.write_bytes(b"hi")


def _torn(path: Path) -> None:
    _foreign(path)
    path.write_bytes(path.read_bytes()[:5_000])


BAD_FILES: dict[Callable[[Path], None], str] = {
    _foreign: "something else",
    _foreign_wal: "something else",
    _marked: "something else",
    _newer: "newer hourhand",
    _garbage: "cannot be used",
    _short_garbage: "cannot be used",
    _torn: "something else|cannot be used",
}


@pytest.mark.parametrize("make", BAD_FILES)
async def test_a_file_that_is_not_ours_is_refused_and_not_touched(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "theirs.db"
    make(path)
    before = _everything(tmp_path)
    with pytest.raises(CannotStart, match=BAD_FILES[make]) as refusal:
        open_store(path)
    assert str(path) in str(refusal.value)
    assert _everything(tmp_path) == before


async def test_a_file_of_ours_that_was_being_written_when_all_died_is_opened(tmp_path: Path) -> None:
    """Its header is ahead of its size: the pages behind it are still in the log."""
    path = tmp_path / "store.db"
    ended = await in_a_process(
        path,
        "await store.create_jobs([draft() for _ in range(3_000)])",
        "store._engine._writer.execute('PRAGMA wal_checkpoint(PASSIVE)')",
        "os._exit(0)",
    )
    assert ended == 0
    _tear(path)
    store = open_store(path)
    page = await store.list_jobs("default", JobQuery(limit=5_000))
    assert len(page.jobs) == 3_000
    await store.close()


async def test_a_refused_file_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    _garbage(path)
    for _ in range(2):
        with pytest.raises(CannotStart, match="cannot be used"):
            open_store(path)
    path.unlink()
    await open_store(path).close()


async def test_a_place_that_cannot_hold_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="directory"):
        open_store(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotStart, match="cannot be opened"):
        open_store(tmp_path / "file" / "store.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_what_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await open_store(path).close()
    path.chmod(0o444)
    with pytest.raises(CannotStart):
        open_store(path)
    os.chmod(tmp_path, 0o555)
    try:
        with pytest.raises(CannotStart):
            open_store(tmp_path / "other.db")
    finally:
        os.chmod(tmp_path, 0o755)


async def test_another_number_of_segments_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await open_store(path, segments=8).close()
    with pytest.raises(CannotStart, match=r"8 segments.*64"):
        open_store(path)
    await open_store(path, segments=8).close()


async def test_what_was_answered_survives_a_process_that_dies_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    died = await in_a_process(
        path,
        "for _ in range(20):",
        "    await store.create_jobs([draft()])",
        "asyncio.ensure_future(store.create_jobs([draft() for _ in range(500)]))",
        "await asyncio.sleep(0)",
        "os.kill(os.getpid(), 9)",
    )
    assert died == -9
    store = open_store(path)
    jobs = (await store.list_jobs("default", JobQuery(limit=1_000))).jobs
    assert len(jobs) in (20, 520)  # the last batch was not answered: it happened fully or not at all
    await store.close()


def _everything(folder: Path) -> dict[str, bytes]:
    """All files but the lock beside the store, byte by byte."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".lock"}


def _tear(path: Path) -> None:
    """Undo half of what was moved from the log to the file, and the memory that it was."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 4096 // 2 * 4096)
    assert Path(f"{path}-wal").stat().st_size > path.stat().st_size
    Path(f"{path}-shm").unlink()
