"""`doctor`: every configured server is asked, and what is wrong comes with what would help."""

import base64
import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hourhand.__main__ import Wired
from hourhand.cli.launch import Examined
from hourhand.core.schedule import tzdata_version
from hourhand.core.serving import Serves
from hourhand.leases.board import View
from hourhand.leases.redis import RedisBoard
from hourhand.ports.inspection import CalledFunction, StoreFacts
from hourhand.ports.store import NodeInfo
from hourhand.stores.sqlite.file import APPLICATION_ID, open_writer
from hourhand.stores.sqlite.statements import migrations
from hourhand.wiring.store_doctor import unserved
from tests.cli.conftest import started
from tests.identity.issuer import AUDIENCE, ISSUER, SECRET, document, jwk
from tests.servers.redis import RedisServer, ask

GOOD = Examined(what="store", where="postgres://db/x", seen="schema 3, clock +1 ms")
BAD = Examined(what="queue", where="redis://h", finding="Redis: connection refused", fix="start the server")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the file that the settings name, as a process left it."""
    monkeypatch.chdir(tmp_path)
    open_writer(tmp_path / "hourhand.db", segments=64).close()
    return tmp_path


def states(told: Any) -> dict[str, str]:
    """Each line's state by what it is about."""
    return {row["what"]: row.get("finding") or row["seen"] for row in told.json["servers"]}


def test_all_good_is_0_and_findings_are_8_with_their_fix(hourhand) -> None:
    fine = hourhand("doctor", examine=lambda settings: [GOOD])
    assert (fine.code, "schema 3, clock +1 ms" in fine.out) == (0, True)
    ill = hourhand("doctor", examine=lambda settings: [GOOD, BAD])
    assert ill.code == 8
    assert "queue: Redis: connection refused\n  what helps: start the server" in ill.out
    told = hourhand("doctor", "--json", examine=lambda settings: [GOOD, BAD])
    assert [row["ok"] for row in told.json["servers"]] == [True, False]
    assert told.json["servers"][1]["fix"] == "start the server"


