"""Servers that do not answer, or a byte at a time: no request outlasts its time; both clients alike."""

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from hourhand.client import Client, Unreachable
from hourhand.clock import monotonic_us
from hourhand.core.instant import SECOND_US
from tests.cli.recorder import SHORT_S, Recorder, ask, recorder, short_pauses

__all__ = ["ask", "recorder", "short_pauses"]


async def test_a_server_that_does_not_answer_is_given_up(ask, recorder: Recorder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        recorder.url, recorder.timeout_s = f"http://127.0.0.1:{deaf.getsockname()[1]}", SHORT_S
        with pytest.raises(Unreachable, match="may have been carried out"):
            await ask("jobs.create", {})


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere a full queue of connections is not left unanswered"
)
async def test_what_was_never_connected_has_not_happened(ask, recorder: Recorder) -> None:
    recorder.timeout_s = SHORT_S
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        recorder.url = f"http://127.0.0.1:{full.getsockname()[1]}"
        with pytest.raises(Unreachable, match="no hourhand answers"):
            await ask("jobs.delete", "J-1")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n"
LINE = b'{"job_id": "J-1"}\n'


@contextmanager
def dripping(*answers: tuple[bytes, bytes]) -> Iterator[str]:
    """A server of one connection: the first part of an answer comes at once, the rest a byte each 30 ms."""
    done = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            for at_once, drop_by_drop in answers:
                connection.recv(65_536)
                connection.sendall(at_once)
                for byte in drop_by_drop:
                    done.wait(0.03)
                    connection.sendall(bytes([byte]))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize("at_once", [b"", HEAD % 1_000], ids=["the head", "the body"])
async def test_an_answer_that_drips_is_no_answer_in_time(ask, recorder: Recorder, at_once: bytes) -> None:
    whole = HEAD % 1_000 + b" " * 1_000
    recorder.timeout_s = SHORT_S
    with dripping((at_once, whole.removeprefix(at_once))) as recorder.url:
        began_us = monotonic_us()
        with pytest.raises(Unreachable, match="may have been carried out"):
            await ask("jobs.delete", "J-1")
        assert monotonic_us() - began_us < 10 * SHORT_S * SECOND_US


async def test_a_stream_may_drip_for_as_long_as_it_likes(ask, recorder: Recorder) -> None:
    recorder.timeout_s = SHORT_S
    with dripping((HEAD % len(LINE), LINE)) as recorder.url:
        began_us = monotonic_us()
        assert await ask("jobs.export") == [{"job_id": "J-1"}]
        assert monotonic_us() - began_us > SHORT_S * SECOND_US


def test_a_connection_that_a_stream_has_opened_keeps_to_the_time_of_requests() -> None:
    answers = (HEAD % len(LINE) + LINE, b""), (HEAD % 1_000, b" " * 1_000)
    with dripping(*answers) as url, Client(url, timeout_s=SHORT_S, retries=0) as client:
        assert len(list(client.jobs.export())) == 1
        began_us = monotonic_us()
        with pytest.raises(Unreachable):
            client.jobs.get("J-1")
        assert monotonic_us() - began_us < 10 * SHORT_S * SECOND_US


async def test_who_asks_the_server_to_wait_waits_for_longer(ask, recorder: Recorder) -> None:
    recorder.timeout_s, recorder.delay_s = SHORT_S, 2 * SHORT_S
    recorder.replies = [(200, {"data": [], "next_after": None, "done": True}, {})]
    assert await ask("runs.log", "r", wait_s=5) == {"data": [], "next_after": None, "done": True}
    assert await ask("runs.logs", "r", follow=True) == []
    assert len(recorder.requests) == 2
