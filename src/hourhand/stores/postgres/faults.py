"""What the driver and the server say when something is wrong, in our words.

People meet these words in answers and logs, so they hold no address, no value of a row and no secret; the
driver's own error stays behind them as the cause.
"""

import asyncpg

from hourhand.errors import CannotStart, HourhandError, StorageFull, Unavailable

CONNECTION_FAULTS = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


def translated(error: BaseException) -> HourhandError:
    """What to say when a database is met for the first time: a wrong address or login is nothing to wait for."""
    if isinstance(error, _REFUSED):
        return CannotStart(f"the database refuses the connection: {_said(error)}")
    return unavailable(error)


def unavailable(error: BaseException) -> Unavailable:
    """What to say of a database that has worked before, and will again."""
    match error:
        case asyncpg.DiskFullError():
            return StorageFull("the disk of the database is full; nothing was written")
        case asyncpg.ReadOnlySQLTransactionError():
            return Unavailable("the database is read-only (a standby, or after a failover)")
        case asyncpg.TooManyConnectionsError():
            return Unavailable("the database has no connection left")
        case asyncpg.LockNotAvailableError():
            return Unavailable("the database took too long: somebody else holds the rows")
        case asyncpg.QueryCanceledError():
            return Unavailable("the database took too long: the statement was cancelled")
        case asyncpg.InvalidAuthorizationSpecificationError():
            return Unavailable("the database refuses the login")
        case asyncpg.InvalidCatalogNameError():
            return Unavailable("the database is gone: the server has none of this name")
        case asyncpg.InvalidSQLStatementNameError() | asyncpg.DuplicatePreparedStatementError():
            return Unavailable(
                "a pooler shares the connection with others: add ?pooler=transaction to the database's URL"
            )
        case TimeoutError():
            return Unavailable("the database does not answer in time")
        case asyncpg.PostgresConnectionError() | asyncpg.InterfaceError() | asyncpg.InternalClientError():
            return Unavailable("the connection to the database was lost")
        case OSError():
            return Unavailable(f"the database cannot be reached ({type(error).__name__})")
        case _:
            return Unavailable(f"the database cannot do that right now: {_said(error)}")


def is_about_values(error: BaseException) -> bool:
    """Whether a value is one that no column can hold, as the driver or the server sees it."""
    return isinstance(error, asyncpg.DataError)


def must_reconnect(error: BaseException) -> bool:
    """Whether another connection may find a server that can do better."""
    kinds = (
        asyncpg.ReadOnlySQLTransactionError,
        asyncpg.OperatorInterventionError,
        asyncpg.InvalidSQLStatementNameError,
        asyncpg.InvalidCachedStatementError,
    )
    return isinstance(error, kinds) and not isinstance(error, asyncpg.QueryCanceledError)


def _said(error: BaseException) -> str:
    """The server's message without its details, which name values of rows."""
    return str(error.args[0]) if error.args else type(error).__name__
