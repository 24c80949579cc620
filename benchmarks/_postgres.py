"""PostgreSQL for benchmarks: the server that the environment names, or one of our own that loses nothing.

Ours has fsync and synchronous_commit on and otherwise PostgreSQL's defaults, but for memory and the room
between checkpoints, which every guide tells to set; what differs is printed beside the figures. With `keep`
its data stay for the next run, so that ten million jobs are loaded once.

    with postgres(keep=options.keep) as bench:
        ... bench.url ...
"""

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.servers.postgres import PostgresServer
from tests.servers.postgres_databases import PostgresDatabases, database_of

URL_VARIABLE = "HOURHAND_BENCH_POSTGRES_URL"

_DATABASE = "hourhand_bench"
_LARGE_MACHINE_BYTES = 8 * 10**9
_LARGE_BUFFERS_MB = 2048
# Where the server listens and how it logs says nothing about speed.
_BESIDE_THE_POINT = (
    "application_name",
    "client_encoding",
    "config_file",
    "data_directory",
    "DateStyle",
    "default_text_search_config",
    "dynamic_shared_memory_type",
    "hba_file",
    "ident_file",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "listen_addresses",
    "log_line_prefix",
    "log_timezone",
    "port",
    "TimeZone",
    "unix_socket_directories",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPostgres:
    """A database to measure on."""

    url: str
    databases: PostgresDatabases  # makes further ones on the same server, for shards and raw SQL
    server: PostgresServer | None  # None when the environment named it
    fresh: bool  # false when an earlier run left its data in it
    differing: Sequence[str]  # settings that are not PostgreSQL's defaults, as `name = value`


def add_keep_option(parser: argparse.ArgumentParser) -> None:
    """The option `--keep DIR`."""
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the server's data here for the next run"
    )


@contextlib.contextmanager
def postgres(*, keep: Path | None = None, max_connections: int = 300) -> Iterator[BenchPostgres]:
    """A database on a durable server, with its settings printed; our own server is stopped at the end."""
    given = os.environ.get(URL_VARIABLE)
    if given:
        if keep is not None:
            raise SystemExit(f"--keep is for a server of our own, and {URL_VARIABLE} names another")
        yield _announced(given, PostgresDatabases(given), server=None, fresh=False)
        return
    server = PostgresServer(
        durable=True,
        shared_buffers=f"{shared_buffers_mb(_memory_bytes())}MB",
        max_connections=max_connections,
        max_wal_size="8GB",
        settings={"checkpoint_timeout": "15min"},
        directory=keep,
    )
    with server:
        fresh = not server.has_database(_DATABASE)
        url = server.create_database(_DATABASE) if fresh else server.url_of(_DATABASE)
        yield _announced(url, server, server=server, fresh=fresh)


def shared_buffers_mb(memory_bytes: int) -> int:
    """2 GB, or a quarter of a machine that has less than 8 GB."""
    if memory_bytes >= _LARGE_MACHINE_BYTES:
        return _LARGE_BUFFERS_MB
    return memory_bytes // 4 // 2**20


def _announced(
    url: str, databases: PostgresDatabases, *, server: PostgresServer | None, fresh: bool
) -> BenchPostgres:
    rows = databases.query(
        "SELECT name, current_setting(name) AS value FROM pg_settings "
        "WHERE source NOT IN ('default', 'override', 'client', 'session') AND name <> ALL($1) "
        "AND setting IS DISTINCT FROM boot_val ORDER BY name",
        list(_BESIDE_THE_POINT),
        database=database_of(url),
    )
    differing = [f"{row['name']} = {row['value']}" for row in rows]
    version = databases.query("SHOW server_version")[0][0].split()[0]
    durable = databases.query(
        "SELECT current_setting('fsync') || ' / ' || current_setting('synchronous_commit')"
    )[0][0]
    print(
        f"PostgreSQL {version}, fsync / synchronous_commit {durable}, other than default: {', '.join(differing)}"
    )
    return BenchPostgres(url=url, databases=databases, server=server, fresh=fresh, differing=differing)


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
