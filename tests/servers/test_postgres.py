"""Our PostgreSQL server does what tests of failures will ask of it, and databases are fresh and quick."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from tests.servers import machine, postgres, postgres_binaries
from tests.servers.machine import Unavailable, is_running, wait_until
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_databases import PostgresDatabases, database_of

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 20.0
SILENCE_S = 0.3

StartPostgres = Callable[..., PostgresServer]


async def one(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url, timeout=ANSWER_S)
    try:
        return await connection.fetchval(statement, timeout=ANSWER_S)
    finally:
        await connection.close()


@pytest.mark.parametrize("again", [1, 2])
async def test_each_test_has_an_empty_database_of_its_own(postgres_url: str, again: int) -> None:
    assert await one(postgres_url, "SELECT count(*) FROM pg_class WHERE relname = 'mine'") == 0
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("CREATE TABLE mine (id int)")
    # Left open on purpose: the database is dropped all the same.
    connection.terminate()


async def test_a_template_is_cloned_with_its_rows(
    postgres_server: PostgresDatabases, postgres_url: str
) -> None:
    postgres_server.execute("CREATE TABLE seed AS SELECT generate_series(1, 10) AS id", database=postgres_url)
    clone = postgres_server.create_database(template=postgres_url)
    try:
        assert await one(clone, "SELECT sum(id) FROM seed") == 55
    finally:
        postgres_server.drop_database(clone)
    assert not postgres_server.has_database(database_of(clone))


def test_names_that_would_need_quotes_are_refused(postgres_server: PostgresDatabases) -> None:
    with pytest.raises(ValueError, match="a database's name"):
        postgres_server.create_database('x"; DROP DATABASE postgres; --')


@pytest.mark.parametrize(("durable", "expected"), [(True, "on"), (False, "off")])
async def test_durability_is_what_was_asked_for(
    own_postgres: StartPostgres, durable: bool, expected: str
) -> None:
    server = own_postgres(durable=durable, max_connections=17, settings={"work_mem": "5MB"})
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        assert await one(server.admin_url, f"SHOW {name}") == expected
    assert await one(server.admin_url, "SHOW max_connections") == "17"
    assert await one(server.admin_url, "SHOW work_mem") == "5MB"


async def test_committed_rows_survive_restarts_and_a_kill(own_postgres: StartPostgres) -> None:
    server = own_postgres(durable=True)
    url = server.create_database("kept")
    server.execute("CREATE TABLE t (how text)", database=url)

    def kill_and_start() -> None:
        server.kill()
        server.start()

    ends: dict[str, Callable[[], None]] = {
        "fast": lambda: server.restart("fast"),
        "immediate": lambda: server.restart("immediate"),
        "killed": kill_and_start,
    }
    for how, end in ends.items():
        server.execute(f"INSERT INTO t VALUES ('{how}')", database=url)
        connection = await asyncpg.connect(url)
        before = server.pid
        end()
        assert server.pid not in (None, before)
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await connection.fetchval("SELECT 1", timeout=ANSWER_S)
        connection.terminate()
    assert [row["how"] for row in server.query("SELECT how FROM t", database=url)] == list(ends)


async def test_a_paused_server_is_silent_and_goes_on_where_it_was(own_postgres: StartPostgres) -> None:
    server = own_postgres()
    connection = await asyncpg.connect(server.admin_url)
    server.pause()
    answer = asyncio.create_task(connection.fetchval("SELECT 42"))
    done, _ = await asyncio.wait([answer], timeout=SILENCE_S)
    assert not done
    server.resume()
    assert await asyncio.wait_for(answer, ANSWER_S) == 42
    await connection.close()


def test_a_paused_server_can_be_stopped_and_leaves_nothing(own_postgres: StartPostgres) -> None:
    server = own_postgres()
    pid, home = server.pid, server.home
    assert pid is not None
    server.pause()
    server.stop()
    assert not is_running(pid)
    assert not home.exists()


def test_a_kept_directory_is_found_again() -> None:
    postgres.require_postgres()
    directory = machine.make_directory("hourhand-kept-")
    try:
        with PostgresServer(directory=directory) as server:
            server.create_database("loaded")
        with PostgresServer(directory=directory) as server:
            assert server.has_database("loaded")
    finally:
        shutil.rmtree(directory)


def test_the_end_of_the_interpreter_stops_the_server() -> None:
    postgres.require_postgres()
    program = (
        "from tests.servers.postgres import PostgresServer\n"
        "server = PostgresServer().start()\n"
        "print(server.pid, server.home)\n"
        "raise SystemExit('without stopping it')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    pid, home = ended.stdout.split()
    wait_until("end of the server", lambda: not is_running(int(pid)), ANSWER_S)
    assert not Path(home).exists()


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_a_missing_server_skips_on_a_laptop_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    def none() -> Path:
        raise Unavailable("no PostgreSQL here")

    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(postgres, "find_binaries", none)
    with pytest.raises(outcome, match="no PostgreSQL here"):
        postgres.require_postgres()


def test_without_any_programs_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_binaries, "_usable", lambda directory: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unavailable, match="set HOURHAND_TEST_POSTGRES_URL"):
        postgres_binaries.find_binaries.__wrapped__()


def test_workers_of_one_run_share_one_server(tmp_path: Path) -> None:
    postgres.require_postgres()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(8))\n"
        "def test_it(n, postgres_server, postgres_url, worker_id):\n"
        "    print(f'server {postgres_server.pid} {postgres_server.home} {worker_id}')\n"
    )
    outside = ("PYTEST", "HOURHAND_TEST")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.servers.fixtures", "-n", "2", "-rP", "-q", tmp_path],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(outside)}
        | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    _, pids, homes, workers = zip(
        *(line.split() for line in ended.stdout.splitlines() if line.startswith("server ")), strict=True
    )
    assert set(workers) == {"gw0", "gw1"}
    assert len(set(pids)) == 1
    assert not is_running(int(pids[0]))
    assert not Path(homes[0]).exists()
