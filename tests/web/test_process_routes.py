"""Health, readiness, nodes."""

import httpx2
import pytest

from hourhand import __version__
from hourhand.clock import ManualClock
from hourhand.core.instant import SECOND_US
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.system import Health, NodeList, Readiness, SegmentList
from tests.web.conftest import MakeApp
from tests.web.test_guards import asking


@pytest.mark.parametrize("prefix", ["", "/api/v1", "/v1"])
async def test_health_at_every_prefix(client: httpx2.AsyncClient, prefix: str) -> None:
    health = Health.model_validate((await client.get(f"{prefix}/healthz")).json())
    assert health.version == __version__
    ready = await client.get(f"{prefix}/readyz")
    assert ready.status_code == 200
    assert Readiness.model_validate(ready.json()).parts == {"store": "ok"}
    assert (await client.get(f"{prefix}/metrics")).headers["content-type"].startswith("text/plain")
    assert (await client.get(f"{prefix}/openapi.json")).json()["openapi"] == "3.1.0"


async def test_a_part_that_does_not_work_is_named(make_app: MakeApp) -> None:
    app = make_app(parts=lambda: {"planner": "behind by 3 minutes", "worker": None})
    async with asking(app) as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        ready = Readiness.model_validate(answer.json())
        assert ready.parts == {"planner": "behind by 3 minutes", "worker": "ok", "store": "ok"}
        assert (await client.get("/healthz")).status_code == 200


async def test_nodes_live_as_long_as_their_lease(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    await store.renew_node(255, "up", "host-1", 30 * SECOND_US)
    nodes = NodeList.model_validate((await client.get("/v1/nodes")).json()).data
    assert [(one.node_id, one.kind, one.name, one.alive) for one in nodes] == [
        ("00000000000000ff", "up", "host-1", True)
    ]
    clock.advance(31 * SECOND_US)
    nodes = NodeList.model_validate((await client.get("/v1/nodes")).json()).data
    assert [one.alive for one in nodes] == [False] * len(nodes)


async def test_segments_and_who_plans_them(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    found = SegmentList.model_validate((await client.get("/v1/segments")).json()).data
    assert {(one.node_id, one.name, one.alive) for one in found} == {(None, None, False)}
    await store.hold_segments(7, "scheduler", "host:1", 30 * SECOND_US)
    found = SegmentList.model_validate((await client.get("/v1/segments")).json()).data
    assert [one.segment for one in found] == list(range(64))
    assert {(one.node_id, one.name, one.alive, one.fence, one.shard) for one in found} == {
        (f"{7:016x}", "host:1", True, 1, 0)
    }
    clock.advance(60 * SECOND_US)
    found = SegmentList.model_validate((await client.get("/v1/segments")).json()).data
    assert {(one.name, one.alive) for one in found} == {("host:1", False)}
