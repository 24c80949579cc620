"""Runs across jobs, and dead letters: list, group, read, cancel, requeue, discard."""

from typing import Any

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import HOUR_US, SECOND_US
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.dead_letters import DeadChange, DeadGroupList, DeadLetterAnswer, DeadLetterList
from hourhand.web.shapes.runs import RunAnswer, RunList
from tests.web import worker
from tests.web.test_jobs_routes import create


class Scene:
    """A client with a worker beside it."""

    def __init__(self, client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> None:
        self.client = client
        self.store = store
        self.clock = clock

    async def run(self, job_id: str) -> str:
        answer = await self.client.post(f"/v1/jobs/{job_id}/run")
        self.clock.advance(SECOND_US)
        return str(answer.json()["run_id"])

    async def dead(self, job_id: str, error: str = "HTTP 500") -> str:
        await self.run(job_id)
        [run_id] = await worker.fail(self.store, self.clock, error)
        return run_id

    async def done(self, job_id: str) -> str:
        await self.run(job_id)
        [run_id] = await worker.succeed(self.store, self.clock)
        return run_id

    async def letters(self, **query: Any) -> list[str]:
        answer = await self.client.get("/v1/dead-letters", params=query)
        return [letter.run_id for letter in DeadLetterList.model_validate(answer.json()).data]

    async def change(self, action: str, body: dict[str, Any], query: str = "") -> DeadChange:
        answer = await self.client.post(f"/v1/dead-letters/{action}{query}", json=body)
        assert answer.status_code == 200, answer.text
        return DeadChange.model_validate(answer.json())


@pytest.fixture
def scene(client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> Scene:
    return Scene(client, store, clock)


# --- runs


async def test_finished_runs_of_the_last_hour_by_state_and_job(scene: Scene) -> None:
    one, two = await create(scene.client), await create(scene.client)
    old = await scene.done(one)
    scene.clock.advance(2 * HOUR_US)
    good, bad = await scene.done(one), await scene.dead(two)

    async def found(**query: Any) -> list[str]:
        answer = await scene.client.get("/v1/runs", params=query)
        return [run.run_id for run in RunList.model_validate(answer.json()).data]

    assert await found() == [bad, good]
    assert await found(state="FAILED") == [bad]
    assert await found(state=["FAILED", "SUCCEEDED"]) == [bad, good]
    assert await found(job_id=one) == [good]
    assert await found(**{"from": "2027-01-15T08:00:00Z"}) == [bad, good, old]
    assert await found(**{"from": "2027-01-15T08:00:00Z", "to": "2027-01-15T09:00:00+00:00"}) == [old]


async def test_running_runs_are_listed_by_state(scene: Scene) -> None:
    run_id = await scene.run(await create(scene.client))
    await worker.take(scene.store)
    answer = await scene.client.get("/v1/runs?state=RUNNING")
    assert [run["run_id"] for run in answer.json()["data"]] == [run_id]


async def test_lists_of_runs_go_on_by_cursor(scene: Scene) -> None:
    job_id = await create(scene.client)
    made = [await scene.done(job_id) for _ in range(5)]
    seen: list[str] = []
    address: str | None = "/v1/runs?limit=2"
    while address is not None:
        answer = await scene.client.get(address)
        seen += [run["run_id"] for run in answer.json()["data"]]
        link = answer.headers.get("link")
        address = None if link is None else link[1:].partition(">")[0]
    assert seen == made[::-1]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("from=yesterday", "?from"),
        ("to=2027-01-15", "?to"),
        ("from=2027-01-15T09:00:00Z&to=2027-01-15T08:00:00Z", "?from"),
        ("state=DONE", "?state"),
        ("job_id=x", "?job_id"),
    ],
)
async def test_windows_that_are_refused(client: httpx2.AsyncClient, query: str, pointer: str) -> None:
    answer = await client.get(f"/v1/runs?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("wrong", ["J-0000000000000@20270115T080000Z", "J-0000000000000", "x@y", "x"])
async def test_runs_that_are_not_there(client: httpx2.AsyncClient, wrong: str) -> None:
    assert (await client.get(f"/v1/runs/{wrong}")).status_code == 404
    assert (await client.post(f"/v1/runs/{wrong}/cancel")).status_code == 404
    assert (await client.get(f"/v1/dead-letters/{wrong}")).status_code == 404


async def test_cancel_a_waiting_a_running_and_a_finished_run(scene: Scene) -> None:
    job_id = await create(scene.client, concurrency=2)
    waiting = await scene.run(job_id)
    tried = await scene.client.post(f"/v1/runs/{waiting}/cancel?dry_run=true")
    assert (tried.status_code, tried.json()["status"], tried.json()["dry_run"]) == (200, "PENDING", True)
    answer = await scene.client.post(f"/v1/runs/{waiting}/cancel")
    run = RunAnswer.model_validate(answer.json())
    assert (answer.status_code, run.status, run.reason) == (200, "CANCELLED", "asked for")

    running = await scene.run(job_id)
    await worker.take(scene.store)
    answer = await scene.client.post(f"/v1/runs/{running}/cancel")
    assert (answer.status_code, answer.json()["status"], answer.json()["cancel_asked"]) == (
        202,
        "RUNNING",
        True,
    )

    for address in (f"/v1/runs/{waiting}/cancel", f"/v1/runs/{waiting}/cancel?dry_run=true"):
        answer = await scene.client.post(address)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


# --- dead letters


async def test_dead_letters_are_listed_filtered_and_paged(scene: Scene) -> None:
    one, two = await create(scene.client, name="one"), await create(scene.client)
    made = [await scene.dead(one), await scene.dead(one, "connection refused"), await scene.dead(two)]
    assert await scene.letters() == made[::-1]
    assert await scene.letters(job_id=one) == [made[1], made[0]]
    [letter] = (await scene.client.get("/v1/dead-letters?limit=1")).json()["data"]
    assert await scene.letters(error=letter["fingerprint"]) == [made[2], made[0]]
    assert await scene.letters(to="2027-01-15T08:00:00.5Z") == [made[0]]
    assert await scene.letters(**{"from": "2027-01-15T08:00:01.5Z"}) == [made[2]]
    first = (await scene.client.get("/v1/dead-letters?limit=2")).json()
    rest = (
        await scene.client.get("/v1/dead-letters", params={"limit": 2, "cursor": first["next_cursor"]})
    ).json()
    assert [one["run_id"] for one in first["data"] + rest["data"]] == made[::-1]


async def test_dead_letters_are_grouped(scene: Scene) -> None:
    one, two = await create(scene.client, name="one"), await create(scene.client, name="two")
    for job_id, error in ((one, "HTTP 500"), (one, "connection refused"), (two, "HTTP 500")):
        await scene.dead(job_id, error)
    answer = await scene.client.get("/v1/dead-letters?group_by=error")
    groups = DeadGroupList.model_validate(answer.json()).data
    assert [(group.count, group.sample.error) for group in groups] == [
        (2, "HTTP 500"),
        (1, "connection refused"),
    ]
    answer = await scene.client.get("/v1/dead-letters?group_by=job")
    assert [(one["value"], one["count"]) for one in answer.json()["data"]] == [("one", 2), ("two", 1)]
    for query in ("group_by=day", f"group_by=job&job_id={one}"):
        assert (await scene.client.get(f"/v1/dead-letters?{query}")).status_code == 422


async def test_a_dead_letter_is_read_with_its_run(scene: Scene) -> None:
    job_id = await create(scene.client, name="daily")
    run_id = await scene.dead(job_id)
    letter = DeadLetterAnswer.model_validate((await scene.client.get(f"/v1/dead-letters/{run_id}")).json())
    assert (letter.job_name, letter.tries, letter.error) == ("daily", 4, "HTTP 500")
    assert letter.run is not None
    assert (letter.run.status, letter.run.response) == ("FAILED", {"status": 500})
    good = await scene.done(job_id)
    assert (await scene.client.get(f"/v1/dead-letters/{good}")).status_code == 404


@pytest.mark.parametrize(("action", "state"), [("requeue", "PENDING"), ("discard", "FAILED")])
async def test_dead_letters_leave_by_id(scene: Scene, action: str, state: str) -> None:
    job_id = await create(scene.client)
    made = [await scene.dead(job_id) for _ in range(2)]
    good = await scene.done(job_id)
    body = {"ids": [made[0], good, made[0]]}
    for query, extra in (("?dry_run=true", {}), ("", {"dry_run": True})):
        tried = await scene.change(action, {**body, **extra}, query)
        assert (tried.count, tried.run_ids, tried.not_found, tried.dry_run) == (1, [made[0]], [good], True)
    assert await scene.letters() == made[::-1]
    done = await scene.change(action, body)
    assert (done.count, done.run_ids, done.not_found, done.more) == (1, [made[0]], [good], False)
    assert await scene.letters() == [made[1]]
    assert (await scene.client.get(f"/v1/runs/{made[0]}")).json()["status"] == state
    assert (await scene.change(action, {"ids": [made[0]]})).not_found == [made[0]]


async def test_dead_letters_leave_by_filter(scene: Scene) -> None:
    one, two = await create(scene.client), await create(scene.client)
    made = [await scene.dead(one), await scene.dead(two), await scene.dead(one)]
    tried = await scene.change("requeue", {"filter": {"job_id": one}}, "?dry_run=true")
    assert sorted(tried.run_ids) == sorted([made[0], made[2]])
    done = await scene.change("requeue", {"filter": {"job_id": one, "from": "2027-01-15T08:00:01Z"}})
    assert done.run_ids == [made[2]]
    assert (await scene.change("discard", {"filter": {}})).count == 2
    assert await scene.letters() == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({"ids": ["x"], "filter": {}}, ""),
        ({"ids": []}, "/ids"),
        ({"ids": ["J-0000000000000@20270115T080000Z", "x"]}, "/ids/1"),
        ({"ids": "all"}, "/ids"),
        ({"filter": {"job_id": "x"}}, "/filter/job_id"),
        ({"filter": {"error": None}}, "/filter/error"),
        ({"filter": {"error": ""}}, "/filter/error"),
        ({"filter": {"job": "x"}}, "/filter/job"),
        ({"filter": {"from": "x"}}, "/filter/from"),
        ({"ids": ["J-0000000000000@20270115T080000Z"] * 1_001}, "/ids"),
    ],
)
@pytest.mark.parametrize("action", ["requeue", "discard"])
async def test_selections_that_are_refused(
    client: httpx2.AsyncClient, action: str, body: dict[str, Any], pointer: str
) -> None:
    answer = await client.post(f"/v1/dead-letters/{action}", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer
