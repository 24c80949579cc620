"""Backfills, skips, reruns and clones over HTTP: what is taken, what is refused and in which words."""

from typing import Any

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.identity import parse_backfill_id, parse_job_id, parse_run_id
from hourhand.core.instant import DAY_US, MINUTE_US, parse_instant
from hourhand.core.lifecycle import Event
from hourhand.core.run import Settlement
from hourhand.ports.store import ClaimRequest
from hourhand.stores.sqlite.store import SqliteStore
from tests.web.test_jobs_routes import DAILY

NOW = "2027-01-15T08:00:00Z"
HOURLY = {"name": "hourly", "cron": "0 * * * *", "callback_url": "https://example.com/hook", "key": "h"}
DAY = {"from": "2027-01-14T08:00:00Z", "to": "2027-01-15T07:30:00Z"}


async def post(client: httpx2.AsyncClient, path: str, body: Any = None, status: int = 200) -> Any:
    answer = await client.post(f"/api/v1{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def create(client: httpx2.AsyncClient, document: dict[str, Any]) -> Any:
    return await post(client, "/jobs", document, 201)


async def get(client: httpx2.AsyncClient, path: str, status: int = 200) -> Any:
    answer = await client.get(f"/api/v1{path}")
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.fixture
async def job_id(client: httpx2.AsyncClient) -> str:
    return str((await create(client, HOURLY))["job_id"])


async def end_next_run(store: SqliteStore, clock: ManualClock) -> str:
    await store.renew_node(7, "worker", "worker-1", DAY_US * 1000)
    claim = await store.claim(ClaimRequest(node_id=7, pools=("default",), room=1, lead_us=0))
    [run] = claim.runs
    settlement = Settlement(
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        slot=run.slot,
        fence=run.fence,
        event=Event.SUCCEED,
        version=run.version,
        tries=0,
        finished_at=clock.now(),
    )
    assert await store.settle("worker-1", [settlement]) == []
    return run.run_id


# --- backfills


async def test_a_backfill_is_made_looked_at_and_changed(
    client: httpx2.AsyncClient, store: SqliteStore, job_id: str
) -> None:
    asked = {"job": "hourly", **DAY, "rate": "50/s", "max_open": 10, "order": "newest", "note": "INC-42"}
    made = await post(client, "/backfills", asked, 202)
    path = f"/backfills/{made['backfill_id']}"
    assert made["job_id"] == job_id
    assert (made["state"], made["total"], made["rate"], made["order"]) == ("running", 24, "50/s", "newest")
    await store.feed_backfill(parse_backfill_id(made["backfill_id"]))

    read = await get(client, path)
    assert (read["open"], read["done"], read["already_there"]) == (1, 0, 0)
    assert (await post(client, f"{path}/pause"))["state"] == "paused"
    assert (await post(client, f"{path}/resume"))["state"] == "running"
    listed = await get(client, f"/backfills?job_id={job_id}")
    assert [one["backfill_id"] for one in listed["data"]] == [made["backfill_id"]]
    assert (await post(client, f"{path}/cancel?dry_run=true"))["dry_run"] is True
    over = await post(client, f"{path}/cancel")
    assert (over["state"], over["open"], over["finished_at"]) == ("cancelled", 0, NOW)
    problem = await post(client, f"{path}/resume", status=409)
    assert "cancelled already" in problem["detail"]


async def test_a_dry_run_counts_and_makes_nothing(client: httpx2.AsyncClient, job_id: str) -> None:
    would = await post(client, "/backfills?dry_run=true", {"job": job_id, **DAY}, 200)
    assert (would["total"], would["backfill_id"], would["dry_run"]) == (24, None, True)
    assert (await get(client, "/backfills"))["data"] == []


@pytest.mark.parametrize(
    ("change", "pointer", "word"),
    [
        ({"from": "2027-01-15T07:45:00Z"}, "/from", "before `to`"),
        ({"to": "2027-01-15T09:00:00Z"}, "/to", "has passed"),
        ({"from": "2026-01-15T08:00:00Z"}, "/from", "as far back as history"),
        ({"from": "1900-01-01T00:00:00Z", "force": True}, "/from", "100,000"),
        ({"from": "2027-01-15T07:10:00Z"}, "/from", "has a time"),
        ({"rate": "fast"}, "/rate", "50/s"),
        ({"rate": "5000/s"}, "/rate", "1,000/s"),
        ({"max_open": 0}, "/max_open", "1 to 1,000"),
        ({"order": "random"}, "/order", "oldest, newest"),
        ({"job": "nobody"}, "/job", "key or unambiguous name"),
        ({"jbo": "x"}, "/jbo", "a field"),
        ({"note": "x" * 501}, "/note", "500"),
    ],
)
async def test_what_is_wrong_is_named(
    client: httpx2.AsyncClient, job_id: str, change: dict[str, Any], pointer: str, word: str
) -> None:
    problem = await post(client, "/backfills", {"job": job_id, **DAY, **change}, 422)
    fault = next(one for one in problem["errors"] if one["pointer"] == pointer)
    assert word in fault["expected"]


async def test_a_range_that_is_too_large_says_where_to_end(client: httpx2.AsyncClient, job_id: str) -> None:
    asked = {"job": job_id, "from": "1900-01-01T00:00:00Z", "force": True}
    problem = await post(client, "/backfills", asked, 422)
    assert "1911-05-30T15:00:00Z" in problem["errors"][0]["hint"]


async def test_a_one_time_job_is_refused(client: httpx2.AsyncClient) -> None:
    once = await create(client, {"at": "2027-02-01T00:00:00Z", "callback_url": "https://example.com"})
    problem = await post(client, "/backfills", {"job": once["job_id"], **DAY}, 422)
    assert "rerun" in problem["errors"][0]["hint"]


async def test_another_one_of_the_same_job_is_refused(client: httpx2.AsyncClient, job_id: str) -> None:
    first = await post(client, "/backfills", {"job": job_id, **DAY}, 202)
    problem = await post(client, "/backfills", {"job": job_id, **DAY}, 409)
    assert first["backfill_id"] in problem["detail"]


async def test_what_is_no_backfill_is_not_found(client: httpx2.AsyncClient, job_id: str) -> None:
    for name in ("B-0000000000001", job_id, "x"):
        await get(client, f"/backfills/{name}", 404)
        await post(client, f"/backfills/{name}/cancel", status=404)


# --- skips


async def test_a_skipped_time_is_shown_as_such(client: httpx2.AsyncClient, job_id: str) -> None:
    path = f"/jobs/{job_id}"
    answer = await post(client, f"{path}/skip", {"note": "holiday"})
    assert (answer["at"], answer["skipped"]) == ("2027-01-15T09:00:00Z", True)
    assert answer["next_run"] == "2027-01-15T10:00:00Z"
    times = (await get(client, f"{path}/next?n=2"))["data"]
    assert [(one["fires"], one["note"]) for one in times] == [(False, "skipped: holiday"), (True, None)]
    assert times[0]["skipped"] is True
    status = await get(client, f"{path}/status")
    assert (status["next_run"], status["skipped"]) == ("2027-01-15T10:00:00Z", ["2027-01-15T09:00:00Z"])
    assert (await get(client, f"/runs/{answer['run_id']}"))["skip_asked"] is True

    undone = await post(client, f"{path}/skip", {"undo": True})
    assert (undone["skipped"], undone["next_run"]) == (False, "2027-01-15T09:00:00Z")
    assert "skipped" not in await get(client, f"{path}/status")
    problem = await post(client, f"{path}/skip", {"undo": True}, 422)
    assert problem["errors"][0]["pointer"] == "/at"


async def test_a_time_to_skip_must_be_one_of_the_job(client: httpx2.AsyncClient, job_id: str) -> None:
    asked = {"at": "2027-01-15T09:30:00Z"}
    for dry_run in ("", "?dry_run=true"):
        problem = await post(client, f"/jobs/{job_id}/skip{dry_run}", asked, 422)
        assert "2027-01-15T09:00:00Z and 2027-01-15T10:00:00Z" in problem["errors"][0]["hint"]
    would = await post(client, f"/jobs/{job_id}/skip?dry_run=true")
    assert (would["at"], would["dry_run"]) == ("2027-01-15T09:00:00Z", True)
    assert "skipped" not in await get(client, f"/jobs/{job_id}/status")
    await post(client, "/jobs/J-0000000000000/skip", status=404)
    await post(client, f"/jobs/{job_id}/pause")
    await post(client, f"/jobs/{job_id}/skip", status=409)


# --- reruns


async def test_a_rerun_names_what_it_repeats(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock, job_id: str
) -> None:
    first = (await post(client, f"/jobs/{job_id}/run", status=202))["run_id"]
    problem = await post(client, f"/runs/{first}/rerun", status=409)
    assert "PENDING" in problem["detail"]
    clock.advance(MINUTE_US)
    assert await end_next_run(store, clock) == first
    assert (await post(client, f"/runs/{first}/rerun?dry_run=true", status=200))["dry_run"] is True

    headers = {"Idempotency-Key": "once"}
    made = [(await client.post(f"/v1/runs/{first}/rerun", headers=headers)) for _ in range(2)]
    assert made[0].status_code == 202
    assert made[0].json() == made[1].json()
    again = made[0].json()["run_id"]
    assert made[0].headers["Location"] == f"/v1/runs/{again}"
    assert parse_run_id(again) != parse_run_id(first)
    read = await get(client, f"/runs/{again}")
    assert (read["rerun_of"], read["trigger"], read["reruns"]) == (first, "rerun", [])
    assert (await get(client, f"/runs/{first}"))["reruns"] == [again]
    await post(client, f"/runs/{job_id}@20270115T090000Z/rerun", status=409)
    await post(client, f"/runs/{job_id}@20270115T090001Z/rerun", status=404)


# --- clones


async def test_a_clone_is_the_same_but_for_its_key_and_paused(client: httpx2.AsyncClient) -> None:
    full = {**DAILY, "key": "daily", "tags": ["a"], "payload": {"x": None}, "retry": {"max": 7}}
    source = await get(client, f"/jobs/{(await create(client, full))['job_id']}")
    made = await post(client, f"/jobs/{source['job_id']}/clone", status=201)
    differ = {name for name in made if made[name] != source[name]}
    assert differ == {
        "job_id", "name", "key", "paused", "note", "state", "next_fire_time",
    }  # fmt: skip
    assert made["name"] == f"{source['name']} (copy)"
    assert (made["key"], made["state"], made["note"]) == (None, "paused", f"copy of {source['job_id']}")
    assert parse_job_id(made["job_id"]) != parse_job_id(source["job_id"])


async def test_a_clone_can_be_changed_on_the_way(client: httpx2.AsyncClient, job_id: str) -> None:
    patch = {"name": "other", "every": "5m", "key": "mine", "paused": False, "payload": {"y": 1}}
    made = await post(client, f"/jobs/{job_id}/clone", patch, 201)
    assert (made["name"], made["every"], made["key"], made["state"]) == ("other", "5m", "mine", "active")
    assert "cron" not in made
    assert made["note"] is None
    assert made["payload"] == {"y": 1}
    problem = await post(client, f"/jobs/{job_id}/clone", {"nmae": "x"}, 422)
    assert problem["errors"][0]["pointer"] == "/nmae"
    await post(client, f"/jobs/{job_id}/clone", {"key": "h"}, 409)
    would = await post(client, f"/jobs/{job_id}/clone?dry_run=true", {}, 200)
    assert (would["job_id"], would["dry_run"]) == (None, True)
    await post(client, "/jobs/J-0000000000000/clone", status=404)


async def test_a_one_time_job_whose_time_has_passed_needs_another(
    client: httpx2.AsyncClient, clock: ManualClock
) -> None:
    once = await create(client, {"at": "2027-01-15T09:00:00Z", "callback_url": "https://example.com"})
    clock.now_at = parse_instant("2027-01-15T10:00:00Z")
    problem = await post(client, f"/jobs/{once['job_id']}/clone", status=422)
    assert problem["errors"][0]["pointer"] == "/at"
    made = await post(client, f"/jobs/{once['job_id']}/clone", {"at": "2027-01-16T09:00:00Z"}, 201)
    assert made["at"] == "2027-01-16T09:00:00Z"
