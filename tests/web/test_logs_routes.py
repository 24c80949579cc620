"""What runs said: read page by page, followed with a bounded wait, and done when nothing more can come."""

import asyncio
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hourhand.clock import ManualClock
from hourhand.core.identity import RunKey, parse_run_id
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.log import LogChunk, Stream
from hourhand.core.run import ClaimedRun
from hourhand.services import run_logs
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.jobs import JobAnswer
from hourhand.web.shapes.logs import LogAnswer
from tests.web import worker

SHELL = {"type": "shell", "argv": ["backup", "--all"]}


class Scene:
    """A shell job, a run of it in a worker's hand, and a client."""

    def __init__(self, client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> None:
        self.client = client
        self.store = store
        self.clock = clock

    async def begin(self) -> ClaimedRun:
        answer = await self.client.post("/v1/jobs", json={"every": "1h", "target": SHELL})
        await self.client.post(f"/v1/jobs/{answer.json()['job_id']}/run")
        self.clock.advance(SECOND_US)
        return await self.again()

    async def again(self) -> ClaimedRun:
        [run] = await worker.take(self.store)
        return run

    async def say(self, run: ClaimedRun, *texts: str, first: int = 1) -> None:
        await self.store.append_log(
            [
                LogChunk(
                    job_id=run.job_id,
                    scheduled_at=run.scheduled_at,
                    attempt=run.fence,
                    seq=seq,
                    at=self.clock.now(),
                    stream=Stream.OUTPUT,
                    text=text,
                )
                for seq, text in enumerate(texts, first)
            ]
        )

    async def end(self, run: ClaimedRun, event: Event = Event.SUCCEED, tries: int = 0) -> None:
        await worker.end(self.store, self.clock, run, event, {}, tries)

    async def read(self, run: ClaimedRun, **query: Any) -> LogAnswer:
        answer = await self.client.get(f"/v1/runs/{run.run_id}/log", params=query)
        assert answer.status_code == 200, answer.text
        return LogAnswer.model_validate(answer.json())

    async def texts(self, run: ClaimedRun, **query: Any) -> list[str]:
        return [chunk.text for chunk in (await self.read(run, **query)).data]


@pytest.fixture
def scene(client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> Scene:
    return Scene(client, store, clock)


async def test_a_run_that_said_nothing(scene: Scene) -> None:
    run = await scene.begin()
    page = await scene.read(run)
    assert (page.data, page.next_after, page.done) == ([], "0-0", False)
    await scene.end(run)
    scene.clock.advance(2 * SECOND_US)
    assert (await scene.read(run)).done


async def test_pages_follow_one_another(scene: Scene) -> None:
    run = await scene.begin()
    await scene.say(run, "one\n", "two\n", "three\n")
    first = await scene.read(run, limit=2)
    assert [chunk.text for chunk in first.data] == ["one\n", "two\n"]
    assert (first.next_after, first.done) == ("1-2", False)
    second = await scene.read(run, after=first.next_after)
    assert [chunk.text for chunk in second.data] == ["three\n"]
    assert (await scene.read(run, after=second.next_after)).next_after == second.next_after


async def test_attempts_in_their_order_or_one_alone(scene: Scene) -> None:
    run = await scene.begin()
    await scene.say(run, "first\n")
    await scene.end(run, Event.RETRY, tries=1)
    scene.clock.advance(5 * SECOND_US)
    again = await scene.again()
    await scene.say(again, "second\n")
    assert await scene.texts(run) == ["first\n", "second\n"]
    assert await scene.texts(run, attempt=1) == ["first\n"]
    assert await scene.texts(run, attempt=2) == ["second\n"]
    assert (await scene.read(run, attempt=1)).done
    assert not (await scene.read(run, attempt=2)).done
    assert not (await scene.read(run)).done


async def test_an_attempt_that_there_is_not(scene: Scene) -> None:
    run = await scene.begin()
    assert (await scene.read(run, attempt=1)).data == []
    coming = await scene.read(run, attempt=2)
    assert (coming.data, coming.done) == ([], False)  # it may be the next
    assert (await scene.client.get(f"/v1/runs/{run.run_id}/log?attempt=3")).status_code == 404
    assert not (await scene.read(run, attempt=3, wait=0.01)).done  # who follows may wait for it
    await scene.end(run)
    for query in ("attempt=2", "attempt=2&wait=5"):
        answer = await scene.client.get(f"/v1/runs/{run.run_id}/log?{query}")
        assert (answer.status_code, "has no attempt 2; it has 1" in answer.text) == (404, True)


async def test_the_end_counts_a_moment_later(scene: Scene) -> None:
    """What a function logged last may still be on its way."""
    run = await scene.begin()
    scene.clock.now_at = run.due_at + 25_000  # when the worker says that it ended
    await scene.end(run)
    assert not (await scene.read(run)).done
    scene.clock.advance(SECOND_US)
    assert (await scene.read(run)).done


async def test_a_full_page_is_not_the_end(scene: Scene) -> None:
    run = await scene.begin()
    await scene.say(run, "one", "two")
    await scene.end(run)
    scene.clock.advance(2 * SECOND_US)
    assert not (await scene.read(run, limit=2)).done
    assert (await scene.read(run, limit=3)).done


async def test_whoever_waits_gets_it_when_it_comes(scene: Scene) -> None:
    run = await scene.begin()
    reading = asyncio.create_task(scene.texts(run, wait=20))
    await asyncio.sleep(0.02)
    assert not reading.done()
    await scene.say(run, "at last\n")
    assert await asyncio.wait_for(reading, 5) == ["at last\n"]


async def test_a_wait_ends(scene: Scene) -> None:
    run = await scene.begin()
    assert await asyncio.wait_for(scene.texts(run, wait=0.05), 5) == []


async def test_a_wait_ends_with_the_run(scene: Scene) -> None:
    run = await scene.begin()
    reading = asyncio.create_task(scene.read(run, wait=20))
    await asyncio.sleep(0.02)
    await scene.end(run)
    scene.clock.advance(2 * SECOND_US)
    assert (await asyncio.wait_for(reading, 5)).done


async def test_a_wait_ends_with_the_process(scene: Scene, app: FastAPI) -> None:
    run = await scene.begin()
    reading = asyncio.create_task(scene.read(run, wait=20))
    await asyncio.sleep(0.02)
    app.state.context.events.close()
    assert not (await asyncio.wait_for(reading, 5)).done


async def test_only_so_many_wait(scene: Scene, app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_logs, "MAX_WAITING", 1)
    run = await scene.begin()
    waiting = asyncio.create_task(scene.read(run, wait=20))
    await asyncio.sleep(0.02)
    assert not (await asyncio.wait_for(scene.read(run, wait=20), 5)).done
    waiting.cancel()
    await asyncio.wait({waiting})
    assert app.state.context.logs._waiting == 0


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"after": "x"}, "?after"),
        ({"after": "1-"}, "?after"),
        ({"after": "1-99999999999"}, "?after"),
        ({"attempt": "0"}, "?attempt"),
        ({"wait": "21"}, "?wait"),
        ({"limit": "1001"}, "?limit"),
        ({"follow": "true"}, "?follow"),
    ],
)
async def test_what_is_refused(scene: Scene, query: dict[str, str], pointer: str) -> None:
    run = await scene.begin()
    answer = await scene.client.get(f"/v1/runs/{run.run_id}/log", params=query)
    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


