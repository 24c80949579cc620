"""What lists and the first view read beside the documents: strips of runs, and how everything stands."""

import httpx2

from hourhand.clock import ManualClock
from hourhand.core.instant import SECOND_US
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.runs import RunList, StripList
from hourhand.web.shapes.system import OverviewAnswer
from tests.web.conftest import MakeApp
from tests.web.test_guards import asking
from tests.web.test_jobs_routes import create
from tests.web.test_runs_routes import Scene


async def test_strips_of_some_jobs_in_the_order_asked(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    scene = Scene(client, store, clock)
    first, second = await create(client), await create(client)
    dead_id = await scene.dead(first)
    asked = [("job_id", second), ("job_id", first), ("job_id", "J-0000000000000")]
    strips = StripList.model_validate((await client.get("/v1/jobs/strips", params=asked)).json()).data
    assert [(one.job_id, [run.status for run in one.runs]) for one in strips] == [
        (second, []),
        (first, ["FAILED"]),
    ]
    assert strips[1].runs[0].run_id == dead_id


async def test_strips_have_limits(client: httpx2.AsyncClient) -> None:
    many = [("job_id", "J-0000000000000")] * 101
    for params, pointer in (
        (many, "?job_id"),
        ([], "?job_id"),
        ([("job_id", "x")], "?job_id"),
        ([*many[:1], ("limit", 101)], "?limit"),
    ):
        answer = await client.get("/v1/jobs/strips", params=params)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


async def test_a_list_without_payloads(client: httpx2.AsyncClient) -> None:
    await create(client, payload={"a": 1})
    [whole] = (await client.get("/v1/jobs")).json()["data"]
    [light] = (await client.get("/v1/jobs?payload=false")).json()["data"]
    assert whole["payload"] == {"a": 1}
    assert light == {**whole, "payload": None}


async def test_a_history_without_what_lies_ahead(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    scene = Scene(client, store, clock)
    job_id = await create(client)
    whole = RunList.model_validate((await client.get(f"/v1/jobs/{job_id}/history")).json()).data
    assert [run.status for run in whole] == ["PENDING"]
    run_id = await scene.run(job_id)
    past = RunList.model_validate((await client.get(f"/v1/jobs/{job_id}/history?coming=false")).json()).data
    assert [run.run_id for run in past] == [run_id]
    clock.advance(-10 * SECOND_US)
    assert (await client.get(f"/v1/jobs/{job_id}/history?coming=false")).json()["data"] == []


async def test_the_overview(make_app: MakeApp, store: SqliteStore, clock: ManualClock) -> None:
    async with asking(make_app(parts=lambda: {"planner": None, "worker": "stuck"})) as client:
        await create(client)
        await store.renew_node(7, "up", "host-1", 30 * SECOND_US)
        await store.renew_node(8, "worker", "host-2", SECOND_US)
        clock.advance(2 * SECOND_US)
        seen = OverviewAnswer.model_validate((await client.get("/v1/overview")).json())
    assert seen.parts == {"planner": "ok", "worker": "stuck"}
    assert (seen.sizes.jobs, seen.sizes.dead) == (1, 0)
    assert [(one.kind, one.alive) for one in seen.processes] == [("up", 1)]
    assert (seen.minutes, seen.changes, seen.hour.failed) == ([], [], 0)
