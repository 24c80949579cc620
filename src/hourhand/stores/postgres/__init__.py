"""The store on PostgreSQL, for clusters."""

from hourhand.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
