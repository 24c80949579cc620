"""Cursors that nobody was given: every list refuses them or goes on somewhere, on every store; none is a failure of ours."""

import asyncio
from collections.abc import Iterator

import httpx2
import pytest
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from hourhand.clock import ManualClock
from hourhand.core.buckets import even_map
from hourhand.core.instant import MINUTE_US
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.ports.store import Store
from hourhand.services.jobs import Jobs
from hourhand.services.runs import Runs
from hourhand.stores.sharded import ShardedStore
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.app import create_app
from hourhand.web.cursors import write_cursor
from hourhand.web.routes import API
from tests.web.conftest import ADDRESS
from tests.web.test_jobs_routes import DAILY

CLOCK = ManualClock()
KINDS = {
    "/jobs": "jobs",
    "/jobs/{job_id}/history": "history",
    "/runs": "runs",
    "/backfills": "backfills",
    "/dead-letters": "dead",
    "/operations": "operations",
    "/audit": "audit",
    "/deeds": "deeds",
    "/tokens": "tokens",
    "/webhooks/{webhook_id}/deliveries": "deliveries",
    "/tenants": "tenants",
}
NOW_AT = CLOCK.now()
EDGES = (0, 1, -1, 3, NOW_AT, NOW_AT - MINUTE_US, 2**63 - 1, -(2**63), 2**63, 2**64 - 1)


def test_every_list_with_a_cursor_is_among_them() -> None:
    lists = {
        route.path
        for route in API.routes
        if isinstance(route, APIRoute) and any(one.alias == "cursor" for one in route.dependant.query_params)
    }
    assert lists == KINDS.keys()


async def addresses(client: httpx2.AsyncClient) -> dict[str, str]:
    """Where each list is, by its kind."""
    job_id = (await client.post("/v1/jobs", json=DAILY)).json()["job_id"]
    webhook = await client.post("/v1/webhooks", json={"url": "https://example.com/"})
    ids = {"{job_id}": job_id, "{webhook_id}": webhook.json()["webhook_id"]}
    found = {}
    for path, kind in KINDS.items():
        for name, value in ids.items():
            path = path.replace(name, value)
        found[kind] = f"/v1{path}"
    return found


async def status(client: httpx2.AsyncClient, address: str, cursor: str) -> int:
    return (await client.get(address, params={"cursor": cursor})).status_code


async def test_numbers_at_the_edges_are_no_failure_on_any_store(each_client: httpx2.AsyncClient) -> None:
    failed = []
    for kind, address in (await addresses(each_client)).items():
        for edge in EDGES:
            for count in (1, 2, 3, 4, 5):
                for place in ([edge] * count, [NOW_AT - MINUTE_US, NOW_AT, *[edge] * count]):
                    answered = await status(each_client, address, write_cursor(kind, *place))
                    if answered not in (200, 422) or (answered == 200 and not -(2**63) <= edge < 2**63):
                        failed.append((kind, place, answered))
    assert not failed


@pytest.mark.parametrize("kind", KINDS.values())
async def test_numbers_beyond_64_bits_are_refused(each_client: httpx2.AsyncClient, kind: str) -> None:
    address = (await addresses(each_client))[kind]
    answer = await each_client.get(address, params={"cursor": write_cursor(kind, 2**63)})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "?cursor")


class Asking:
    """An application in a loop of its own, so that one test asks many times."""

    def __init__(self, runner: asyncio.Runner, shards: int) -> None:
        self._runner = runner
        self._client = runner.run(self._open(shards))
        self.addresses = runner.run(addresses(self._client))

    def status(self, kind: str, cursor: str) -> int:
        return self._runner.run(status(self._client, self.addresses[kind], cursor))

    async def _open(self, shards: int) -> httpx2.AsyncClient:
        stores = [SqliteStore.in_memory(clock=CLOCK) for _ in range(shards)]
        store: Store = stores[0] if shards == 1 else ShardedStore(stores, even_map(shards))
        app = create_app(
            jobs=Jobs(store=store, ids=IdSource(CLOCK, seed=1), clock=CLOCK, limits=SpecLimits()),
            runs=Runs(store=store, clock=CLOCK, horizon_us=MINUTE_US),
            store=store,
            clock=CLOCK,
            registry=CollectorRegistry(),
        )
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS)


@pytest.fixture(scope="module", params=[1, 2], ids=["one database", "two"])
def asking(request: pytest.FixtureRequest) -> Iterator[Asking]:
    with asyncio.Runner() as runner:
        yield Asking(runner, request.param)


NUMBERS = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**64 - 1), st.integers(-2, 8))
PLACES = st.lists(st.one_of(NUMBERS, NUMBERS, NUMBERS, st.text(max_size=5)), max_size=9)


@given(kind=st.sampled_from(list(KINDS.values())), place=PLACES)
def test_made_up_places_are_no_failure(asking: Asking, kind: str, place: list[int | str]) -> None:
    assert asking.status(kind, write_cursor(kind, *place)) in (200, 422)


@given(kind=st.sampled_from(list(KINDS.values())), cursor=st.text(max_size=60))
def test_made_up_texts_are_no_failure(asking: Asking, kind: str, cursor: str) -> None:
    assert asking.status(kind, cursor) in (200, 422)
