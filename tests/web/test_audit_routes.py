"""The audit over HTTP: the equation, findings, windows that are refused, and answers in parts."""

from typing import Any

import httpx2
import pytest

from hourhand.clock import ManualClock
from hourhand.core.instant import MINUTE_US, SECOND_US, format_instant
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.routes import audits
from hourhand.web.shapes.audits import AuditAnswer
from tests.web import worker

DOCUMENT = {"name": "often", "every": "1m", "callback_url": "https://example.com/hook"}


async def work(client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock, minutes: int) -> str:
    job_id: str = (await client.post("/v1/jobs", json=DOCUMENT)).json()["job_id"]
    for _ in range(minutes):
        clock.advance(MINUTE_US)
        await worker.plan(store, clock)
        await worker.succeed(store, clock)
    clock.advance(SECOND_US)
    return job_id


async def audit(client: httpx2.AsyncClient, **query: Any) -> AuditAnswer:
    answer = await client.get("/v1/audit", params=query)
    assert answer.status_code == 200, answer.text
    return AuditAnswer.model_validate(answer.json())


async def lose(store: SqliteStore, at: int) -> None:
    async def operation(tx: Any) -> None:
        tx._connection.execute("DELETE FROM history WHERE scheduled_at = ?", (at,))

    await store._engine.write(operation)


async def test_the_equation(client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> None:
    job_id = await work(client, store, clock, 5)
    found = await audit(client)
    assert (found.expected, found.succeeded, found.jobs_checked) == (5, 5, 1)
    assert (found.findings, found.by_job, found.complete, found.next_cursor) == ([], [], True, None)
    assert found.to == format_instant(clock.now())
    of_job = await audit(client, job_id=job_id)
    assert [(one.job_id, one.expected) for one in of_job.by_job] == [(job_id, 5)]
    each = await audit(client, by_job=True)
    assert (each.expected, [(one.job_id, one.expected) for one in each.by_job]) == (5, [(job_id, 5)])
    part = await audit(client, **{"from": format_instant(clock.now() - 59 * SECOND_US)})
    assert part.expected == 1


async def test_findings(client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock) -> None:
    job_id = await work(client, store, clock, 10)
    at = clock.now() - SECOND_US - 6 * MINUTE_US
    await lose(store, at)
    found = await audit(client)
    [finding] = found.findings
    assert (finding.kind, finding.job_id, finding.job_name) == ("lost", job_id, "often")
    assert finding.scheduled_at == format_instant(at)
    assert (found.lost, found.kinds["lost"], found.expected) == (1, 1, 10)
    assert [one.lost for one in found.by_job] == [1]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"from": "2020-01-01T00:00:00Z"}, "?from"),
        ({"from": "yesterday"}, "?from"),
        ({"to": "2020-01-01T00:00:00Z", "from": "2027-01-01T00:00:00Z"}, "?from"),
        ({"job_id": "nothing"}, "?job_id"),
        ({"form": "2027-01-01T00:00:00Z"}, "?form"),
        ({"cursor": "abc"}, "?cursor"),
    ],
)
async def test_what_is_refused(client: httpx2.AsyncClient, query: dict[str, str], pointer: str) -> None:
    answer = await client.get("/v1/audit", params=query)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


async def test_a_job_that_there_is_not(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/audit", params={"job_id": "J-0000000000001"})
    assert answer.status_code == 404


async def test_a_long_audit_comes_in_parts(
    client: httpx2.AsyncClient, store: SqliteStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audits, "WITHIN_US", -1)
    lines = [{**DOCUMENT, "name": f"job-{n}"} for n in range(1_000)]
    assert (await client.post("/v1/jobs/bulk", json=lines)).status_code < 300
    assert (await client.post("/v1/jobs", json=DOCUMENT)).status_code == 201
    clock.advance(30 * SECOND_US)
    first = await audit(client)
    assert (first.jobs_checked, first.complete) == (1_000, False)
    assert first.next_cursor is not None
    second = await audit(client, cursor=first.next_cursor)
    assert (second.jobs_checked, second.complete, second.next_cursor) == (1, True, None)
    assert (second.from_, second.to) == (first.from_, first.to)