def test_a_file_needs_no_broker(hourhand, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hourhand("doctor", examine=Wired().examine).code == 0
    monkeypatch.setenv("HOURHAND_QUEUE_URL", "redis://127.0.0.1:1")
    told = hourhand("doctor", examine=Wired().examine)
    assert told.code == 8
    assert "queue.url is for clusters" in told.out


def test_a_file_is_looked_at(hourhand, monkeypatch: pytest.MonkeyPatch) -> None:
    told = hourhand("doctor", "--json", examine=Wired().examine)
    assert (told.code, list(states(told))) == (0, ["store", "tzdata"])
    assert states(told)["store"] == f"schema {len(migrations())}, no process runs on it"
    assert states(told)["tzdata"] == tzdata_version()


@pytest.mark.parametrize(
    ("path", "finding", "fix"),
    [
        ("gone/dir/x.db", "there is no folder gone/dir", "make it"),
        ("x.db", "there is no file x.db", "`hourhand up` makes it"),
        ("folder", "folder is no file", "set store.url"),
        ("text.db", "it is not a database", "see the message"),
        ("other.db", "is a database of something else", "see the message"),
        ("newer.db", "was written by a newer hourhand", "see the message"),
    ],
)
def test_a_file_that_cannot_be_the_store_is_a_finding(
    hourhand, monkeypatch: pytest.MonkeyPatch, folder: Path, path: str, finding: str, fix: str
) -> None:
    (folder / "folder").mkdir()
    (folder / "text.db").write_text("no database at all\n" * 20)
    for name, script in (
        ("other.db", "CREATE TABLE theirs (a)"),
        ("newer.db", f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 999"),
    ):
        with contextlib.closing(sqlite3.connect(folder / name)) as database:
            database.executescript(script)
    monkeypatch.setenv("HOURHAND_STORE_URL", f"sqlite:///{path}")
    told = hourhand("doctor", "--json", examine=Wired().examine)
    assert told.code == 8
    [line] = told.json["servers"]
    assert finding in line["finding"]
    assert fix in line["fix"]
    assert not (folder / "gone").exists()


def test_a_file_that_cannot_be_written_is_a_finding(hourhand, monkeypatch: pytest.MonkeyPatch) -> None:
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: may(path, mode) and not str(path).endswith(".db"))
    told = hourhand("doctor", examine=Wired().examine)
    assert told.code == 8
    assert "hourhand.db cannot be written" in told.out
    assert "let the user that runs hourhand read and write there" in told.out


def test_an_older_file_is_brought_up_to_date_by_itself(
    hourhand, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    with contextlib.closing(sqlite3.connect(folder / "hourhand.db")) as database:
        database.execute("PRAGMA user_version = 2")
    told = hourhand("doctor", "--json", examine=Wired().examine)
    assert (told.code, states(told)["store"].startswith("schema 2, brought to ")) == (0, True)


def test_older_zone_data_than_the_store_s_is_a_finding(hourhand, folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "hourhand.db")) as database, database:
        database.execute("UPDATE meta SET value = '2999z' WHERE key = 'tzdata'")
    told = hourhand("doctor", examine=Wired().examine)
    assert told.code == 8
    assert "a process on the store had 2999z: a scheduler with older zone data does not plan" in told.out
    assert "pip install --upgrade tzdata" in told.out


def facts(*functions: str, workers: int = 1) -> StoreFacts:
    serves = Serves(pools=("default",), functions=("app:served",))
    nodes = [
        NodeInfo(id=one, kind="worker", name=f"w{one}", started_at=0, lease_until=2, serves=serves)
        for one in range(workers)
    ]
    gone = NodeInfo(id=99, kind="worker", name="gone", started_at=0, lease_until=1, serves=None)
    called = tuple(CalledFunction(function=one, pool="default") for one in functions)
    return StoreFacts(now_at=1, tzdata=tzdata_version(), nodes=(*nodes, gone), called=called)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (facts(), []),
        (facts("app:served"), ["1 function that jobs call, each has a worker"]),
        (
            facts("app:served", "app:a", "app:b"),
            ["jobs call app:a, app:b: no live worker of the pool default has the function app:a"],
        ),
        (facts("app:a", workers=0), ["jobs call app:a: no worker lives"]),
    ],
)
def test_functions_that_nobody_serves(found: StoreFacts, said: list[str]) -> None:
    lines = list(unserved([found], alone=False))
    assert [line.finding or line.seen for line in lines] == said
    assert all(bool(line.fix) == bool(line.finding) for line in lines)


def test_a_process_that_lacks_a_function_is_told_of_beside_it(hourhand, monkeypatch, folder: Path) -> None:
    job = ("jobs", "create", "x", "--every", "1h", "--python", "elsewhere:thing")
    with started(folder) as url:
        monkeypatch.setenv("HOURHAND_URL", url)
        assert hourhand(*job).code == 0
        monkeypatch.setenv("HOURHAND_STORE_URL", f"sqlite:///{folder / 'jobs.db'}")
        told = hourhand("doctor", "--json", examine=Wired().examine)
    assert (told.code, states(told)["store"].endswith("a process runs on it")) == (8, True)
    assert "jobs call elsewhere:thing: " in states(told)["functions"]
    assert "hourhand up --import elsewhere" in told.out


def test_an_old_snapshot_is_a_finding(hourhand, monkeypatch: pytest.MonkeyPatch, migrated_url: str) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", migrated_url)
    monkeypatch.setattr("hourhand.stores.postgres.inspection.OLD_SNAPSHOT_S", 0.0)
    with psycopg.connect(migrated_url, application_name="a report") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM jobs")
        told = hourhand("doctor", examine=Wired().examine)
        connection.rollback()
    assert told.code == 8
    assert "a transaction holds a snapshot for 0 min (process " in told.out
    assert "a report" in told.out
    assert "pg_terminate_backend(" in told.out
    assert hourhand("doctor", examine=Wired().examine).code == 0


