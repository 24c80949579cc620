"""The store on PostgreSQL, for clusters. Its driver is an extra of the installation."""

from hourhand.errors import CannotStart

try:
    import asyncpg  # noqa: F401 - only to say in words that it is missing
except ModuleNotFoundError as error:
    raise CannotStart(
        "a postgres:// store needs a driver that is not installed: pip install 'hourhand[postgres]'"
    ) from error

from hourhand.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
