"""Two tenants that have everything, side by side: neither sees, counts, follows, changes or names anything of the other.

Walks the route table, on one database and on two, so that a new route is covered by itself.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry

from hourhand.clock import ManualClock
from hourhand.core.access import EVERY_TENANT
from hourhand.core.buckets import even_map
from hourhand.core.identity import parse_job_id, parse_run_id
from hourhand.core.instant import MINUTE_US
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.ports.events import Event, EventBatch, EventData, EventType
from hourhand.ports.store import Store
from hourhand.services.event_log import EventFilter, EventLog, Message, Subscription
from hourhand.services.jobs import Jobs
from hourhand.services.recent import Recent
from hourhand.services.runs import Runs
from hourhand.stores.sharded import ShardedStore
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.app import create_app
from tests.web import worker
from tests.web.conftest import ADDRESS
from tests.web.staging import CHANGES_WITHOUT_A_PERSON, ROUTES, Stage, bodies_of, path_of, set_stage
from tests.web.test_access import Doorman, bearer
from tests.web.test_jobs_routes import DAILY

NO_JOB = "J-0000000000001"
WITH_ID = [
    route
    for route in ROUTES
    if "{" in route.path and route.name not in CHANGES_WITHOUT_A_PERSON and not route.access.of_system  # type: ignore[attr-defined]
]
LISTS = [
    route
    for route in ROUTES
    if route.methods == {"GET"} and "{" not in route.path and not route.access.of_system  # type: ignore[attr-defined]
]
STREAMS = {"follow_events"}  # tried apart, since they do not end
KEYS = {"upsert_job"}  # keys are each tenant's own: the same means another job


class WatchedLog(EventLog):
    """Says when somebody follows, and when they have been sent what there was."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.followed = asyncio.Event()

    def follow(self, asked: EventFilter, last_id: str | None = None, user: str | None = None) -> Subscription:
        self.subscription = super().follow(asked, last_id, user)
        self.followed.set()
        return self.subscription

    def sum_up(self) -> asyncio.Event:
        """End the second, so that what was only counted is told; set once all of that is sent."""
        sent, take = asyncio.Event(), self.subscription.take

        async def taking(patience_s: float) -> Sequence[Message] | None:
            if not self.subscription._queue and not self.subscription._missed:
                sent.set()  # whoever asks for more has sent what it had
            return await take(patience_s)

        self.subscription._end_second()
        self.subscription.take = taking  # type: ignore[method-assign]
        return sent


