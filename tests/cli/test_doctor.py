"""`doctor`: every configured server is asked, and what is wrong comes with what would help."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hourhand.__main__ import Wired
from hourhand.cli.launch import Examined
from hourhand.leases.board import View
from hourhand.leases.redis import RedisBoard
from tests.servers.redis import RedisServer, ask

GOOD = Examined(what="store", where="postgres://db/x", seen="schema 3, clock +1 ms")
BAD = Examined(what="queue", where="redis://h", finding="Redis: connection refused", fix="start the server")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
