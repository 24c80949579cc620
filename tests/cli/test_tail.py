"""`tail` and the client's stream of events, against a real server and a network that breaks."""

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from hourhand.client import Client
from hourhand.client.events import Frames, follow
from hourhand.client.exchange import Patience
from hourhand.client.flow import Answer, Item, Line, Pause
from hourhand.client.problems import Unreachable
from hourhand.errors import Invalid
from tests.cli.recorder import Recorder, recorder
from tests.servers.tcp_proxy import TcpProxy

__all__ = ["recorder"]
_numbers = itertools.count()


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    with Client(server) as opened:
        yield opened


def document(function: str = "succeed") -> dict[str, Any]:
    return {
        "name": f"tailed-{next(_numbers)}",
        "cron": "0 0 1 1 *",
        "target": {"type": "python", "function": f"functions_for_cli:{function}"},
        "retry": {"max": 0},
    }


def soon(act: Callable[[], object]) -> threading.Thread:
    """Do something beside a command that waits for it."""
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def first_id(client: Client) -> str:
    """Where the stream stands, as it says at its beginning."""
    client.jobs.create(document())  # so that there is something to stand after
    with httpx2.stream("GET", f"{client.url}/api/v1/events", timeout=10) as response:
        return next(line.removeprefix("id: ") for line in response.iter_lines() if line.startswith("id: "))


def test_tells_of_runs_and_jobs_of_one_job(hourhand: Any, client: Client) -> None:
    after = first_id(client)
    job, other = client.jobs.create(document()), client.jobs.create(document("fail"))
    client.runs.wait(client.jobs.run(other)["run_id"])
    run = client.runs.wait(client.jobs.run(job)["run_id"])
    client.jobs.pause(job)
    done = hourhand("tail", "--job", job["name"], "--after", after, "-n", "3")
    assert done.code == 0, done.err
    created, ran, paused = done.out.splitlines()
    assert f"· {job['name']}" in created
    assert "created" in created
    assert "✓" in ran
    assert ran.endswith(run["run_id"])
    assert "paused, version 2" in paused
    done = hourhand("tail", "--type", "run.*", "--job", job["job_id"], "--after", after, "-n", "1", "-q")
    assert done.out == f"{run['run_id']}\n"
    done = hourhand("tail", "--type", "run.failed", "--after", after, "-n", "1", "--jsonl")
    assert done.json["job_id"] == other["job_id"]
    assert done.json["data"]["error"].endswith("it broke")
    assert "✗" in hourhand("tail", "--type", "run.failed", "--after", after, "-n", "1").out


def test_what_happens_now_comes_now(hourhand: Any, client: Client) -> None:
    job = client.jobs.create(document())
    begun = threading.Event()

    def run_it() -> None:
        begun.wait(10)
        with Client(client.url) as mine:
            for _ in range(50):  # the stream may stand a moment later
                mine.runs.wait(mine.jobs.run(job)["run_id"])
                if stop.is_set():
                    return

    stop = threading.Event()
    thread = soon(run_it)
    begun.set()
    done = hourhand("tail", "--job", job["job_id"], "--type", "run.succeeded", "-n", "1")
    stop.set()
    thread.join()
    assert done.code == 0
    assert job["name"] in done.out


async def test_comes_back_after_a_break_and_misses_nothing(client: Client, server: str) -> None:
    job = client.jobs.create(document())
    after = first_id(client)
    broken: list[str] = []

    def ran() -> str:
        return str(client.runs.wait(client.jobs.run(job)["run_id"])["run_id"])

    async with TcpProxy.to_url(server) as proxy:
        with Client(proxy.url_of(server)) as far:
            far._http.headers["Host"] = urlsplit(server).netloc  # the server knows its own address only
            events = far.events(job_id=job["job_id"], types="run.*", after=after, broken=broken.append)
            first = await asyncio.to_thread(ran)
            assert (await asyncio.to_thread(next, events))["run_id"] == first
            assert proxy.cut()
            second = await asyncio.to_thread(ran)
            following = asyncio.create_task(asyncio.to_thread(next, events))
            while not following.done():  # later runs, so that one that was missed is not waited for in vain
                await asyncio.to_thread(ran)
            assert (await following)["run_id"] == second
            assert len(broken) == 1


