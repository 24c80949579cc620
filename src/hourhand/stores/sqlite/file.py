"""Opens the store's file: one process at a time, ours, and of a version that this code knows."""

import contextlib
import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import IO

from hourhand.core.schedule import tzdata_version
from hourhand.errors import AlreadyRuns, CannotStart
from hourhand.ids import new_key
from hourhand.stores.sqlite.engine import WRITER_CACHE_KIB, connect
from hourhand.stores.sqlite.statements import migrations, statements

APPLICATION_ID = 0x48485253
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_OLDEST_SQLITE = (3, 38, 0)
_TEMPORARY = ("temp_step", "temp_time", "temp_candidate", "temp_done")


def lock(path: Path) -> IO[str]:
    """Hold the file for this process; the lock goes with the process, however it ends."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise CannotStart(f"SQLite {sqlite3.sqlite_version} is too old; 3.38 or newer is needed")
    if path.is_dir():
        raise CannotStart(f"{path} is a directory; the store is one file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        holder = (path.parent / (path.name + ".lock")).open("a+")
    except OSError as error:
        raise CannotStart(f"the store {path} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder.seek(0)
        pid = holder.read(20).strip()
        holder.close()
        by = f" (process {pid})" if pid else ""
        raise AlreadyRuns(
            f"another hourhand{by} already runs on {path}; stop it, or give this one its own file with --data"
        ) from error
    try:
        holder.truncate(0)
        holder.write(f"{os.getpid()}\n")
        holder.flush()
    except OSError as error:
        with contextlib.suppress(OSError):  # it tries to write once more
            holder.close()
        raise CannotStart(f"the store {path} cannot be written: {error.strerror}") from error
    return holder


def open_writer(path: Path | None, segments: int) -> sqlite3.Connection:
    """The writing connection to a file, checked and brought up to date; None opens a store in memory."""
    name = ":memory:" if path is None else str(path)
    connection = None
    try:
        if path is not None and path.exists():
            look(path)
        connection = connect(name, WRITER_CACHE_KIB)
        _check_owner(connection, name)  # again, for what was not yet in the file itself
        _migrate(connection)
        _check_meta(connection, name, segments)
        for statement in _TEMPORARY:
            connection.execute(statements()[statement])
        connection.execute(statements()["end_all_nodes"])
        connection.execute(statements()["let_go_all_webhooks"])
        for segment in range(segments):
            connection.execute(statements()["add_segment"], (segment,))
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise CannotStart(f"the store {name} cannot be used: {error}") from error
        raise
    return connection


def report_key(connection: sqlite3.Connection) -> bytes:
    """The key that tokens for reports are made with."""
    return bytes.fromhex(connection.execute("SELECT value FROM meta WHERE key = 'report_key'").fetchone()[0])


def look(path: Path) -> None:
    """Check a file without any trace of it: no lock, no journal, no side files.

    Of a file that is ours only the header counts: the rest may be half moved from its log to the file.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise CannotStart(f"the store {path} cannot be opened: {error.strerror}") from error
    if header and not header.startswith(_MAGIC):
        raise CannotStart(f"the store {path} cannot be used: it is not a database; it was not touched")
    if int.from_bytes(header[68:72], "big") == APPLICATION_ID:
        _check_version(int.from_bytes(header[60:64], "big"), str(path))
    elif header:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as connection:
            _check_owner(connection, str(path))


def _check_owner(connection: sqlite3.Connection, path: str) -> None:
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application_id != APPLICATION_ID and (tables or version or application_id):
        raise CannotStart(
            f"{path} is a database of something else; it was not touched. Give another file with --data"
        )
    _check_version(version, path)


def _check_version(version: int, path: str) -> None:
    known = len(migrations())
    if version > known:
        raise CannotStart(
            f"{path} was written by a newer hourhand (schema {version}, this one knows {known}); "
            "it was not touched. Upgrade hourhand, or give another file with --data"
        )


def _migrate(connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    for number, script in enumerate(migrations()[version:], version + 1):
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"
        connection.executescript(f"BEGIN IMMEDIATE; {script}; {marks} COMMIT;")


def _check_meta(connection: sqlite3.Connection, path: str, segments: int) -> None:
    connection.execute(
        "INSERT INTO meta (key, value) VALUES ('segments', ?) ON CONFLICT DO NOTHING", (str(segments),)
    )
    found = connection.execute("SELECT value FROM meta WHERE key = 'segments'").fetchone()[0]
    if int(found) != segments:
        raise CannotStart(
            f"{path} was made with {found} segments, the settings say {segments}; keep them alike"
        )
    connection.execute(
        "INSERT INTO meta (key, value) VALUES ('report_key', ?) ON CONFLICT DO NOTHING", (new_key().hex(),)
    )
    connection.execute(
        "INSERT INTO meta (key, value) VALUES ('tzdata', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (tzdata_version(),),
    )
