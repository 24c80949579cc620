"""Operations by HTTP: counted, asked for, looked at, cancelled; over several databases as one."""

from typing import Any

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.ports.store import Store
from hourhand.services.jobs import Jobs
from hourhand.services.operator import Operator
from hourhand.services.runs import Runs
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.operations import OperationAnswer, OperationList
from tests.services.world import FaultyStore
from tests.web.conftest import ADDRESS, MakeApp
from tests.web.test_access import Doorman, bearer
from tests.web.test_jobs_routes import create
from tests.web.test_runs_routes import Scene
from tests.web.test_sharded_routes import DAILY, shards
from tests.web.test_sharded_routes import client as sharded_client

OF_JOBS = ("state", "tag", "set", "name", "failing")
OF_LETTERS = ("job_id", "error", "from", "to")

__all__ = ["sharded_client", "shards"]  # fixtures


def operator(store: Store, clock: ManualClock) -> Operator:
    jobs = Jobs(store=store, ids=IdSource(clock, seed=9), clock=clock, limits=SpecLimits())
    return Operator(store=store, jobs=jobs, runs=Runs(store=store, clock=clock, horizon_us=MINUTE_US))


async def carried_out(store: Store, clock: ManualClock) -> None:
    one = operator(store, clock)
    for _ in range(1_000):
        wake_at = await one.step(clock.now())
        if wake_at is None:
            return
        clock.advance(max(0, wake_at - clock.now()))
    raise AssertionError("it does not come to an end")


async def ask(client: httpx2.AsyncClient, status: int = 202, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/operations", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_count_first_then_the_operation(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    for _ in range(3):
        await create(client, tags=["x"])
    other = await create(client)
    seen = await ask(client, 200, action="pause", filter={"tag": "x"}, dry_run=True)
    assert (seen["matched"], seen["matched_is_exact"], seen["operation_id"]) == (3, True, None)
    answer = await client.post(
        "/api/v1/operations",
        json={"action": "pause", "filter": {"tag": "x"}, "expected_count": 3, "note": "INC-42"},
    )
    made = OperationAnswer.model_validate(answer.json())
    assert answer.headers["location"] == f"/api/v1/operations/{made.operation_id}"
    assert (answer.status_code, made.state, made.by) == (202, "running", "local")
    await carried_out(store, clock)
    done = OperationAnswer.model_validate((await client.get(answer.headers["location"])).json())
    assert (done.state, done.done, done.filter) == ("done", 3, {"tag": "x"})
    assert done.finished_at is not None
    states = {job["job_id"]: job["state"] for job in (await client.get("/v1/jobs")).json()["data"]}
    assert states.pop(other) == "active"
    assert set(states.values()) == {"paused"}
    listed = OperationList.model_validate((await client.get("/v1/operations")).json())
    assert [one.operation_id for one in listed.data] == [made.operation_id]


async def test_a_match_that_grew_is_a_conflict(client: httpx2.AsyncClient) -> None:
    await create(client)
    await create(client)
    problem = await ask(client, 409, action="delete", filter={}, expected_count=1)
    assert problem["code"] == "conflict"
    assert (await client.get("/v1/operations")).json()["data"] == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"action": "explode", "filter": {}}, "/action"),
        ({"filter": {}}, "/action"),
        ({"action": "pause"}, "/filter"),
        ({"action": "pause", "filter": {"tags": "x"}}, "/filter/tags"),
        ({"action": "pause", "filter": {"error": "x"}}, "/filter/error"),
        ({"action": "requeue", "filter": {"tag": "x"}}, "/filter/tag"),
        ({"action": "requeue", "filter": {"job_id": "x"}}, "/filter/job_id"),
        ({"action": "requeue", "filter": {"from": "today"}}, "/filter/from"),
        *(({"action": "pause", "filter": {name: None}}, f"/filter/{name}") for name in OF_JOBS),
        *(({"action": "discard", "filter": {name: None}}, f"/filter/{name}") for name in OF_LETTERS),
        *(({"action": "pause", "filter": {name: ""}}, f"/filter/{name}") for name in ("tag", "set", "name")),
        ({"action": "requeue", "filter": {"error": ""}}, "/filter/error"),
        ({"action": "delete", "filter": {"name": "x" * 201}}, "/filter/name"),
        ({"action": "pause", "filter": {}, "expected_count": -1}, "/expected_count"),
        ({"action": "pause", "filter": {}, "expected_count": 1_000_000}, "/expected_count"),
        ({"action": "pause", "filter": {}, "rate": "fast"}, "/rate"),
        ({"action": "pause", "filter": {}, "note": "x" * 501}, "/note"),
    ],
)
async def test_what_is_wrong_is_named(client: httpx2.AsyncClient, body: dict[str, Any], pointer: str) -> None:
    problem = await ask(client, 422, **body)
    assert problem["errors"][0]["pointer"] == pointer, problem


