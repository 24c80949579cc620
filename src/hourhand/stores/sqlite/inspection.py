"""Looks at a store's file from outside: beside the process that works on it, or while none does. Changes nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from hourhand.core.model import DEFAULT_POOL
from hourhand.errors import CannotStart
from hourhand.ports.inspection import MOST_JOBS, CalledFunction, StoreFacts
from hourhand.stores.relational.nodes import node_of
from hourhand.stores.sqlite.file import look
from hourhand.stores.sqlite.statements import migrations

_BUSY_S = 5.0
_CALLED = """
SELECT DISTINCT json_extract(spec, '$.target.function'), coalesce(json_extract(spec, '$.pool'), :pool)
FROM (SELECT spec FROM jobs WHERE paused = 0 AND until > :now AND (once_at IS NULL OR once_at > :now) LIMIT :most)
WHERE json_extract(spec, '$.target.type') = 'python'
"""


def schema_version(path: Path) -> tuple[int, int]:
    """The schema of a file and the newest that this code knows; CannotStart where it is not ours or newer."""
    look(path)
    with closing(_opened(path)) as connection:
        try:
            return connection.execute("PRAGMA user_version").fetchone()[0], len(migrations())
        except sqlite3.Error as error:
            raise CannotStart(f"the store {path} cannot be read: {error}") from None


def facts_of(path: Path, now_at: int) -> StoreFacts:
    """What a file of the newest schema says; CannotStart where it cannot be read."""
    with closing(_opened(path)) as connection:
        try:
            tzdata = connection.execute("SELECT value FROM meta WHERE key = 'tzdata'").fetchone()
            nodes = connection.execute(
                "SELECT id, kind, name, started_at, lease_until, serves FROM nodes"
            ).fetchall()
            given = {"pool": DEFAULT_POOL, "now": now_at, "most": MOST_JOBS}
            called = connection.execute(_CALLED, given).fetchall()
        except sqlite3.Error as error:
            raise CannotStart(f"the store {path} cannot be read: {error}") from None
    return StoreFacts(
        now_at=now_at,
        tzdata=tzdata[0] if tzdata else None,
        nodes=tuple(node_of(row) for row in nodes),
        called=tuple(sorted(CalledFunction(function=row[0], pool=row[1]) for row in called)),
    )


def _opened(path: Path) -> sqlite3.Connection:
    """Read only. A file without a log beside it is nobody's at the moment, so not even a lock is needed."""
    alone = "" if path.with_name(path.name + "-wal").exists() else "&immutable=1"
    try:
        return sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro{alone}", uri=True, timeout=_BUSY_S)
    except sqlite3.Error as error:
        raise CannotStart(f"the store {path} cannot be opened: {error}") from None
