"""The embedded store: one SQLite file, one process, durable through kill -9."""

from hourhand.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