@pytest.mark.parametrize(
    ("key", "finding"),
    [
        (b"correct horse battery staple", "spells a text"),
        (bytes(range(0xF0, 0xFF)) * 2, "repeats itself"),
        (bytes(range(0xD0, 0xF0)), None),
    ],
    ids=["typed", "repeated", "good"],
)
def test_signing_secrets_that_were_typed_are_findings(
    hourhand, monkeypatch: pytest.MonkeyPatch, key: bytes, finding: str | None
) -> None:
    secret = f"whsec_{base64.b64encode(key).decode()}"
    monkeypatch.setenv("HOURHAND_TARGETS_SIGNING_SECRET", secret)
    told = hourhand("doctor", "--json", examine=Wired().examine)
    assert told.code == (8 if finding else 0)
    assert (finding or "1 secret without an obvious weakness") in states(told)["targets"]
    assert secret not in told.out + told.err


def test_settings_that_are_not_there_are_wrong_usage(hourhand) -> None:
    told = hourhand("doctor", "--config", "nope.toml")
    assert (told.code, told.err.splitlines()[0]) == (2, "error: --config nope.toml: there is no such file")


def test_a_cluster_s_servers_are_asked(
    hourhand, monkeypatch: pytest.MonkeyPatch, migrated_url: str, redis_url: str
) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", migrated_url)
    monkeypatch.setenv("HOURHAND_QUEUE_URL", redis_url)
    told = hourhand("doctor", "--json", examine=Wired().examine)
    assert told.code == 0, told.out
    store, queue = told.json["servers"]
    assert store["seen"].startswith("schema ")
    assert queue["seen"].startswith("Redis ")


def test_what_is_away_or_old_is_said_with_its_fix(
    hourhand,
    monkeypatch: pytest.MonkeyPatch,
    postgres_url: str,
    own_redis: Callable[..., RedisServer],
) -> None:
    server = own_redis()
    server.kill()
    monkeypatch.setenv("HOURHAND_STORE_URL", postgres_url)
    monkeypatch.setenv("HOURHAND_QUEUE_URL", server.url.replace("redis://", "redis://ann:canary@"))
    told = hourhand("doctor", examine=Wired().examine)
    assert told.code == 8
    assert "hourhand migrate up" in told.out
    assert "queue: Redis: " in told.out
    assert "canary" not in told.out + told.err


def test_a_fast_broker_alone_is_refused(hourhand, monkeypatch: pytest.MonkeyPatch, migrated_url: str) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", migrated_url)
    monkeypatch.setenv("HOURHAND_QUEUE_FAST_URL", "redis://127.0.0.1:1")
    told = hourhand("doctor", examine=Wired().examine)
    assert "queue.fast_url is beside queue.url" in told.out


