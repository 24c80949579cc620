"""The Redis of tests: really there, emptied and brought back, each test in a database of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import redis
from tests.servers.machine import Unavailable, is_running, wait_until
from tests.servers.redis import RedisServer, ask

ROOT = Path(__file__).resolve().parents[2]
ANSWER_S = 20.0

StartRedis = Callable[..., RedisServer]


def test_each_test_has_an_empty_database_of_its_own(redis_server_url: str) -> None:
    first, second = redis.take_database(redis_server_url), redis.take_database(redis_server_url)
    try:
        assert first != second
        ask(first, "SET a 1")
        assert ask(second, "DBSIZE") == ":0"
        assert ask(first, "DBSIZE") == ":1"
    finally:
        redis.drop_database(first)
        redis.drop_database(second)
    assert ask(first, "DBSIZE") == ":0"


@pytest.mark.parametrize("end", [RedisServer.restart, RedisServer.kill])
def test_a_server_comes_back_empty_on_its_port(
    own_redis: StartRedis, end: Callable[[RedisServer], None]
) -> None:
    server = own_redis()
    ask(server.url, "SET a 1")
    pid, url = server.pid, server.url
    end(server)
    server.start()
    assert (server.pid, server.url) != (pid, url)
    assert server.url == url
    assert ask(url, "DBSIZE") == ":0"


def test_one_that_runs_is_not_started_twice(own_redis: StartRedis) -> None:
    server = own_redis()
    pid = server.pid
    assert server.start().pid == pid


def test_a_start_that_is_interrupted_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    redis.require_redis()
    seen = []

    def interrupted(server: RedisServer) -> bool:
        seen.append((server.pid, server.home))
        raise KeyboardInterrupt

    monkeypatch.setattr(RedisServer, "is_ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        RedisServer().start(owner=os.getpid())
    [(pid, home)] = seen
    assert pid is not None
    assert not is_running(pid)
    assert not home.exists()


def test_what_is_kept_on_disk_survives_a_kill(own_redis: StartRedis) -> None:
    server = own_redis(settings={"appendonly": "yes", "appendfsync": "always"})
    ask(server.url, "SET a 1")
    server.kill()
    server.start()
    assert ask(server.url, "DBSIZE") == ":1"


def test_a_paused_server_is_silent_can_go_on_and_be_stopped(
    own_redis: StartRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = own_redis()
    monkeypatch.setattr(redis, "_ANSWER_S", 0.2)
    server.pause()
    with pytest.raises(TimeoutError):
        ask(server.url, "PING")
    server.resume()
    wait_until("answer of a resumed Redis", server.is_ready, ANSWER_S)
    pid, home = server.pid, server.home
    assert pid is not None
    server.pause()
    server.stop()
    assert not is_running(pid)
    assert not home.exists()


def test_a_full_server_refuses(own_redis: StartRedis) -> None:
    server = own_redis(settings={"maxmemory": "1"})
    assert ask(server.url, "SET a 1").startswith("-OOM")


def test_an_unknown_database_is_not_taken_for_another(own_redis: StartRedis) -> None:
    server = own_redis(settings={"databases": "1"})
    with pytest.raises(RuntimeError, match="database 7"):
        ask(f"redis://127.0.0.1:{server.port}/7", "FLUSHDB")


def test_the_end_of_the_interpreter_stops_the_server() -> None:
    redis.require_redis()
    program = (
        "from tests.servers.redis import RedisServer\n"
        "server = RedisServer().start()\n"
        "print(server.pid, server.home)\n"
        "raise SystemExit('without stopping it')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    pid, home = ended.stdout.split()
    wait_until("end of the server", lambda: not is_running(int(pid)), ANSWER_S)
    assert not Path(home).exists()


def test_a_killed_interpreter_takes_its_server_along() -> None:
    redis.require_redis()
    program = (
        "import os, signal\n"
        "from tests.servers.redis import RedisServer\n"
        "server = RedisServer().start()\n"
        "print(server.pid, server.home, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    pid, home = ended.stdout.split()
    wait_until("end of the server", lambda: not is_running(int(pid)), ANSWER_S)
    wait_until("end of its files", lambda: not Path(home).exists(), ANSWER_S)


def test_without_any_program_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    monkeypatch.setattr(redis, "_in_wheel", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unavailable, match="set HOURHAND_TEST_REDIS_URL"):
        redis.find_redis.__wrapped__()
