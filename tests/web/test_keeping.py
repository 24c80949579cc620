"""`Idempotency-Key`: whatever is sent twice happens once, through crashes too."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import msgspec
import pytest
from fastapi import FastAPI

from hourhand.clock import ManualClock
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.repeating import LEASE_US, MAX_ANSWER_BYTES
from hourhand.errors import Unavailable
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web import keeping
from tests.web.conftest import ADDRESS

JOB = {"name": "a", "cron": "0 9 * * *", "callback_url": "https://example.com/x"}
KEY = {"Idempotency-Key": "k-1"}

Ask = Callable[[], Awaitable[httpx2.Response]]


async def names(client: httpx2.AsyncClient) -> list[str]:
    return [job["name"] for job in (await client.get("/api/v1/jobs")).json()["data"]]


async def test_a_repeat_gets_the_same_answer_and_says_so(client: httpx2.AsyncClient) -> None:
    first = await client.post("/api/v1/jobs", json=JOB, headers=KEY)
    again = await client.post("/api/v1/jobs", json=JOB, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    for name in ("location", "etag", "content-type"):
        assert again.headers[name] == first.headers[name]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert await names(client) == ["a"]


async def test_the_same_route_under_its_other_name_is_the_same_request(client: httpx2.AsyncClient) -> None:
    await client.post("/api/v1/jobs", json=JOB, headers=KEY)
    assert "Idempotency-Replayed" in (await client.post("/v1/jobs", json=JOB, headers=KEY)).headers


async def test_another_request_with_the_key_is_refused(client: httpx2.AsyncClient) -> None:
    made = (await client.post("/api/v1/jobs", json=JOB, headers=KEY)).json()["job_id"]
    path = f"/api/v1/jobs/{made}"
    for answer in (
        await client.post("/api/v1/jobs", json={**JOB, "name": "b"}, headers=KEY),
        await client.post(f"{path}/pause", headers=KEY),
        await client.patch(path, json=JOB, headers=KEY),
        await client.post("/api/v1/jobs/bulk", json=[JOB], headers=KEY),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert await names(client) == ["a"]


async def test_a_tenants_key_is_its_own(client: httpx2.AsyncClient) -> None:
    for tenant in ("blue", "green"):
        answer = await client.post("/api/v1/jobs", json=JOB, headers={**KEY, "Hourhand-Tenant": tenant})
        assert (answer.status_code, answer.headers.get("Idempotency-Replayed")) == (201, None)


async def test_after_a_day_the_key_is_free(client: httpx2.AsyncClient, clock: ManualClock) -> None:
    await client.post("/api/v1/jobs", json=JOB, headers=KEY)
    clock.advance(DAY_US)
    assert (await client.post("/api/v1/jobs", json={**JOB, "name": "b"}, headers=KEY)).status_code == 201


async def test_while_the_first_is_under_way_a_repeat_has_to_wait(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    real = keeping._under

    async def slow(*arguments: object) -> object:
        begun.set()
        await go_on.wait()
        return await real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(keeping, "_under", slow)
    first = asyncio.create_task(client.post("/api/v1/jobs", json=JOB, headers=KEY))
    await begun.wait()
    again = await client.post("/api/v1/jobs", json=JOB, headers=KEY)
    assert (again.status_code, again.json()["code"], again.json()["retryable"]) == (409, "in_flight", True)
    assert again.headers["Retry-After"] == "2"
    go_on.set()
    assert (await first).status_code == 201
    assert (await client.post("/api/v1/jobs", json=JOB, headers=KEY)).status_code == 201
    assert await names(client) == ["a"]


async def test_refusals_are_kept_too(client: httpx2.AsyncClient) -> None:
    first = await client.post("/api/v1/jobs", json={**JOB, "cron": "99 * * * *"}, headers=KEY)
    again = await client.post("/api/v1/jobs", json={**JOB, "cron": "99 * * * *"}, headers=KEY)
    assert (first.status_code, again.content) == (422, first.content)
    assert again.headers["content-type"] == "application/problem+json"
    wrong = await client.post("/api/v1/jobs?dry_runn=1", json=JOB, headers={"Idempotency-Key": "k-2"})
    assert wrong.status_code == 422


async def test_dry_runs_keep_nothing(client: httpx2.AsyncClient) -> None:
    for name in ("a", "b"):
        answer = await client.post("/api/v1/jobs?dry_run=true", json={**JOB, "name": name}, headers=KEY)
        assert answer.status_code == 200
    assert (await client.post("/api/v1/jobs", json=JOB, headers=KEY)).status_code == 201


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
@pytest.mark.parametrize("key", ["x" * 256, "with space", "ü", "", " "])
async def test_keys_that_are_none(client: httpx2.AsyncClient, key: str, query: str) -> None:
    answer = await client.post(f"/api/v1/jobs{query}", json=JOB, headers={"Idempotency-Key": key.encode()})
    assert answer.status_code == 422
    assert await names(client) == []


async def test_a_stream_with_a_key_is_bounded(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {**KEY, "Content-Type": "application/x-ndjson"}
    lines = b"\n".join(msgspec.json.encode({**JOB, "name": f"n{n}"}) for n in range(5))
    first = await client.post("/api/v1/jobs/bulk", content=lines, headers=headers)
    again = await client.post("/api/v1/jobs/bulk", content=lines, headers=headers)
    assert (first.json()["created"], again.content) == (5, first.content)
    assert len(await names(client)) == 5
    monkeypatch.setattr(keeping, "KEYED_BYTES", 100)
    more = await client.post("/api/v1/jobs/bulk", content=lines, headers={**headers, "Idempotency-Key": "2"})
    assert more.status_code == 413


async def test_an_answer_that_is_too_large_is_told_again_from_what_is_there(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_ANSWER_BYTES == 1024 * 1024
    monkeypatch.setattr(keeping, "MAX_ANSWER_BYTES", 10)
    jobs = [{**JOB, "name": f"n{n}"} for n in range(3)]
    first = await client.post("/api/v1/jobs/bulk", json=jobs, headers=KEY)
    again = await client.post("/api/v1/jobs/bulk", json=jobs, headers=KEY)
    assert again.json() == first.json()
    assert sorted(await names(client)) == ["n0", "n1", "n2"]


async def _made(client: httpx2.AsyncClient) -> str:
    return f"/api/v1/jobs/{(await client.post('/api/v1/jobs', json=JOB)).json()['job_id']}"


async def test_what_failed_before_it_changed_anything_is_carried_out_again(
    client: httpx2.AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store.create_jobs

    async def away(*_: object) -> object:
        raise Unavailable("away")

    monkeypatch.setattr(store, "create_jobs", away)
    assert (await client.post("/api/v1/jobs", json=JOB, headers=KEY)).status_code == 503
    monkeypatch.setattr(store, "create_jobs", real)
    again = await client.post("/api/v1/jobs", json=JOB, headers=KEY)
    assert (again.status_code, "Idempotency-Replayed" in again.headers) == (201, False)
    assert await names(client) == ["a"]


async def _fails_after(store: SqliteStore, monkeypatch: pytest.MonkeyPatch, verb: str, ask: Ask) -> None:
    """The change happened, but its answer got lost: the store says so after the commit."""
    real = getattr(store, verb)

    async def committed_and_lost(*arguments: object, **options: object) -> object:
        await real(*arguments, **options)
        raise Unavailable("the connection broke")

    monkeypatch.setattr(store, verb, committed_and_lost)
    assert (await ask()).status_code == 503
    monkeypatch.setattr(store, verb, real)


async def test_a_create_whose_commit_was_not_heard_of_is_found_again(
    client: httpx2.AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> httpx2.Response:
        return await client.post("/api/v1/jobs", json={**JOB, "key": "mine"}, headers=KEY)

    await _fails_after(store, monkeypatch, "create_jobs", ask)
    again = await ask()
    assert again.status_code == 201
    (job,) = (await client.get("/api/v1/jobs")).json()["data"]
    assert job["job_id"] == again.json()["job_id"]
    await client.delete(f"/api/v1/jobs/{job['job_id']}")
    assert (await ask()).headers["Idempotency-Replayed"] == "true"
    assert await names(client) == []


@pytest.mark.parametrize(
    ("verb", "action", "body"),
    [("change_job", "pause", None), ("skip_time", "skip", None), ("change_job", "", {"name": "b"})],
)
async def test_a_change_whose_commit_was_not_heard_of_is_not_made_twice(
    client: httpx2.AsyncClient,
    store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    action: str,
    body: dict[str, str] | None,
) -> None:
    path = await _made(client)

    async def ask() -> httpx2.Response:
        if body is not None:
            return await client.patch(path, json=body, headers=KEY)
        return await client.post(f"{path}/{action}", headers=KEY)

    await _fails_after(store, monkeypatch, verb, ask)
    version, status = (await client.get(path)).json()["version"], (await client.get(f"{path}/status")).json()
    again = await ask()
    assert (again.status_code, again.json()["code"], again.json()["retryable"]) == (409, "answer_lost", False)
    assert (await client.get(path)).json()["version"] == version
    assert (await client.get(f"{path}/status")).json() == status


async def test_a_run_whose_commit_was_not_heard_of_is_found_again(
    client: httpx2.AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await _made(client)

    async def ask() -> httpx2.Response:
        return await client.post(f"{path}/run", headers=KEY)

    await _fails_after(store, monkeypatch, "add_run", ask)
    assert (await ask()).status_code == 202
    history = (await client.get(f"{path}/history?coming=false")).json()["data"]
    assert [run["trigger"] for run in history] == ["manual"]


_KILLED = """
import asyncio, os, sys
from pathlib import Path
import httpx2
from hourhand.clock import ManualClock
from hourhand.services.repeats import Repeats
from hourhand.stores.sqlite.store import SqliteStore
from tests.web.test_keeping import ask_bulk, open_app

