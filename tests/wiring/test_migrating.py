"""`hourhand migrate` on a real server: exit codes, and what is not touched."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest

from hourhand.__main__ import Wired
from hourhand.cli.app import run
from tests.servers.postgres_databases import PostgresDatabases


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def migrate(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Done]:
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    for name in ("HOURHAND_TEST_RUN_DIRECTORY", "HOURHAND_TEST_POSTGRES_URL"):
        monkeypatch.delenv(name, raising=False)

    def command(urls: str, *arguments: str) -> Done:
        monkeypatch.setenv("HOURHAND_STORE_SHARDS", urls)
        code = run(["migrate", *arguments], Wired())
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return command


def states(done: Done) -> list[str]:
    return [one["state"] for one in msgspec.json.decode(done.out)["databases"]]


def test_each_database_is_brought_up_to_date_once(
    migrate, postgres_server: PostgresDatabases, postgres_url: str, migrated_url: str
) -> None:
    both = f"{postgres_url} {migrated_url}"
    before = migrate(both, "status", "--json")
    assert (before.code, states(before)) == (8, ["pending", "up to date"])
    listed = migrate(both, "up", "--dry-run")
    assert listed.code == 0
    assert f"{postgres_url}: 0001" in listed.out
    assert states(migrate(both, "status", "--json")) == ["pending", "up to date"]
    assert postgres_server.query(
        "SELECT count(*) FROM pg_class WHERE relname = 'meta'", database=postgres_url
    ) == [(0,)]
    done = migrate(both, "up")
    assert done.code == 0
    assert f"{postgres_url}: 0001" in done.err
    assert migrated_url not in done.err
    after = migrate(both, "status", "--json")
    assert (after.code, states(after)) == (0, ["up to date"] * 2)
    assert "nothing to do" in migrate(both, "up").out


def test_a_newer_database_is_found_and_not_touched(
    migrate, postgres_server: PostgresDatabases, migrated_url: str
) -> None:
    postgres_server.execute("UPDATE meta SET value = '999' WHERE key = 'schema'", database=migrated_url)
    found = migrate(migrated_url, "status", "--json")
    assert (found.code, states(found)) == (8, ["newer"])
    refused = migrate(migrated_url, "up")
    assert refused.code == 1
    assert "newer hourhand" in refused.err


@pytest.mark.parametrize("key", ["schema", "oldest_code"])
def test_a_step_that_is_no_number_is_told_in_words(
    migrate, postgres_server: PostgresDatabases, migrated_url: str, key: str
) -> None:
    postgres_server.execute(f"UPDATE meta SET value = 'two' WHERE key = '{key}'", database=migrated_url)
    for verb in ("status", "up"):
        done = migrate(migrated_url, verb)
        assert done.code == 1
        assert f"meta.{key} of the database is 'two', expected a whole number" in done.err


def test_a_foreign_database_is_refused_and_not_touched(
    migrate, postgres_server: PostgresDatabases, postgres_url: str
) -> None:
    postgres_server.execute("CREATE TABLE theirs (id integer)", database=postgres_url)
    for verb in ("status", "up"):
        done = migrate(postgres_url, verb)
        assert done.code == 1
        assert "belongs to something else" in done.err
    tables = postgres_server.query(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace", database=postgres_url
    )
    assert [row[0] for row in tables] == ["theirs"]


def test_a_url_may_say_that_a_pooler_is_in_between(migrate, postgres_url: str) -> None:
    url = f"{postgres_url}?pooler=transaction"
    assert migrate(url, "up").code == 0
    assert migrate(url, "status").code == 0
