"""The etcd of tests: really there, with leases of a second, silent when paused, and as new when it forgets."""

import base64
import os
import shutil
from collections.abc import Callable

import pytest

from tests.servers import etcd
from tests.servers.etcd import EtcdServer, ask
from tests.servers.machine import Unavailable, is_running, wait_until

ANSWER_S = 20.0
KEY = base64.b64encode(b"a").decode()

StartEtcd = Callable[[], EtcdServer]


def test_it_keeps_what_it_has_through_a_kill_and_not_when_it_is_made_anew(own_etcd: StartEtcd) -> None:
    server = own_etcd()
    url = server.url
    ask(url, "kv/put", key=KEY, value=KEY)
    server.kill()
    server.start()
    assert ask(url, "kv/range", key=KEY)["count"] == "1"
    server.forget()
    assert "count" not in ask(url, "kv/range", key=KEY)


def test_its_leases_may_be_as_short_as_a_second(etcd_url: str) -> None:
    assert ask(etcd_url, "lease/grant", TTL=1)["TTL"] == "1"


def test_a_paused_server_is_silent_can_go_on_and_be_stopped(
    own_etcd: StartEtcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = own_etcd()
    server.pause()
    with monkeypatch.context() as impatient:
        impatient.setattr(etcd, "_ANSWER_S", 0.2)
        assert not server.is_ready()
    server.resume()
    wait_until("answer of a resumed etcd", server.is_ready, ANSWER_S)
    pid, home = server.pid, server.home
    assert pid is not None
    server.stop()
    assert not is_running(pid)
    assert not home.exists()


def test_without_any_program_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unavailable, match="set HOURHAND_TEST_ETCD_URL"):
        etcd.find_etcd.__wrapped__()