def test_who_is_not_there_or_asks_wrongly_is_told_at_once(hourhand: Any, client: Client) -> None:
    assert hourhand("tail", "--server", "http://127.0.0.1:9").code == 6
    done = hourhand("tail", "--type", "runs.*")
    assert (done.code, "run.*" in done.err) == (2, True)
    with pytest.raises(Invalid):
        next(client.events(types="x"))
    with pytest.raises(Unreachable):
        next(Client("http://127.0.0.1:9", retries=0).events())


STREAM = Answer(status=200, headers={"content-type": "text/event-stream; charset=utf-8"}, body=b"")


def pauses(*streams: Answer | list[str]) -> list[float]:
    """How long is waited after each stream that ends."""
    flow = follow({}, None, server="here", patience=Patience(), broken=lambda words: None)
    found, step = [], flow.send(None)
    for stream in streams:
        step = flow.send(stream if isinstance(stream, Answer) else STREAM)
        for line in () if isinstance(stream, Answer) else (*stream, None):
            assert isinstance(step, Line)
            step = flow.send(line)
            if isinstance(step, Item):
                step = flow.send(None)
        assert isinstance(step, Pause)
        found.append(step.seconds)
        step = flow.send(None)
    return found


def test_a_stream_that_ends_at_once_is_asked_for_ever_more_rarely() -> None:
    told, lasted = ["event: x", 'data: {"a": 1}', ""], [": keep-alive", ""]
    assert pauses([], ["retry: 2000", "id: 5", ""], []) == [0.1, 0.2, 0.4]
    assert pauses([], [], told, [], lasted) == [0.1, 0.2, 0.1, 0.2, 0.1]
    page = Answer(status=200, headers={"content-type": "text/html"}, body=b"")
    assert pauses([], page, page) == [0.1, 0.2, 0.4]
    with pytest.raises(Unreachable, match="not hourhand"):
        pauses(page)


def test_people_are_told_beside_the_events_that_some_are_missing(
    hourhand: Any, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = {"type": "job.paused", "at": "2026-11-16T08:00:00Z", "job_id": "J-1", "run_id": None, "data": {}}
    frames = f"event: reset\ndata: {{}}\n\nevent: job.paused\ndata: {json.dumps(event)}\n\n"
    recorder.replies = [(200, frames.encode(), {"Content-Type": "text/event-stream"})]
    done = hourhand("tail", "-n", "1", "--server", recorder.url)
    assert (done.code, len(done.out.splitlines())) == (0, 1), done.err
    assert "some events are missing" in done.err
    done = hourhand("tail", "-n", "1", "--jsonl", "--server", recorder.url)
    assert json.loads(done.out.splitlines()[0])["type"] == "reset"


def taken(*lines: str) -> list[Any]:
    frames = Frames()
    return [found for line in lines if (found := frames.take(line)) is not None]


def test_frames() -> None:
    assert taken("retry: 2000", "", "id: 5", "", ": keep-alive", "") == []
    assert taken("id: 5", "event: reset", "data: {}", "") == [{"type": "reset", "id": "5"}]
    assert taken("event:x", 'data: {"a":', "data: 1}", "") == [{"type": "x", "id": None, "a": 1}]
    assert taken("event: x", "data: not json", "", "data: [1]", "") == []
    frames = Frames(last_id="1")
    assert frames.take("id: 2") is None
    assert frames.last_id == "1"  # it has not come whole
    assert frames.take("") is None
    assert frames.last_id == "2"


def test_a_frame_that_breaks_off_is_asked_for_again() -> None:
    frames = Frames(last_id="1")
    for line in ("id: 2", "event: run.started", 'data: {"a'):
        assert frames.take(line) is None
    frames.begin()
    assert frames.last_id == "1"
    assert [frames.take(line) for line in ("id: 2", 'data: {"a": 1}', "")][-1] == {
        "type": "",
        "id": "2",
        "a": 1,
    }