class Town(NamedTuple):
    """Two tenants with everything, and the database or databases that they share."""

    client: httpx2.AsyncClient
    app: FastAPI
    shards: list[SqliteStore]
    clock: ManualClock
    ours: Stage
    theirs: Stage

    async def ask(self, who: Stage, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        headers = {**who.headers, **more.pop("headers", {})}
        return await self.client.request(method, path, json=body, headers=headers, **more)

    async def standing(self, who: Stage) -> dict[str, Any]:
        """Everything that a tenant can read of itself."""
        found = {}
        for route in ROUTES:
            if route.methods != {"GET"} or route.name in STREAMS or route.access.of_system:  # type: ignore[attr-defined]
                continue
            for query in queries_of(route, who):
                path = path_of(route, who)
                answer = await self.ask(who, "GET", path, params=query)
                assert answer.status_code == 200, f"{path} {query}: {answer.text}"
                found[f"{path} {query}"] = answer.json()
        return found


def queries_of(route: APIRoute, of: Stage) -> list[dict[str, Any]]:
    """The ways to ask a route, with filters that name something of a tenant."""
    names = {field.alias for field in route.dependant.query_params}
    needed = {field.alias for field in route.dependant.query_params if field.field_info.is_required()}
    given: dict[str, Any] = {"job_id": of.job_id, "ref": of.key}
    assert needed <= set(given), f"{route.path} needs {needed - set(given)}: say what, for a tenant"
    first = {name: given[name] for name in needed}
    found = [first]
    found += [{**first, "job_id": of.job_id}] if "job_id" in names - needed else []
    found += [{**first, "name": of.name}] if "name" in names else []
    found += [{**first, "failing": True}] if "failing" in names else []
    found += [{**first, "by_job": True, "from": "2027-01-15T07:00:00Z"}] if "by_job" in names else []
    found += [{**first, "group_by": by} for by in ("error", "job")] if "group_by" in names else []
    found += [{**first, "state": "RUNNING"}] if route.name == "list_runs" else []
    return found


def make_app(store: Store, clock: ManualClock) -> FastAPI:
    return create_app(
        jobs=Jobs(store=store, ids=IdSource(clock, seed=1), clock=clock, limits=SpecLimits()),
        runs=Runs(store=store, clock=clock, horizon_us=MINUTE_US),
        store=store,
        clock=clock,
        registry=CollectorRegistry(),
        authenticators=[Doorman()],
        events=WatchedLog(clock=clock),
        recent=Recent(clock=clock),
    )


@pytest.fixture(params=[1, 2], ids=["one database", "two databases"])
async def town(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Town]:
    shards = [SqliteStore.in_memory(clock=clock) for _ in range(request.param)]
    store = shards[0] if len(shards) == 1 else ShardedStore(shards, even_map(len(shards)))
    app = make_app(store, clock)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as client:
        stages = [
            await set_stage(client, shards, clock, tenant, bearer(tenant)) for tenant in ("acme", "globex")
        ]
        yield Town(client, app, shards, clock, *stages)
    await store.close()


def assert_nothing_of(stage: Stage, text: str, where: str) -> None:
    for one in stage.ids:
        assert one not in text, f"{where} tells {one}: {text[:2_000]}"


# --- ids in paths


async def test_an_id_of_another_tenant_is_404_on_every_route(town: Town) -> None:
    before = await town.standing(town.theirs)
    assert len(WITH_ID) > 20
    for route in WITH_ID:
        if route.name in KEYS:
            continue
        for method in route.methods or ():
            path = path_of(route, town.theirs)
            body = bodies_of(town.theirs).get(route.name)
            answer = await town.ask(town.ours, method, path, body)
            assert answer.status_code == 404, f"{method} {path}: {answer.status_code} {answer.text}"
            told = answer.text
            for run_id in (town.theirs.run_id, town.theirs.dead_id, town.theirs.done_id):
                told = told.replace(run_id, "it")
            told = told.replace(path.removeprefix("/v1"), "")
            for asked in town.theirs.ids:
                told = told.replace(asked, "it") if asked in path else told
            assert_nothing_of(town.theirs, told, f"{method} {path}")
            dry = await town.ask(town.ours, method, f"{path}?dry_run=true", body)
            assert dry.status_code in (404, 422), f"{method} {path} dry: {dry.text}"
            if dry.status_code == 422:
                assert "dry_run" not in {field.alias for field in route.dependant.query_params}
    assert await town.standing(town.theirs) == before


async def test_it_is_answered_as_if_it_had_never_been(town: Town) -> None:
    """Nobody can tell from the words whether somebody else has it."""
    swapped = {
        town.theirs.job_id: NO_JOB,
        town.theirs.other_id: NO_JOB,
        town.theirs.run_id: f"{NO_JOB}@20270115T080000.000001Z",
        town.theirs.done_id: f"{NO_JOB}@20270115T080000.000001Z",
        town.theirs.dead_id: f"{NO_JOB}@20270115T080000.000001Z",
        town.theirs.backfill_id: "B-0000000000001",
        town.theirs.operation_id: "O-0000000000001",
        town.theirs.token_id: "T-0000000000001",
        town.theirs.webhook_id: "W-0000000000001",
        town.theirs.event_id: "test-0000000000000000",
    }
    for route in WITH_ID:
        if route.name in KEYS:
            continue
        [method] = route.methods or ()
        path, body = path_of(route, town.theirs), bodies_of(town.ours).get(route.name)
        other = path
        for one, nobodys in swapped.items():
            other = other.replace(one, nobodys)
        assert other != path
        theirs, nobodys_ = (
            await town.ask(town.ours, method, path, body),
            await town.ask(town.ours, method, other, body),
        )
        told = theirs.json()["detail"]
        for one, nobody in swapped.items():
            told = told.replace(one, nobody)
        assert (theirs.status_code, theirs.json()["code"], told) == (
            nobodys_.status_code,
            nobodys_.json()["code"],
            nobodys_.json()["detail"],
        ), path


async def test_a_delivery_of_another_is_not_found_at_ones_own_webhook(town: Town) -> None:
    path = f"/v1/webhooks/{town.ours.webhook_id}/deliveries"
    assert (await town.ask(town.ours, "GET", f"{path}/{town.ours.event_id}")).status_code == 200
    for method, more in (("GET", ""), ("POST", "/redeliver"), ("POST", "/redeliver?dry_run=true")):
        answer = await town.ask(town.ours, method, f"{path}/{town.theirs.event_id}{more}")
        assert answer.status_code == 404, answer.text


async def test_what_another_tenant_may_have_is_set_by_who_runs_the_system_alone(town: Town) -> None:
    for who in (town.ours, town.theirs):
        answer = await town.ask(who, "PUT", "/v1/tenants/globex/quota", {"jobs": 1})
        assert answer.status_code == 403
        assert (await town.ask(who, "GET", "/v1/tenants")).status_code == 403
    runs_it = bearer(EVERY_TENANT)
    answer = await town.client.put("/v1/tenants/globex/quota", json={"jobs": 7}, headers=runs_it)
    assert answer.status_code == 200
    limits = [
        (await town.ask(who, "GET", "/v1/quota")).json()["limits"]["jobs"] for who in (town.ours, town.theirs)
    ]
    assert limits == [None, 7]


async def test_a_report_needs_the_token_of_its_attempt_whoever_asks(town: Town) -> None:
    [route] = [route for route in ROUTES if route.name in CHANGES_WITHOUT_A_PERSON]
    report = {"attempt": 1, "outcome": "succeeded"}
    answer = await town.ask(town.ours, "POST", path_of(route, town.theirs), report)
    assert answer.status_code == 401
    nobodys = await town.ask(town.ours, "POST", f"/v1/runs/{NO_JOB}@20270115T080000Z/report", report)
    assert (nobodys.status_code, nobodys.json()["detail"]) == (401, answer.json()["detail"])


# --- lists and counts


async def test_no_list_holds_anything_of_another(town: Town) -> None:
    assert len(LISTS) >= 10
    for route in LISTS:
        if route.name in STREAMS:
            continue
        for query in queries_of(route, town.ours):
            answer = await town.ask(town.ours, "GET", path_of(route, town.ours), params=query)
            assert answer.status_code == 200, f"{route.path} {query}: {answer.text}"
            assert_nothing_of(town.theirs, answer.text, f"{route.path} {query}")


async def test_no_filter_finds_anything_of_another(town: Town) -> None:
    for route in LISTS:
        if route.name in STREAMS:
            continue
        for query in queries_of(route, town.theirs):
            asks_for_theirs = set(query.values()) & set(town.theirs.ids)
            answer = await town.ask(town.ours, "GET", path_of(route, town.ours), params=query)
            where = f"{route.path} {query}"
            if not asks_for_theirs:
                continue
            assert answer.status_code in (200, 404), f"{where}: {answer.text}"
            if answer.status_code == 200:
                assert answer.json()["data"] == [], where


async def test_no_place_in_anothers_list_leads_into_it(town: Town) -> None:
    """Cursors say where, never whose."""
    for route in LISTS:
        names = {field.alias for field in route.dependant.query_params}
        if "cursor" not in names or "limit" not in names:
            continue
        path = path_of(route, town.ours)
        page = (await town.ask(town.theirs, "GET", path, params={"limit": 1})).json()
        if page["next_cursor"] is None:
            continue
        answer = await town.ask(
            town.ours, "GET", path, params={"limit": 1_000, "cursor": page["next_cursor"]}
        )
        assert answer.status_code == 200, f"{path}: {answer.text}"
        assert_nothing_of(town.theirs, answer.text, path)


async def test_nothing_that_one_tenant_can_read_depends_on_another(clock: ManualClock) -> None:
    """The same questions at the same moment, before and after somebody else moved in, by processes that remember nothing."""
    for count in (1, 2):
        began_at = clock.now()
        shards = [SqliteStore.in_memory(clock=clock) for _ in range(count)]
        store = shards[0] if count == 1 else ShardedStore(shards, even_map(count))
        towns = []
        ours: Stage | None = None
        for moved_in in (False, True):
            app = make_app(store, clock)
            async with httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=app), base_url=ADDRESS
            ) as client:
                if ours is None:
                    ours = await set_stage(client, shards, clock, "acme", bearer("acme"))
                asked_at = clock.now()
                if moved_in:
                    for tenant in ("globex", "initech"):
                        await set_stage(client, shards, clock, tenant, bearer(tenant))
                    for shard in shards:
                        await worker.take(shard)
                    clock.now_at = asked_at
                towns.append(await Town(client, app, shards, clock, ours, ours).standing(ours))
        before, after = towns
        for asked, answer in before.items():
            assert _lasting(after[asked]) == _lasting(answer), asked
        await store.close()
        clock.now_at = began_at


def _lasting(answer: Any) -> Any:
    """An answer without what is about the process and not about any tenant."""
    if isinstance(answer, dict):
        return {name: value for name, value in answer.items() if name not in ("processes", "since")}
    return answer


async def test_sizes_are_the_tenants_own_and_everythings_for_who_runs_the_system(town: Town) -> None:
    own = (await town.ask(town.ours, "GET", "/v1/overview")).json()["sizes"]
    assert (own["tenant"], own["jobs"], own["dead"], own["complete"]) == ("acme", 4, 1, True)
    runs_it = bearer(EVERY_TENANT)
    everything = (await town.client.get("/v1/overview", headers=runs_it)).json()["sizes"]
    assert (everything["tenant"], everything["jobs"], everything["dead"]) == (None, 8, 2)
    assert (own["planned"], everything["planned"]) == (1, 4)  # with the marks of skipped times
    named = {**runs_it, "Hourhand-Tenant": "acme"}
    assert (await town.client.get("/v1/overview", headers=named)).json()["sizes"] == own


async def test_processes_are_told_to_who_runs_the_system_alone(town: Town) -> None:
    for path in ("/v1/nodes", "/v1/segments"):  # which name hosts
        assert (await town.ask(town.ours, "GET", path)).status_code == 403
        assert (await town.client.get(path, headers=bearer(EVERY_TENANT))).status_code == 200


# --- ids in bodies


async def test_no_body_reaches_anything_of_another(town: Town) -> None:
    ours, theirs = town.ours, town.theirs
    before = await town.standing(theirs)
    follows = {"callback_url": DAILY["callback_url"], "name": "x"}
    for after in (theirs.job_id, theirs.key):
        for method, path, body in (
            ("POST", "/v1/jobs", {**follows, "after": [after]}),
            ("PUT", "/v1/jobs/by-key/new", {**follows, "after": [after]}),
            ("PUT", f"/v1/jobs/{ours.other_id}", {**follows, "after": [after]}),
            ("PATCH", f"/v1/jobs/{ours.other_id}", {"after": [after]}),
            ("POST", f"/v1/jobs/{ours.other_id}/clone", {"after": [after]}),
        ):
            for more in ("", "?dry_run=true"):
                answer = await town.ask(ours, method, path + more, body)
                assert answer.status_code == 422, f"{method} {path}: {answer.text}"
                [fault] = answer.json()["errors"]
                assert fault["pointer"] == "/after/0"
                assert fault["expected"] == "the id or the key of a job that there is"
        for path, document in (
            ("/v1/jobs/bulk", {**follows, "after": [after]}),
            ("/v1/jobs/apply", {**follows, "key": "mine", "after": [after]}),
        ):
            answer = await town.ask(ours, "POST", path, [document])
            [result] = answer.json()["results"]
            assert result["status"] == 422, answer.text
    for job in (theirs.job_id, theirs.key, theirs.name):
        answer = await town.ask(ours, "POST", "/v1/backfills", {"job": job, "from": "2027-01-10T00:00:00Z"})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/job"), answer.text
    for action in ("requeue", "discard"):
        for selection in ({"ids": [theirs.dead_id]}, {"filter": {"job_id": theirs.job_id}}):
            for more in ("", "?dry_run=true"):
                answer = await town.ask(ours, "POST", f"/v1/dead-letters/{action}{more}", selection)
                assert (answer.json()["count"], answer.json()["run_ids"]) == (0, []), answer.text
        asked = {"action": action, "filter": {"job_id": theirs.job_id}}
        answer = await town.ask(ours, "POST", "/v1/operations", asked)
        assert answer.json()["matched"] == 0, answer.text
    answer = await town.ask(ours, "POST", "/v1/operations?dry_run=true", {"action": "delete", "filter": {}})
    assert answer.json()["matched"] == 4, answer.text
    assert await town.standing(theirs) == before


async def test_a_filter_that_means_everything_means_ones_own(town: Town) -> None:
    before = await town.standing(town.theirs)
    answer = await town.ask(town.ours, "POST", "/v1/dead-letters/discard", {"filter": {}})
    assert answer.json()["run_ids"] == [town.ours.dead_id]
    assert await town.standing(town.theirs) == before


async def test_jobs_of_another_cannot_be_followed_past_the_edge_either(town: Town) -> None:
    """The store holds it too, for whoever does not come by way of documents."""
    from hourhand.core.model import AfterTiming
    from hourhand.ports.store import JobDraft, Unfit
    from tests.contract.builders import spec

    parent = parse_job_id(town.theirs.job_id)
    for shard in town.shards:
        draft = JobDraft(id=parent + 1_000, tenant="acme", spec=spec(AfterTiming(parents=(parent,))))
        [answer] = await shard.create_jobs([draft])
        assert isinstance(answer, Unfit)


# --- keys


async def test_keys_are_each_tenants_own(town: Town) -> None:
    path = f"/v1/jobs/by-key/{town.theirs.key}"
    made = await town.ask(town.ours, "PUT", path, {**DAILY, "name": "mine"})
    assert (made.status_code, made.json()["job_id"] != town.theirs.job_id) == (201, True)
    theirs = (await town.ask(town.theirs, "GET", "/v1/jobs/resolve", params={"ref": town.theirs.key})).json()
    assert (theirs["job_id"], theirs["version"], theirs["name"]) == (
        town.theirs.job_id,
        1,
        town.theirs.name,
    )


async def test_keys_of_requests_are_each_tenants_own(town: Town) -> None:
    """The same key on a run, and on a rerun, of two tenants gives two runs, each of its own job."""
    for act in ("run", "rerun"):
        key, made = {"Idempotency-Key": f"the-same-{act}"}, []
        for who in (town.ours, town.theirs):
            path = f"/v1/jobs/{who.job_id}/run" if act == "run" else f"/v1/runs/{who.done_id}/rerun"
            first = await town.ask(who, "POST", path, headers=key)
            again = await town.ask(who, "POST", path, headers=key)
            assert (first.status_code, first.json()) == (202, again.json()), first.text
            assert first.json()["run_id"].startswith(who.job_id)
            made.append(first.json()["run_id"])
        assert len(set(made)) == 2


# --- streams


def _happened(stage: Stage, number: int, at: int) -> Event:
    key = parse_run_id(stage.done_id)
    data = EventData(state="SUCCEEDED", name=stage.name)
    return Event(
        f"{at:016d}-{number}", EventType.RUN_SUCCEEDED, stage.tenant, at, key.job_id, key.scheduled_at, data
    )


@pytest.mark.parametrize("by_job", [False, True], ids=["all", "a job of theirs"])
async def test_a_stream_carries_ones_own_alone(town: Town, by_job: bool) -> None:
    events: WatchedLog = town.app.state.context.events
    at = town.clock.now()
    events.add(EventBatch((_happened(town.theirs, 0, at), _happened(town.ours, 1, at))))
    query = {"job_id": town.theirs.job_id} if by_job else {}
    resumed = {"Last-Event-ID": f"{at:016d}-0"}
    following = asyncio.create_task(town.ask(town.ours, "GET", "/v1/events", params=query, headers=resumed))
    async with asyncio.timeout(10):
        await events.followed.wait()
        pairs = [(town.theirs, 2), (town.ours, 3), (town.theirs, 4)]
        batch = tuple(_happened(stage, number, at) for stage, number in pairs)
        flood = {"globex": {EventType.RUN_FAILED: 5_000}, "acme": {EventType.RUN_SUCCEEDED: 1_000}}
        events.add(EventBatch(batch, {"globex": flood["globex"]} if by_job else flood))
        sent = events.sum_up()
        if not by_job:
            await sent.wait()
        events.close()
        told = (await following).text
    assert_nothing_of(town.theirs, told, "/events")
    assert "run.failed" not in told
    assert "5000" not in told
    assert not any(f"{at:016d}-{number}\n" in told for number in (0, 2, 4)), "no place of theirs is named"
    if by_job:
        assert "run.succeeded" not in told
    else:
        assert told.count("event: run.succeeded") == 1
        assert "event: reset" in told, "an id of theirs is as unknown as any"
        assert '"run.succeeded":1001' in told.replace(" ", "")


async def test_the_last_hour_is_ones_own(town: Town) -> None:
    recent: Recent = town.app.state.context.overview._recent
    at = town.clock.now()
    recent.add(EventBatch((_happened(town.theirs, 1, at),), {"globex": {EventType.RUN_FAILED: 77}}))
    told = (await town.ask(town.ours, "GET", "/v1/overview")).json()
    assert (told["hour"]["succeeded"], told["hour"]["failed"], told["minutes"]) == (0, 0, [])