async def test_the_nearest_condition_is_named(client: httpx2.AsyncClient) -> None:
    problem = await ask(client, 422, action="pause", filter={"tagg": "x"})
    assert "tag" in problem["errors"][0]["hint"]


async def test_dead_letters_by_cause(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    scene = Scene(client, store, clock)
    job_id = await create(client, retry={"max": 0})
    await scene.dead(job_id, "HTTP 500")
    other = await scene.dead(job_id, "HTTP 404")
    clock.advance(SECOND_US)
    groups = (await client.get("/v1/dead-letters", params={"group_by": "error"})).json()["data"]
    cause = next(one for one in groups if "500" in str(one))
    fingerprint = cause["value"]
    await ask(client, action="discard", filter={"error": fingerprint})
    await carried_out(store, clock)
    assert await scene.letters() == [other]


async def test_cancelled_it_says_so_and_again_and_not_when_done(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    await create(client)
    made = await ask(client, action="pause", filter={}, rate="1/m")
    path = f"/v1/operations/{made['operation_id']}"
    tried = await client.post(f"{path}/cancel?dry_run=true")
    assert (tried.json()["state"], tried.json()["dry_run"]) == ("running", True)
    for _ in range(2):
        answer = await client.post(f"{path}/cancel")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    done = await ask(client, action="pause", filter={})
    await carried_out(store, clock)
    answer = await client.post(f"/v1/operations/{done['operation_id']}/cancel")
    assert answer.status_code == 409
    assert (await client.get("/v1/operations/O-0000000000000")).status_code == 404
    assert (await client.get("/v1/operations/J-0000000000000")).status_code == 404


async def test_tenants_and_roles(make_app: MakeApp, store: SqliteStore, clock: ManualClock) -> None:
    app = make_app(authenticators=[Doorman()])
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        for tenant in ("acme", "globex"):
            await client.post("/v1/jobs", json=DAILY, headers=bearer(tenant))
        from hourhand.core.access import Role

        delete = {"action": "delete", "filter": {}}
        refused = await client.post("/v1/operations", json=delete, headers=bearer("acme", Role.OPERATOR))
        assert (refused.status_code, "editor" in refused.json()["detail"]) == (403, True)
        made = await client.post("/v1/operations", json=delete, headers=bearer("acme", Role.EDITOR))
        assert (made.status_code, made.json()["matched"], made.json()["by"]) == (202, 1, "ann")
        path = f"/v1/operations/{made.json()['operation_id']}"
        assert (await client.get(path, headers=bearer("globex"))).status_code == 404
        assert (await client.post(f"{path}/cancel", headers=bearer("globex"))).status_code == 404
        assert (await client.get("/v1/operations", headers=bearer("globex"))).json()["data"] == []
        await carried_out(store, clock)
        assert (await client.get("/v1/jobs", headers=bearer("acme"))).json()["data"] == []
        assert len((await client.get("/v1/jobs", headers=bearer("globex"))).json()["data"]) == 1


async def test_over_several_databases_it_is_one(
    sharded_client: httpx2.AsyncClient, shards: list[FaultyStore], clock: ManualClock
) -> None:
    client = sharded_client
    await client.post("/v1/jobs/bulk", json=[{**DAILY, "name": f"{n}"} for n in range(20)])
    clock.advance(SECOND_US)
    made = await ask(client, action="pause", filter={}, rate="100/s", expected_count=20)
    assert made["matched"] == 20
    path = f"/v1/operations/{made['operation_id']}"
    await carried_out(shards[0], clock)
    half = (await client.get(path)).json()
    assert half["state"] == "running"
    assert 0 < half["done"] < 20
    assert half["rate"] == "100/s"
    await carried_out(shards[1], clock)
    whole = (await client.get("/v1/operations")).json()["data"]
    assert [(one["state"], one["done"]) for one in whole] == [("done", 20)]
    assert (await client.post(f"{path}/cancel")).status_code == 409


async def test_nothing_begins_where_a_database_is_away(
    sharded_client: httpx2.AsyncClient, shards: list[FaultyStore], clock: ManualClock
) -> None:
    client = sharded_client
    await client.post("/v1/jobs/bulk", json=[{**DAILY, "name": f"{n}"} for n in range(20)])
    clock.advance(SECOND_US)
    shards[1].fail("add_operation")
    await ask(client, 503, action="pause", filter={})
    [one] = (await client.get("/v1/operations")).json()["data"]
    assert (one["state"], one["done"]) == ("cancelled", 0)
    shards[1].away = True
    await ask(client, 503, action="pause", filter={}, dry_run=True)
