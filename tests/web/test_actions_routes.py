"""Pause, resume, run; status, history, coming times and versions of a job."""

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import HOUR_US, MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.shapes.jobs import JobAnswer, VersionList
from hourhand.web.shapes.runs import RunAnswer, RunList
from hourhand.web.shapes.schedules import BesideAnswer, NextTimes
from tests.web import worker
from tests.web.test_jobs_routes import create


async def history(client: httpx2.AsyncClient, job_id: str) -> list[RunAnswer]:
    answer = await client.get(f"/v1/jobs/{job_id}/history")
    return RunList.model_validate(answer.json()).data


# --- pause and resume


async def test_pause_says_why_until_when_and_from_when(client: httpx2.AsyncClient) -> None:
    job_id = await create(client)
    body = {"note": "INC-42", "until": "2027-01-15T12:00:00Z"}
    job = JobAnswer.model_validate((await client.post(f"/v1/jobs/{job_id}/pause", json=body)).json())
    assert (job.state, job.paused, job.note, job.paused_until) == (
        "paused",
        True,
        "INC-42",
        "2027-01-15T12:00:00Z",
    )
    assert (job.effective_from, job.next_fire_time, job.version) == ("2027-01-15T08:00:02Z", None, 2)
    job = JobAnswer.model_validate((await client.post(f"/v1/jobs/{job_id}/resume")).json())
    assert (job.state, job.note, job.paused_until) == ("active", None, None)
    assert job.next_fire_time == "2027-01-15T09:00:00Z"