async def test_there_is_no_such_run(scene: Scene) -> None:
    run = await scene.begin()
    key = parse_run_id(run.run_id)
    assert key == RunKey(run.job_id, run.scheduled_at)
    for run_id in ("nonsense", "J-0000000000001@20261116T080000Z"):
        assert (await scene.client.get(f"/v1/runs/{run_id}/log")).status_code == 404


# --- shell jobs as documents


async def made(client: httpx2.AsyncClient, target: dict[str, Any]) -> str:
    answer = await client.post("/v1/jobs", json={"every": "1h", "target": target})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["job_id"])


async def test_a_shell_job_reads_back_as_it_is(client: httpx2.AsyncClient) -> None:
    target = {
        **SHELL,
        "env": {"LEVEL": "3"},
        "cwd": "/srv",
        "success_codes": [0, 3],
        "no_retry_codes": [],
    }
    job = (await client.get(f"/v1/jobs/{await made(client, target)}")).json()
    assert JobAnswer.model_validate(job).target == target
    answer = await client.put(f"/v1/jobs/{job['job_id']}", json=job)
    assert (answer.status_code, answer.json()["target"]) == (200, target)


async def test_type_may_be_left_out_and_defaults_are_told(client: httpx2.AsyncClient) -> None:
    job_id = await made(client, {"argv": ["true"]})
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["target"] == {
        "type": "shell",
        "argv": ["true"],
        "env": {},
        "cwd": None,
        "success_codes": [0],
        "no_retry_codes": [64, 65, 77, 78, 126, 127],
    }


async def test_a_patch_changes_what_it_names(client: httpx2.AsyncClient) -> None:
    job_id = await made(client, {"argv": ["true"], "env": {"A": "1"}})
    patch = {"target": {"env": {"B": "2"}, "argv": ["false"]}}
    target = (await client.patch(f"/v1/jobs/{job_id}", json=patch)).json()["target"]
    assert (target["argv"], target["env"]) == (["false"], {"A": "1", "B": "2"})
    patch = {"target": {"url": "https://example.com"}}
    assert (await client.patch(f"/v1/jobs/{job_id}", json=patch)).json()["target"]["type"] == "http"
    patch = {"target": {"argv": ["true"]}}
    assert (await client.patch(f"/v1/jobs/{job_id}", json=patch)).json()["target"]["type"] == "shell"


@pytest.mark.parametrize(
    ("target", "pointer"),
    [
        ({"type": "shell"}, "/target/argv"),
        ({"argv": []}, "/target/argv"),
        ({"argv": "rm -rf /"}, "/target/argv"),
        ({"argv": ["a", 1]}, "/target/argv/1"),
        ({"argv": ["a"], "shell": True}, "/target/shell"),
        ({"argv": ["a"], "env": {"A": 1}}, "/target/env/A"),
        ({"argv": ["a"], "env": {"HOURHAND_X": "1"}}, "/target/env/HOURHAND_X"),
        ({"argv": ["a"], "success_codes": [True]}, "/target/success_codes/0"),
        ({"argv": ["a"], "success_codes": [300]}, "/target/success_codes/0"),
    ],
)
async def test_what_is_no_command(client: httpx2.AsyncClient, target: dict[str, Any], pointer: str) -> None:
    answer = await client.post("/v1/jobs", json={"every": "1h", "target": target})
    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
