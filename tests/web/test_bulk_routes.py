"""Many jobs in one request: lists and lines, each document for itself."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest

from hourhand.stores.sqlite import SqliteStore
from hourhand.web import guards, lists, many_problems
from hourhand.web.routes import bulk
from hourhand.web.shapes.batches import BulkAnswer
from tests.web.test_jobs_routes import DAILY, total

NDJSON = {"Content-Type": "application/x-ndjson"}


async def send_list(client: httpx2.AsyncClient, documents: Any, query: str = "") -> BulkAnswer:
    answer = await client.post(f"/v1/jobs/bulk{query}", json=documents)
    assert answer.status_code == 200, answer.text
    return BulkAnswer.model_validate(answer.json())


async def send_lines(client: httpx2.AsyncClient, chunks: list[bytes], query: str = "") -> BulkAnswer:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    answer = await client.post(f"/v1/jobs/bulk{query}", content=stream(), headers=NDJSON)
    assert answer.status_code == 200, answer.text
    return BulkAnswer.model_validate(answer.json())


async def test_each_document_of_a_list_stands_for_itself(client: httpx2.AsyncClient) -> None:
    documents = [
        DAILY,
        {**DAILY, "nmae": "x"},
        {**DAILY, "key": "a"},
        {**DAILY, "key": "a"},
        {**DAILY, "jitter": "1h"},
        5,
    ]
    answer = await send_list(client, documents)
    assert (answer.created, answer.failed) == (2, 4)
    assert [(one.index, one.status) for one in answer.results] == list(
        enumerate([201, 422, 201, 409, 422, 422])
    )
    assert [one.error.errors[0].pointer for one in answer.results if one.error and one.error.errors] == [
        "/nmae",
        "/jitter",
        "",
    ]
    for one in answer.results:
        assert (one.job_id is None) == (one.error is not None)
    job_id = answer.results[0].job_id
    assert (await client.get(f"/v1/jobs/{job_id}")).json()["name"] == "daily"
    assert await total(client) == 2


async def test_what_is_wrong_with_very_much_is_told_in_little(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_problems, "MOST_TOLD", 2)
    many = msgspec.json.encode({**DAILY, **{f"wrong{number}": 1 for number in range(60)}}) + b"\n"
    long = msgspec.json.encode({**DAILY, "x" * 200_000: 1}) + b"\n"
    broken = b"{\n"
    answer = await send_lines(client, [many, long, many, broken, msgspec.json.encode(DAILY)])
    assert [one.status for one in answer.results] == [422, 422, 422, 400, 201]
    first, second, third, fourth = [one.error for one in answer.results if one.error]
    assert [len(one.errors) for one in (first, second, third, fourth)] == [5, 1, 0, 0]
    assert len(second.model_dump_json()) < 2_000
    assert "2 documents" in third.detail
    assert (third.code, fourth.code) == ("invalid", "malformed_json")


async def test_lines_may_be_cut_anywhere(client: httpx2.AsyncClient) -> None:
    lines = b"\n".join(
        [msgspec.json.encode(DAILY), b"", b"{bad", b"  \r", msgspec.json.encode({**DAILY, "name": "ä"})]
    )
    answer = await send_lines(client, [lines[start : start + 7] for start in range(0, len(lines), 7)])
    assert [one.status for one in answer.results] == [201, 400, 201]
    assert (await client.get(f"/v1/jobs/{answer.results[2].job_id}")).json()["name"] == "ä"


async def test_lines_are_stored_batch_by_batch(client: httpx2.AsyncClient) -> None:
    line = msgspec.json.encode({"every": "1h", "callback_url": "https://example.com"}) + b"\n"
    answer = await send_lines(client, [line * 1_100, line * 1_101])
    assert (answer.created, answer.failed, len(answer.results)) == (2_201, 0, 2_201)
    assert len({one.job_id for one in answer.results}) == 2_201


@pytest.mark.parametrize("documents", [[], [DAILY] * 1_001, {"jobs": []}, None, 5])
async def test_lists_that_are_refused(client: httpx2.AsyncClient, documents: object) -> None:
    answer = await client.post("/v1/jobs/bulk", json=documents)
    assert answer.status_code == 422
    assert await total(client) == 0


async def test_bodies_that_are_refused(client: httpx2.AsyncClient) -> None:
    assert (await client.post("/v1/jobs/bulk", content=b"[{]")).status_code == 400
    assert (await client.post("/v1/jobs/bulk", content=b"")).status_code == 422
    answer = await client.post("/v1/jobs/bulk", content=b"a", headers={"Content-Type": "text/csv"})
    assert answer.status_code == 415


async def test_a_line_that_is_too_long_ends_the_import(client: httpx2.AsyncClient) -> None:
    line = msgspec.json.encode(DAILY) + b"\n"
    answer = await send_lines(client, [line, b'{"payload": "' + b"x" * 400_000, b'"}\n', line])
    assert [one.status for one in answer.results] == [201, 413]
    assert await total(client) == 1


async def test_a_payload_that_is_too_large_fails_alone(client: httpx2.AsyncClient) -> None:
    answer = await send_list(client, [{**DAILY, "payload": "x" * 300_000}, DAILY])
    assert [one.status for one in answer.results] == [413, 201]


async def test_too_many_lines_end_the_import(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_LINES", 3)
    line = msgspec.json.encode(DAILY) + b"\n"
    answer = await send_lines(client, [line * 5])
    assert [one.status for one in answer.results] == [201, 201, 201, 413]
    assert await total(client) == 3


async def test_a_list_that_is_too_large_is_not_read(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "LIST_BYTES", 100)
    assert (await client.post("/v1/jobs/bulk", json=[DAILY])).status_code == 413

    async def stream() -> AsyncIterator[bytes]:
        yield msgspec.json.encode([DAILY])

    json = {"Content-Type": "application/json"}
    assert (await client.post("/v1/jobs/bulk", content=stream(), headers=json)).status_code == 413
    assert await total(client) == 0


async def test_a_dry_run_stores_nothing(client: httpx2.AsyncClient) -> None:
    documents = [DAILY, {**DAILY, "key": "a"}, {**DAILY, "key": "a"}, {"name": "x"}]
    answer = await send_list(client, documents, "?dry_run=true")
    assert (answer.created, answer.failed, answer.dry_run) == (2, 2, True)
    assert [one.status for one in answer.results] == [201, 201, 409, 422]
    line = msgspec.json.encode(DAILY) + b"\n"
    assert (await send_lines(client, [line], "?dry_run=true")).created == 1
    assert await total(client) == 0


async def test_what_breaks_an_import_leaves_the_fate_of_each_that_was_stored(
    client: httpx2.AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_BULK", 2)
    line = msgspec.json.encode(DAILY) + b"\n"
    create_jobs, calls = store.create_jobs, 0

    async def broken(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError("a mistake of ours")
        return await create_jobs(*given, **named)

    monkeypatch.setattr(store, "create_jobs", broken)
    answer = await send_lines(client, [line * 5])
    assert [one.status for one in answer.results] == [201, 201, 500, 500, 201]
    assert {one.error.code for one in answer.results if one.error} == {"internal"}
    assert "mistake" not in answer.model_dump_json()
    assert await total(client) == 3


@pytest.mark.parametrize(("lines", "statuses"), [(3, [201, 201, 408]), (2, [201, 201, 408])])
async def test_lines_that_stop_coming_are_answered_as_far_as_they_came(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, lines: int, statuses: list[int]
) -> None:
    monkeypatch.setattr(bulk, "MAX_BULK", 2)
    monkeypatch.setattr(guards, "BODY_WAIT_S", 0.05)

    async def stopping() -> AsyncIterator[bytes]:
        yield (msgspec.json.encode(DAILY) + b"\n") * lines
        await asyncio.Event().wait()

    answer = await client.post("/v1/jobs/bulk", content=stopping(), headers=NDJSON)
    assert [one["status"] for one in answer.json()["results"]] == statuses
    assert await total(client) == 2