@pytest.mark.parametrize("body", [None, b"", b"{}"])
async def test_pause_needs_no_body(client: httpx2.AsyncClient, body: bytes | None) -> None:
    job_id = await create(client)
    assert (await client.post(f"/v1/jobs/{job_id}/pause", content=body)).json()["paused"] is True


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"until": "2027-01-15T08:00:00Z"}, "/until"),
        ({"until": "tomorrow"}, "/until"),
        ({"untill": "2027-01-16T08:00:00Z"}, "/untill"),
        ({"note": 5}, "/note"),
    ],
)
async def test_pauses_that_are_refused(
    client: httpx2.AsyncClient, body: dict[str, object], pointer: str
) -> None:
    job_id = await create(client)
    answer = await client.post(f"/v1/jobs/{job_id}/pause", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["state"] == "active"


async def test_dry_runs_change_no_state(client: httpx2.AsyncClient) -> None:
    job_id = await create(client)
    answer = await client.post(f"/v1/jobs/{job_id}/pause?dry_run=true", json={"note": "x"})
    assert (answer.json()["state"], answer.json()["dry_run"]) == ("paused", True)
    answer = await client.post(f"/v1/jobs/{job_id}/resume?dry_run=true")
    assert (answer.json()["state"], answer.json()["dry_run"]) == ("active", True)
    answer = await client.post(f"/v1/jobs/{job_id}/run?dry_run=true")
    assert (answer.status_code, answer.json()) == (200, {"run_id": None, "dry_run": True})
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["version"] == 1
    [coming] = await history(client, job_id)
    assert (coming.status, coming.scheduled_at) == ("PENDING", "2027-01-15T09:00:00Z")


@pytest.mark.parametrize(
    "action", ["pause", "resume", "run", "pause?dry_run=1", "resume?dry_run=1", "run?dry_run=1"]
)
async def test_asking_a_job_that_is_not_there(client: httpx2.AsyncClient, action: str) -> None:
    assert (await client.post(f"/v1/jobs/J-0000000000000/{action}")).status_code == 404


@pytest.mark.parametrize("action", ["resume", "run"])
async def test_a_body_where_there_is_nothing_to_say_is_refused(
    client: httpx2.AsyncClient, action: str
) -> None:
    job_id = await create(client)
    answer = await client.post(f"/v1/jobs/{job_id}/{action}", json={"force": True})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/force")
    assert (await client.post(f"/v1/jobs/{job_id}/{action}", json={})).status_code in (200, 202)


# --- run now


async def test_run_answers_the_run_and_where_it_is(client: httpx2.AsyncClient) -> None:
    job_id = await create(client)
    answer = await client.post(f"/v1/jobs/{job_id}/run")
    run_id = answer.json()["run_id"]
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/runs/{run_id}")
    run = RunAnswer.model_validate((await client.get(answer.headers["location"])).json())
    assert (run.run_id, run.status, run.trigger, run.job_id) == (run_id, "PENDING", "manual", job_id)


async def test_the_same_idempotency_key_gives_the_same_run(
    client: httpx2.AsyncClient, clock: ManualClock
) -> None:
    job_id = await create(client)
    made = []
    for key in ("a", "a", "b", None):
        clock.advance(SECOND_US)
        headers = {} if key is None else {"Idempotency-Key": key}
        made.append((await client.post(f"/v1/jobs/{job_id}/run", headers=headers)).json()["run_id"])
    assert made[0] == made[1]
    assert len(set(made)) == 3


# --- history and status


async def test_history_shows_coming_running_and_finished_runs(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    job_id = await create(client, concurrency=3)
    await client.post(f"/v1/jobs/{job_id}/run")
    clock.advance(SECOND_US)
    await worker.succeed(store, clock)
    await client.post(f"/v1/jobs/{job_id}/run")
    clock.advance(SECOND_US)
    await worker.take(store)
    clock.advance(SECOND_US)
    await client.post(f"/v1/jobs/{job_id}/run")
    runs = await history(client, job_id)
    assert [run.status for run in runs] == ["PENDING", "RUNNING", "SUCCEEDED"]
    assert [run.trigger for run in runs] == ["manual"] * 3
    assert (runs[0].started_at, runs[0].finished_at, runs[0].lag_ms) == (None, None, None)
    assert (runs[1].worker, runs[1].finished_at) == (worker.NAME, None)
    done = runs[2]
    assert (done.lag_ms, done.response, done.error, done.version) == (5, {"status": 200}, None, 1)
    assert (done.due_at, done.started_at, done.finished_at) == (
        "2027-01-15T08:00:00Z",
        "2027-01-15T08:00:00.005Z",
        "2027-01-15T08:00:00.025Z",
    )
    [attempt] = done.attempts
    assert (attempt.status, attempt.duration_ms, attempt.worker) == ("SUCCEEDED", 20, worker.NAME)


async def test_retries_are_seen_attempt_by_attempt(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    job_id = await create(client)
    await client.post(f"/v1/jobs/{job_id}/run")
    clock.advance(SECOND_US)
    [run] = await worker.take(store)
    await worker.end(store, clock, run, Event.RETRY, {"error": "HTTP 503", "note": "busy"}, tries=1)
    status = (await client.get(f"/v1/jobs/{job_id}/status")).json()
    _coming, shown = await history(client, job_id)
    assert (shown.status, shown.retry_count, shown.error, shown.finished_at) == (
        "RETRYING",
        1,
        "HTTP 503",
        None,
    )
    assert shown.attempts[0].detail == {"note": "busy"}
    clock.advance(2 * SECOND_US)
    assert (status["status"], status["retry_count"]) in {("RETRYING", 1), ("PENDING", 0)}
    status = (await client.get(f"/v1/jobs/{job_id}/status")).json()
    assert (status["status"], status["retry_count"]) == ("RETRYING", 1)
    await worker.fail(store, clock)
    _coming, shown = await history(client, job_id)
    assert (shown.status, [one.status for one in shown.attempts]) == ("FAILED", ["RETRYING", "FAILED"])
    status = (await client.get(f"/v1/jobs/{job_id}/status")).json()
    assert status["status"] == "FAILED"


async def test_a_job_of_every_second_shows_its_coming_runs_and_its_last_one(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    job_id = await create(client, cron=None, every="1s", concurrency="unlimited")
    clock.advance(HOUR_US)
    assert await worker.plan(store, clock) > 0
    await worker.succeed(store, clock)
    answer = await client.get(f"/v1/jobs/{job_id}/history", params={"limit": 1000})
    runs = RunList.model_validate(answer.json()).data
    assert (runs[0].status, runs[0].scheduled_at) == ("PENDING", "2027-01-15T09:01:00Z")
    status = (await client.get(f"/v1/jobs/{job_id}/status")).json()
    assert (status["status"], status["last_run"]) == ("SUCCEEDED", "2027-01-15T09:00:00Z")
    assert status["next_run"] == "2027-01-15T09:00:01Z"


async def test_history_goes_on_by_cursor(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock
) -> None:
    job_id = await create(client)
    for _ in range(5):
        await client.post(f"/v1/jobs/{job_id}/run")
        clock.advance(SECOND_US)
        await worker.succeed(store, clock)
    seen: list[str] = []
    query: dict[str, str] = {"limit": "2"}
    while True:
        page = (await client.get(f"/v1/jobs/{job_id}/history", params=query)).json()
        seen += [run["run_id"] for run in page["data"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert len(seen) == 6  # the coming one first
    assert seen == sorted(seen, reverse=True)


# --- coming times and versions


async def test_the_coming_times_show_what_dst_does(client: httpx2.AsyncClient, clock: ManualClock) -> None:
    job_id = await create(client, cron="30 2 * * *", tz="Europe/Berlin")
    clock.advance(70 * 24 * HOUR_US)  # 2027-03-26
    answer = await client.get(f"/v1/jobs/{job_id}/next", params={"n": 3})
    times = NextTimes.model_validate(answer.json())
    assert [one.local for one in times.data] == [
        "2027-03-27T02:30:00+01:00",
        "2027-03-28T03:00:00+02:00",
        "2027-03-29T02:30:00+02:00",
    ]
    assert [one.note is not None for one in times.data] == [False, True, False]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_runs": 2}, ["2027-01-15T09:00:00Z", "2027-01-16T09:00:00Z"]),
        ({"ends_at": "2027-01-15T23:00:00Z"}, ["2027-01-15T09:00:00Z"]),
        ({"paused": True}, []),
        ({"cron": None, "at": "2027-01-15T10:00:00Z"}, ["2027-01-15T10:00:00Z"]),
    ],
)
async def test_coming_times_keep_to_the_bounds(
    client: httpx2.AsyncClient, fields: dict[str, object], expected: list[str]
) -> None:
    job_id = await create(client, **fields)
    times = NextTimes.model_validate((await client.get(f"/v1/jobs/{job_id}/next?n=5")).json())
    assert [one.at for one in times.data] == expected


async def test_versions_tell_what_a_job_was(client: httpx2.AsyncClient, clock: ManualClock) -> None:
    job_id = await create(client)
    clock.advance(MINUTE_US)
    await client.patch(f"/v1/jobs/{job_id}", json={"cron": "0 10 * * *"})
    clock.advance(MINUTE_US)
    await client.post(f"/v1/jobs/{job_id}/pause", json={"note": "INC-42"})
    versions = VersionList.model_validate((await client.get(f"/v1/jobs/{job_id}/versions")).json()).data
    assert [one.version for one in versions] == [1, 2, 3]
    assert [one.job["cron"] for one in versions] == ["0 9 * * *", "0 10 * * *", "0 10 * * *"]
    assert [(one.paused, one.note) for one in versions] == [(False, None), (False, None), (True, "INC-42")]
    assert [one.to for one in versions] == [versions[1].from_, versions[2].from_, None]


async def test_versions_of_a_deleted_job_are_still_told(client: httpx2.AsyncClient) -> None:
    job_id = await create(client)
    assert (await client.delete(f"/v1/jobs/{job_id}")).status_code == 200
    versions = VersionList.model_validate((await client.get(f"/v1/jobs/{job_id}/versions")).json()).data
    assert versions[-1].deleted


async def test_a_cancelled_one_time_run_completes_its_job(client: httpx2.AsyncClient) -> None:
    answer = await client.post(
        "/v1/jobs", json={"at": "2027-01-15T09:00:00Z", "target": "https://example.com/x", "name": "once"}
    )
    job_id = answer.json()["job_id"]
    [coming] = await history(client, job_id)
    assert (await client.post(f"/v1/runs/{coming.run_id}/cancel")).status_code in (200, 202)
    status = (await client.get(f"/v1/jobs/{job_id}/status")).json()
    assert (status["state"], status["next_run"]) == ("completed", None)


async def test_on_loopback_a_tenant_is_only_a_name(client: httpx2.AsyncClient) -> None:
    job_id = await create(client)
    answer = await client.get(f"/v1/jobs/{job_id}", headers={"Hourhand-Tenant": "foo"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert (await client.get(f"/v1/jobs/{job_id}")).status_code == 200


async def test_what_else_fires_in_the_second_of_the_next(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def made(name: str, **fields: object) -> str:
        document = {"name": name, "target": "https://example.com", **fields}
        return str((await client.post("/v1/jobs", json=document)).json()["job_id"])

    async def beside(job_id: str) -> BesideAnswer | None:
        answer = await client.get(f"/v1/jobs/{job_id}/next?others=true")
        return NextTimes.model_validate(answer.json()).beside

    first = await made("first", cron="0 9 * * *")
    found = await beside(first)
    assert found is not None
    assert (found.at, found.count, found.is_exact) == ("2027-01-15T09:00:00Z", 0, True)
    await made("same", cron="0 9 * * *")
    await made("often", cron="* * * * *")
    await made("in the same second", every="1h", phase="2027-01-15T08:00:00.5Z")
    await made("paused", cron="0 9 * * *", paused=True)
    await made("later", cron="1 9 * * *")
    found = await beside(first)
    assert found is not None
    assert [job.name for job in found.jobs] == ["in the same second", "often", "same"]
    assert (found.count, found.is_exact) == (3, True)
    monkeypatch.setattr("hourhand.web.beside.MOST_LOOKED_AT", 2)
    found = await beside(first)
    assert found is not None
    assert found.is_exact is False
    assert await beside(await made("over", at="2027-01-15T08:00:00Z", paused=True)) is None


async def test_how_many_there_are_in_some_days(client: httpx2.AsyncClient) -> None:
    job = {"cron": "* * * * *", "target": "https://example.com"}
    job_id = (await client.post("/v1/jobs", json=job)).json()["job_id"]
    assert (await client.get(f"/v1/jobs/{job_id}/next?days=7&n=1")).json()["fires"] == 7 * 24 * 60
    child = {"after": [job_id], "target": "https://example.com"}
    child_id = (await client.post("/v1/jobs", json=child)).json()["job_id"]
    assert (await client.get(f"/v1/jobs/{child_id}/next?days=7")).json()["fires"] is None
