"""The API over several databases: what people see of it, and of one that does not answer."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from hourhand.clock import ManualClock
from hourhand.core.buckets import even_map
from hourhand.core.identity import parse_job_id, shard_of
from hourhand.core.instant import MINUTE_US
from hourhand.core.repeating import LEASE_US
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.services.jobs import Jobs
from hourhand.services.runs import Runs
from hourhand.stores.sharded import ShardedStore
from hourhand.stores.sqlite import SqliteStore
from hourhand.web.app import create_app
from hourhand.web.shapes.jobs import JobList
from hourhand.web.shapes.runs import RunList, StripList
from hourhand.web.shapes.system import OverviewAnswer
from tests.services.world import FaultyStore
from tests.web import worker
from tests.web.conftest import ADDRESS

DAILY = {"cron": "0 9 * * *", "callback_url": "https://example.com/hook"}
PAST = {"at": "2027-01-15T07:59:00Z", "callback_url": "https://example.com/hook"}


@pytest.fixture
async def shards(clock: ManualClock) -> AsyncIterator[list[FaultyStore]]:
    opened = [FaultyStore(SqliteStore.in_memory(clock=clock)) for _ in range(2)]
    yield opened
    for shard in opened:
        shard.away = False
        await shard.close()


@pytest.fixture
async def client(shards: list[FaultyStore], clock: ManualClock) -> AsyncIterator[httpx2.AsyncClient]:
    store = ShardedStore(shards, even_map(2))
    app = create_app(
        jobs=Jobs(store=store, ids=IdSource(clock, seed=1), clock=clock, limits=SpecLimits()),
        runs=Runs(store=store, clock=clock, horizon_us=MINUTE_US),
        store=store,
        clock=clock,
        registry=CollectorRegistry(),
    )
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as opened:
        yield opened


async def test_a_bulk_import_is_spread_and_listed_page_by_page(client: httpx2.AsyncClient) -> None:
    documents = [{**DAILY, "name": f"{n}"} for n in range(20)]
    answer = (await client.post("/v1/jobs/bulk", json=documents)).json()
    ids = [result["job_id"] for result in answer["results"]]
    assert {shard_of(parse_job_id(job_id)) for job_id in ids} == {0, 1}
    listed, address = [], "/v1/jobs?limit=3"
    while address:
        page = await client.get(address)
        assert "partial" not in page.json()
        listed += [job["job_id"] for job in page.json()["data"]]
        address = page.links["next"]["url"] if "next" in page.links else ""
    assert listed == sorted(ids, reverse=True)  # ids of one millisecond go by shard


async def test_runs_are_listed_page_by_page_by_the_cursors_of_their_shards(
    client: httpx2.AsyncClient, shards: list[FaultyStore], clock: ManualClock
) -> None:
    await client.post("/v1/jobs/bulk", json=[PAST] * 9)
    ended = [run_id for shard in shards for run_id in await worker.succeed(shard, clock)]
    listed, cursor = [], {}
    while cursor is not None:
        page = (await client.get("/v1/runs", params={"limit": 2, **cursor})).json()
        RunList.model_validate(page)
        listed += [run["run_id"] for run in page["data"]]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert len(ended) == 9
    assert sorted(listed) == sorted(ended)


async def test_strips_and_the_overview_are_of_all_databases_that_answer(
    client: httpx2.AsyncClient, shards: list[FaultyStore], clock: ManualClock
) -> None:
    made = (await client.post("/v1/jobs/bulk", json=[PAST] * 10)).json()
    ids = [result["job_id"] for result in made["results"]]
    for shard in shards:
        await worker.succeed(shard, clock)
    asked = [("job_id", job_id) for job_id in reversed(ids)]
    strips = StripList.model_validate((await client.get("/v1/jobs/strips", params=asked)).json()).data
    assert [one.job_id for one in strips] == ids[::-1]
    assert {run.status for one in strips for run in one.runs} == {"SUCCEEDED"}
    seen = OverviewAnswer.model_validate((await client.get("/v1/overview")).json())
    assert seen.sizes.jobs == 10
    shards[1].away = True
    strips = StripList.model_validate((await client.get("/v1/jobs/strips", params=asked)).json()).data
    assert {shard_of(parse_job_id(one.job_id)) for one in strips} == {0}


async def test_pages_say_that_a_database_does_not_answer(
    client: httpx2.AsyncClient, shards: list[FaultyStore]
) -> None:
    await client.post("/v1/jobs/bulk", json=[DAILY] * 10)
    shards[1].away = True
    for path in ("jobs", "runs", "dead-letters"):
        answer = await client.get(f"/v1/{path}")
        assert (answer.status_code, answer.json()["partial"]) == (200, ["shard 1"])
    page = JobList.model_validate((await client.get("/v1/jobs")).json())
    assert {shard_of(parse_job_id(job.job_id or "")) for job in page.data} == {0}
    assert (await client.get("/readyz")).status_code == 200
    shards[0].away = True
    assert (await client.get("/readyz")).status_code == 503
    assert (await client.get("/v1/jobs")).status_code == 503


async def test_a_bulk_import_answers_503_for_those_whose_database_is_away(
    client: httpx2.AsyncClient, shards: list[FaultyStore]
) -> None:
    shards[1].away = True
    documents = [{**DAILY, "key": f"k{n}"} for n in range(20)]
    first = (await client.post("/v1/jobs/bulk", json=documents)).json()
    statuses = [result["status"] for result in first["results"]]
    assert set(statuses) == {201, 503}
    error = next(result["error"] for result in first["results"] if result["status"] == 503)
    assert (error["code"], error["retryable"]) == ("unavailable", True)
    shards[1].away = False
    again = (await client.post("/v1/jobs/bulk", json=documents)).json()
    assert [result["status"] for result in again["results"]] == [
        409 if status == 201 else 201 for status in statuses
    ]


async def test_a_job_that_wants_to_be_in_two_places_is_refused_in_words(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={**DAILY, "key": "billing/daily", "shard_key": "billing"})
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["pointer"] == "/shard_key"
    assert "{billing}/daily" in error["hint"]
    together = {**DAILY, "shard_key": "billing"}
    assert (await client.put("/v1/jobs/by-key/{billing}/daily", json=together)).status_code == 201


async def test_a_set_is_spread_applied_again_and_listed(client: httpx2.AsyncClient) -> None:
    documents = [{**DAILY, "key": f"k{n}", "set": "s"} for n in range(20)]
    answer = (await client.post("/v1/jobs/apply", json=documents)).json()
    ids = {result["job_id"] for result in answer["results"]}
    assert (answer["created"], {shard_of(parse_job_id(job_id)) for job_id in ids}) == (20, {0, 1})
    assert (await client.post("/v1/jobs/apply", json=documents)).json()["unchanged"] == 20
    listed = (await client.get("/v1/jobs?set=s&limit=50")).json()["data"]
    assert {job["job_id"] for job in listed} == ids


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
async def test_a_graph_lies_in_one_database(client: httpx2.AsyncClient, query: str) -> None:
    jobs = [(await client.post("/v1/jobs", json=DAILY)).json()["job_id"] for _ in range(8)]
    by_shard = {shard_of(parse_job_id(job_id)): job_id for job_id in jobs}
    assert set(by_shard) == {0, 1}
    target = {"callback_url": "https://example.com/hook"}
    beside = await client.post("/v1/jobs", json={**target, "after": [by_shard[1]]})
    assert shard_of(parse_job_id(beside.json()["job_id"])) == 1
    split = await client.post(f"/v1/jobs{query}", json={**target, "after": list(by_shard.values())})
    assert (split.status_code, split.json()["errors"][0]["pointer"]) == (422, "/after")
    assert "same word in braces" in split.json()["errors"][0]["hint"]
    moved = await client.patch(f"/v1/jobs/{by_shard[0]}{query}", json={"after": [by_shard[1]]})
    assert moved.json()["detail"] == "the jobs of a graph must lie in one database"
    graph = (await client.get(f"/v1/jobs/{by_shard[1]}/graph")).json()
    assert [job["level"] for job in graph["jobs"]] == [0, 1]
    keyed = [{**DAILY, "key": "{g}/a"}, {**target, "key": "{g}/b", "after": ["{g}/a"]}]
    assert (await client.post(f"/v1/jobs/apply{query}", json=keyed)).json()["created"] == 2


async def test_a_key_holds_over_all_databases(
    client: httpx2.AsyncClient, shards: list[FaultyStore], clock: ManualClock
) -> None:
    """The answer is not kept, as after a crash; a repeat finds what was made in either database."""
    documents, headers = [{**DAILY, "name": f"{n}"} for n in range(10)], {"Idempotency-Key": "k"}

    async def ask() -> httpx2.Response:
        return await client.post("/v1/jobs/bulk", json=documents, headers=headers)

    for shard in shards:
        shard.fail("finish_answer")
    first = await ask()
    assert {shard_of(parse_job_id(one["job_id"])) for one in first.json()["results"]} == {0, 1}
    assert (await ask()).status_code == 409
    clock.advance(LEASE_US)
    for away in shards:  # nobody knows what was made there
        away.away = True
        assert (await ask()).status_code == 503
        away.away = False
    again = await ask()
    assert again.json() == first.json()
    assert (await ask()).headers["Idempotency-Replayed"] == "true"
    assert len((await client.get("/v1/jobs")).json()["data"]) == 10