def test_a_missing_package_names_its_extra(
    hourhand, monkeypatch: pytest.MonkeyPatch, migrated_url: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("HOURHAND_STORE_URL", migrated_url)
    for url, extra in (("redis://h", "hourhand[redis]"), ("kafka://h", "hourhand[kafka]")):
        monkeypatch.setenv("HOURHAND_QUEUE_URL", url)
        assert extra in hourhand("doctor", examine=Wired().examine).out


def test_up_on_a_file_refuses_a_broker(hourhand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOURHAND_QUEUE_URL", "redis://127.0.0.1:1")
    told = hourhand("up", "--port", "0", up=Wired().up)
    assert told.code == 1
    assert "queue.url is for clusters on PostgreSQL" in told.err


@pytest.mark.parametrize("kind", ["redis", "etcd"])
def test_a_lease_is_taken_and_given_back(
    hourhand, monkeypatch: pytest.MonkeyPatch, migrated_url: str, redis_url: str, etcd_url: str, kind: str
) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", migrated_url)
    monkeypatch.setenv("HOURHAND_LEASES_URL", {"redis": redis_url, "etcd": etcd_url}[kind])
    told = hourhand("doctor", "--json", examine=Wired().examine)
    assert told.code == 0, told.out
    leases = told.json["servers"][-1]
    assert leases["what"] == "leases"
    assert leases["seen"].startswith({"redis": "Redis ", "etcd": "etcd 3"}[kind])
    assert "a lease and back in" in leases["seen"]


def test_however_often_it_is_asked_a_lease_server_keeps_no_more_of_it(
    hourhand, monkeypatch: pytest.MonkeyPatch, migrated_url: str, redis_url: str
) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", migrated_url)
    monkeypatch.setenv("HOURHAND_LEASES_URL", redis_url)
    sizes = []
    for _ in range(2):
        assert hourhand("doctor", examine=Wired().examine).code == 0
        sizes.append(ask(redis_url, "DBSIZE"))
    assert sizes == [":1", ":1"]  # what the board is called, until that goes away by itself


def test_a_lease_that_is_lost_at_once_is_a_finding(
    hourhand, monkeypatch: pytest.MonkeyPatch, migrated_url: str, redis_url: str
) -> None:
    renew = RedisBoard.renew

    async def renew_too_late(board: RedisBoard, node_id: int) -> View:
        await board.leave(node_id)
        return await renew(board, node_id)

    monkeypatch.setattr(RedisBoard, "renew", renew_too_late)
    monkeypatch.setenv("HOURHAND_STORE_URL", migrated_url)
    monkeypatch.setenv("HOURHAND_LEASES_URL", redis_url)
    told = hourhand("doctor", examine=Wired().examine)
    assert told.code == 8
    assert "it gave a lease and lost it at once" in told.out


def test_a_lease_server_that_is_away_or_has_no_package_says_so(
    hourhand, monkeypatch: pytest.MonkeyPatch, migrated_url: str, own_redis: Callable[..., RedisServer]
) -> None:
    server = own_redis()
    server.kill()
    monkeypatch.setenv("HOURHAND_STORE_URL", migrated_url)
    monkeypatch.setenv("HOURHAND_LEASES_URL", server.url.replace("redis://", "redis://:canary@"))
    told = hourhand("doctor", examine=Wired().examine)
    assert told.code == 8
    assert "until then the store keeps the leases" in told.out
    monkeypatch.setitem(sys.modules, "hourhand.leases.redis", None)
    missing = hourhand("doctor", examine=Wired().examine)
    assert missing.code == 8
    assert "pip install 'hourhand[redis]'" in missing.out
    assert "canary" not in told.out + missing.out


JWT = {
    "HOURHAND_AUTH_MODE": "jwt",
    "HOURHAND_AUTH_ISSUER": ISSUER,
    "HOURHAND_AUTH_AUDIENCE": AUDIENCE,
    "HOURHAND_AUTH_SECRET": SECRET,
}


def examined(hourhand: Any, monkeypatch: pytest.MonkeyPatch, **settings: str) -> Any:
    for name, value in {**JWT, **settings}.items():
        monkeypatch.setenv(name, value)
    told = hourhand("doctor", "--json", examine=Wired().examine)
    assert SECRET not in told.out + told.err
    return told


def test_secrets_and_published_keys_are_told(hourhand, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "keys.json").write_bytes(document(jwk("RS256"), jwk("ES256"), jwk("RS256", use="enc")))
    told = examined(hourhand, monkeypatch, HOURHAND_AUTH_JWKS="keys.json")
    assert told.code == 0, told.out
    *_, secret, keys = told.json["servers"]
    assert secret["seen"] == "HS256, 1 secret without an obvious weakness"
    assert keys["seen"].startswith("2 keys (1 for ES256, 1 for RS256) in ")
    assert "left out: key 3 is not for signatures" in keys["seen"]


@pytest.mark.parametrize(
    ("place", "finding", "fix"),
    [
        ("http://127.0.0.1:1/keys", "no keys of JWTs: ", "check auth.jwks, or start the server"),
        ("absent.json", "there is no such file", "see the message"),
        ("none.json", "no key for RS256, ES256 or EdDSA", "see the message"),
    ],
)
def test_keys_that_cannot_be_had_come_with_what_helps(
    hourhand, monkeypatch: pytest.MonkeyPatch, folder: Path, place: str, finding: str, fix: str
) -> None:
    (folder / "none.json").write_bytes(document())
    told = examined(hourhand, monkeypatch, HOURHAND_AUTH_JWKS=place)
    assert told.code == 8
    ill = told.json["servers"][-1]
    assert ill["what"] == "auth"
    assert finding in ill["finding"]
    assert fix in ill["fix"]


def test_the_missing_package_of_jwts_is_named(hourhand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hourhand.identity.keys", None)
    told = examined(hourhand, monkeypatch, HOURHAND_AUTH_JWKS="keys.json")
    assert "pip install 'hourhand[jwt]'" in told.json["servers"][-1]["finding"]


def test_a_weak_secret_is_refused_by_check_and_doctor(hourhand, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**JWT, "HOURHAND_AUTH_SECRET": "canary" * 8}.items():
        monkeypatch.setenv(name, value)
    for command, code in (("check", 8), ("doctor", 1)):
        told = hourhand(command)
        assert told.code == code
        assert "such as `openssl rand -hex 32` prints; one is weak: it repeats itself" in told.out + told.err
        assert "canary" not in told.out + told.err


def test_an_address_that_is_nobody_s_cannot_be_reported_to(hourhand, monkeypatch: pytest.MonkeyPatch) -> None:
    ill = examined(hourhand, monkeypatch, HOURHAND_SERVER_LISTEN="0.0.0.0:7070")
    assert ill.code == 8
    assert "set server.url" in ill.out
    fine = examined(
        hourhand,
        monkeypatch,
        HOURHAND_SERVER_LISTEN="0.0.0.0:7070",
        HOURHAND_SERVER_URL="https://hourhand.example.com",
    )
    assert fine.code == 0


def test_passwords_that_everybody_tries_first_are_findings_beyond_this_machine(
    hourhand, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hourhand.config import load
    from hourhand.wiring.auth_doctor import examine_passwords

    def found(url: str) -> list[Examined]:
        loaded = load(
            environment={"HOURHAND_STORE_URL": url}, folder=Path("absent"), system_file=Path("absent")
        )
        return list(examine_passwords(loaded.settings()))

    [ill] = found("postgres://hourhand:hourhand@db.example.com/x")
    assert ill.where == "postgres://hourhand:***@db.example.com/x"
    assert "openssl rand" in ill.fix
    for url in (
        "postgres://hourhand:hourhand@127.0.0.1/x",
        "postgres://hourhand:kX93hfA0s@db.example.com/x",
        "postgres://hourhand@db.example.com/x",
    ):
        assert found(url) == []


def test_where_requests_are_counted_is_asked(
    hourhand, monkeypatch: pytest.MonkeyPatch, own_redis: Callable[..., RedisServer]
) -> None:
    server = own_redis()
    monkeypatch.setenv("HOURHAND_LIMITS_URL", server.url)
    told = hourhand("doctor", "--json", examine=Wired().examine)
    assert told.code == 0, told.out
    assert told.json["servers"][-1]["what"] == "limits"
    assert "counted in" in told.json["servers"][-1]["seen"]
    server.kill()
    told = hourhand("doctor", examine=Wired().examine)
    assert told.code == 8
    assert "until then requests are not limited" in told.out


def test_counting_in_redis_without_its_package(hourhand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOURHAND_LIMITS_URL", "redis://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "hourhand.limits.redis", None)
    told = hourhand("doctor", examine=Wired().examine)
    assert told.code == 8
    assert "pip install 'hourhand[redis]'" in told.out