async def main() -> None:
    async def die(*_: object) -> None:
        os._exit(9)  # the jobs are stored, their answer is not
    Repeats.keep = die
    clock = ManualClock()
    store = SqliteStore.open(Path(sys.argv[1]), clock=clock)
    await ask_bulk(open_app(store, clock), sys.argv[2])

asyncio.run(main())
"""


def open_app(store: SqliteStore, clock: ManualClock) -> FastAPI:
    """An application over a file."""
    from prometheus_client import CollectorRegistry

    from hourhand.core.specification import SpecLimits
    from hourhand.ids import IdSource
    from hourhand.services.jobs import Jobs
    from hourhand.services.runs import Runs
    from hourhand.web.app import create_app

    return create_app(
        jobs=Jobs(store=store, ids=IdSource(clock), clock=clock, limits=SpecLimits()),
        runs=Runs(store=store, clock=clock, horizon_us=SECOND_US),
        store=store,
        clock=clock,
        registry=CollectorRegistry(),
    )


async def ask_bulk(app: FastAPI, path: str) -> httpx2.Response:
    """Three jobs under a key; the second has a key of its own, the third is wrong. Or one job."""
    bodies: dict[str, object] = {
        "/api/v1/jobs": JOB,
        "/api/v1/jobs/bulk": [JOB, {**JOB, "key": "b"}, {**JOB, "cron": "wrong"}],
    }
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as client:
        return await client.post(path, json=bodies[path], headers=KEY)


@pytest.mark.parametrize(("path", "count"), [("/api/v1/jobs", 1), ("/api/v1/jobs/bulk", 2)])
async def test_killed_between_the_change_and_keeping_its_answer(
    tmp_path: Path, path: str, count: int
) -> None:
    file = tmp_path / "jobs.db"
    died = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", _KILLED, str(file), path], timeout=60, check=False
    )
    assert died.returncode == 9
    clock = ManualClock()
    store = SqliteStore.open(file, clock=clock)
    try:
        app = open_app(store, clock)
        assert (await ask_bulk(app, path)).status_code == 409  # it may still be at work
        clock.advance(LEASE_US)
        again = await ask_bulk(app, path)
        found = again.json()
        told = [found] if count == 1 else [one for one in found["results"] if one["status"] == 201]
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as client:
            listed = (await client.get("/api/v1/jobs")).json()["data"]
        assert sorted(one["job_id"] for one in told) == sorted(job["job_id"] for job in listed)
        assert len(listed) == count
        assert (await ask_bulk(app, path)).headers["Idempotency-Replayed"] == "true"
    finally:
        await store.close()
