"""Answers that the clients read as they come: exports and events, on either client alike."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from hourhand.client import AsyncClient, Client, Unreachable
from hourhand.client.streams import Splitter
from hourhand.errors import Invalid, NotAllowed
from tests.cli.recorder import BUSY, Recorder, ask, problem, recorder, short_pauses
from tests.cli.test_tail import client, document, first_id
from tests.servers.tcp_proxy import TcpProxy

__all__ = ["ask", "client", "recorder", "short_pauses"]
LINES = {"Content-Type": "application/x-ndjson"}


def test_lines_end_with_a_line_feed_and_nothing_else() -> None:
    text = '{"name":"a\u2028b\u0085c\x0bd"}\r\n\n{"n":2}\nrest'
    for size in (1, 2, 3, 7, 100):
        splitter, data = Splitter(), text.encode()
        lines = [line for at in range(0, len(data), size) for line in splitter.take(data[at : at + size])]
        assert [*lines, *splitter.end()] == ['{"name":"a\u2028b\u0085c\x0bd"}', "", '{"n":2}', "rest"]
    assert Splitter().end() == []


async def test_an_export_is_read_line_by_line(ask: Any, recorder: Recorder) -> None:
    recorder.replies = [BUSY, (200, '{"job_id":"J-1","name":"a\u2028b"}\n{"job_id":"J-2"}\n'.encode(), LINES)]
    found = await ask("jobs.export", state="active", payload=False)
    assert found == [{"job_id": "J-1", "name": "a\u2028b"}, {"job_id": "J-2"}]
    assert len(recorder.requests) == 2, "it was turned away once, and asked again"
    _, path, headers, _ = recorder.requests[-1]
    assert path == "/api/v1/jobs?state=active&payload=false"
    assert headers["Accept"] == "application/x-ndjson"


async def test_an_export_that_breaks_off_is_no_end(ask: Any, recorder: Recorder) -> None:
    recorder.replies = [
        (200, b'{"job_id":"J-1"}\n', {**LINES, "Content-Length": "1000", "Connection": "close"})
    ]
    with pytest.raises(Unreachable, match="broke off after 1 of more"):
        await ask("jobs.export")
    recorder.replies = [(200, b'{"job_id":\n', LINES)]
    with pytest.raises(Unreachable, match="not hourhand"):
        await ask("jobs.export")
    recorder.replies = [problem(403, "not_allowed")]
    with pytest.raises(NotAllowed):
        await ask("jobs.export")


async def test_a_real_export_has_all_jobs(client: Client, server: str) -> None:
    names = sorted(client.jobs.create({**document(), "tags": ["exported"]})["name"] for _ in range(3))
    assert sorted(job["name"] for job in client.jobs.export(tag="exported")) == names
    async with AsyncClient(server) as other:
        assert sorted([job["name"] async for job in other.jobs.export(tag="exported")]) == names
        with pytest.raises(Invalid):
            await anext(aiter(other.jobs.export(stat="active")))


class Doer:
    """Makes runs beside who waits for their events, until told to stop; a lost one is followed by the next."""

    def __init__(self, url: str, job: dict[str, Any]) -> None:
        self.run_ids: list[str] = []
        self._url, self._job = url, job
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        with Client(self._url) as mine:
            while not self._stop.is_set():
                run_id = mine.jobs.run(self._job)["run_id"]
                self.run_ids.append(run_id)
                mine.runs.wait(run_id)


async def test_events_are_followed_on_an_event_loop_and_after_a_break_too(
    client: Client, server: str
) -> None:
    job, after = client.jobs.create(document()), first_id(client)
    broken: list[str] = []
    seen: list[str] = []
    since_break = 0
    async with TcpProxy.to_url(server) as proxy, AsyncClient(proxy.url_of(server)) as far:
        far._http.headers["Host"] = urlsplit(server).netloc  # the server knows its own address only
        events = far.events(job_id=job["job_id"], types="run.succeeded", after=after, broken=broken.append)
        async with contextlib.aclosing(events) as following:
            doer = Doer(server, job)
            doer.start()
            async for event in following:
                seen.append(event["run_id"])
                since_break += bool(broken)
                if len(seen) == 2:
                    assert proxy.cut()
                if since_break == 3:  # what had come already is told first
                    break
            await asyncio.to_thread(doer.stop)
    assert seen == doer.run_ids[: len(seen)], "none is missing, none comes twice"
    assert len(broken) == 1


async def test_who_is_not_there_or_asks_wrongly_is_told_at_once(server: str) -> None:
    async with AsyncClient(server) as there:
        with pytest.raises(Invalid):
            await anext(aiter(there.events(types="x")))
    async with AsyncClient("http://127.0.0.1:9", retries=0) as nowhere:
        with pytest.raises(Unreachable):
            await anext(aiter(nowhere.events()))


def test_whoever_leaves_gives_its_connection_back(client: Client) -> None:
    after = first_id(client)
    client.jobs.create(document())
    for _ in range(3):
        events: Iterator[dict[str, Any]] = client.events(after=after)
        assert next(events)["type"]
        events.close()  # type: ignore[attr-defined]
    pool = client._http._transport._pool  # type: ignore[attr-defined]
    assert all(connection.is_idle() or connection.is_closed() for connection in pool.connections)
