"""Files that `up` must refuse: in words, with exit 1, and without touching them."""

import ctypes
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.process import SinkProcess, Up, wait_for

_CAP_DAC_OVERRIDE = 1
_PR_CAPBSET_DROP = 24


def refused(up: Up, before: Callable[[], None] | None = None) -> str:
    """What a command says that ends by itself with 1."""
    up.spawn(before)
    assert up.wait() == 1, up.output()
    text = up.output()
    assert "Traceback" not in text
    return text


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def obey_permissions() -> None:
    """Root may write everywhere; a child without this capability may not."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)


@pytest.mark.parametrize("link", [False, True])
def test_a_second_one_on_the_same_file_is_refused_and_the_first_goes_on(
    make_up: Callable[..., Up], sink: SinkProcess, tmp_path: Path, link: bool
) -> None:
    first = make_up().start()
    job = first.api.create(every="1s", callback_url=sink.url("ok"))
    assert first.process is not None
    other = tmp_path / "other"
    other.mkdir()
    second = make_up(other)
    if link:  # by another name
        second.data.symlink_to(first.data)
    else:
        second.arguments[second.arguments.index(str(second.data))] = str(first.data)
    text = refused(second)
    assert f"another hourhand (process {first.process.pid}) already runs on {first.data}" in text
    assert "--data" in text
    seen = len(sink.log.of(job))
    wait_for("more calls", lambda: len(sink.log.of(job)) > seen)
    assert first.stop() == 0


def test_a_file_of_something_else_is_refused(up: Up) -> None:
    with sqlite3.connect(up.data) as connection:
        connection.execute("CREATE TABLE precious (value TEXT)")
        connection.execute("INSERT INTO precious VALUES ('data')")
    connection.close()
    before = digest(up.data)
    text = refused(up)
    assert f"{up.data} is a database of something else" in text
    assert digest(up.data) == before


@pytest.mark.parametrize("content", ["dear diary\n", "x" * 100_000, "SQLite format 3\0 but not really"])
def test_a_file_that_is_no_database_is_refused(up: Up, content: str) -> None:
    up.data.write_text(content)
    text = refused(up)
    assert str(up.data) in text
    assert "not a database" in text or "malformed" in text
    assert up.data.read_text() == content


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that a command has left behind, with one job in it."""
    up = Up(tmp_path_factory.mktemp("written")).start()
    up.api.create(cron="0 9 * * *", callback_url="https://example.com/", key="daily")
    assert up.stop() == 0
    return up.data


def test_a_file_of_a_newer_version_is_refused(up: Up, written: Path) -> None:
    shutil.copy(written, up.data)
    with sqlite3.connect(up.data) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = digest(up.data)
    text = refused(up)
    assert "newer hourhand (schema 999" in text
    assert "Upgrade" in text
    assert digest(up.data) == before
    with sqlite3.connect(up.data) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    up.start()
    up.api.expect(200, "GET", "/jobs/resolve?ref=daily")


def test_an_unwritable_folder_is_refused(up: Up, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    up.arguments[up.arguments.index(str(up.data))] = str(folder / "hourhand.db")
    text = refused(up, obey_permissions)
    assert f"the store {folder / 'hourhand.db'} cannot be opened: Permission denied" in text
    assert list(folder.iterdir()) == []


def test_a_file_that_cannot_be_written_is_refused(up: Up, written: Path) -> None:
    shutil.copy(written, up.data)
    up.data.chmod(0o400)
    before = digest(up.data)
    text = refused(up, obey_permissions)
    assert str(up.data) in text
    assert "readonly" in text or "read-only" in text or "cannot be written" in text
    assert digest(up.data) == before


def test_a_folder_in_the_place_of_the_file_is_refused(up: Up) -> None:
    up.data.mkdir()
    assert f"{up.data} is a directory" in refused(up)


def test_a_damaged_file_is_refused_in_words(up: Up, written: Path) -> None:
    shutil.copy(written, up.data)
    size = up.data.stat().st_size
    with up.data.open("r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * (size - 100))
    text = refused(up)
    assert str(up.data) in text
    assert "malformed" in text
