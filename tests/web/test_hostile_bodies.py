"""Bodies that would cost much: each is refused early, in little time and memory."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import httpx2
import pytest

from hourhand.web import guards

JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024
PATHS = ("/api/v1/jobs", "/api/v1/jobs/bulk", "/api/v1/schedules/preview", "/api/v1/dead-letters/requeue")

HOSTILE = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep and open": b'{"a":' * 60_000,
    "deep payload": b'{"cron": "0 9 * * *", "callback_url": "https://example.com/", "payload": '
    + b"[" * 100_000
    + b"]" * 100_000
    + b"}",
    "many keys": b"{" + b",".join(b'"%x":0' % n for n in range(35_000)) + b"}",
    "a huge number": b'{"priority": ' + b"9" * 300_000 + b"}",
    "a huge power": b'{"priority": 1e999999999}',
    "not a number": b'{"priority": NaN}',
    "half a character": b'{"name": "\\ud800"}',
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", list(HOSTILE))
async def test_what_costs_to_read_is_refused_cheaply(
    client: httpx2.AsyncClient, path: str, kind: str
) -> None:
    await client.post(path, content=b"{}", headers=JSON)
    tracemalloc.start()
    try:
        async with asyncio.timeout(5):
            answer = await client.post(path, content=HOSTILE[kind], headers=JSON)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 100_000
    assert peak < 40 * MIB


@pytest.mark.parametrize("path", PATHS)
async def test_of_a_stream_of_100_mib_a_route_reads_no_more_than_its_limit(
    client: httpx2.AsyncClient, path: str
) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1_600):
            sent += 65_536
            yield b" " * 65_536

    tracemalloc.start()
    try:
        answer = await client.post(path, content=endless(), headers=JSON)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    limit = guards.LIST_BYTES if path.endswith("bulk") else 320 * 1024
    assert answer.status_code == 413
    assert sent <= limit + 2 * 65_536
    assert peak < 2 * limit + 8 * MIB


async def test_a_million_keys_in_a_list_of_jobs_fail_as_one_job(client: httpx2.AsyncClient) -> None:
    body = b"[{" + b",".join(b'"%x":0' % n for n in range(1_000_000)) + b"}]"
    async with asyncio.timeout(20):
        answer = await client.post("/api/v1/jobs/bulk", content=body, headers=JSON)
    assert len(answer.content) < 100_000
    assert answer.status_code == 413 or answer.json()["failed"] == 1


async def test_a_body_that_stops_coming_is_given_up(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "BODY_WAIT_S", 0.05)
    never = asyncio.Event()

    async def stalling() -> AsyncIterator[bytes]:
        yield b'{"name": '
        await never.wait()

    answer = await client.post("/api/v1/jobs", content=stalling(), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (408, "slow_body")


async def test_a_body_that_drips_is_given_up(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part comes in time, and all of it never: also where nobody has said who he is."""
    monkeypatch.setattr(guards, "BODY_WAIT_S", 0.05)
    monkeypatch.setattr(guards, "LEAST_BODY_RATE", 10**9)

    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0)

    report = "/api/v1/runs/J-0000000000000@20261118T000000Z/report"
    for path, headers in (("/api/v1/jobs", JSON), (report, {**JSON, "Authorization": "Bearer x"})):
        async with asyncio.timeout(20):
            answer = await client.post(path, content=dripping(), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (408, "slow_body")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/jobs?" + "&".join(f"q{number}" for number in range(5_000)), None),
        ("POST", "/api/v1/jobs/J-0000000000000/resume", {f"q{number}": 1 for number in range(10_000)}),
        (
            "PATCH",
            "/api/v1/jobs/J-0000000000000",
            {"retry": {f"q{number}": None for number in range(10_000)}},
        ),
        ("POST", "/api/v1/jobs", {"x" * 200_000: 1}),
    ],
    ids=["parameters", "a body where there is none", "resets", "a long name"],
)
async def test_what_is_wrong_is_told_in_little(
    client: httpx2.AsyncClient, method: str, path: str, body: object
) -> None:
    answer = await client.request(method, path, json=body)
    assert answer.status_code == 422
    assert len(answer.content) < 20_000
    assert 1 <= len(answer.json()["errors"]) <= 20


@pytest.mark.parametrize("levels", [65, 900, 2_000, 50_000])
async def test_a_payload_in_a_text_is_no_way_around_the_depth(
    client: httpx2.AsyncClient, levels: int
) -> None:
    document = {"cron": "0 9 * * *", "callback_url": "https://example.com/"}
    answer = await client.post("/api/v1/jobs", json={**document, "payload": "[" * levels + "]" * levels})
    assert answer.status_code == 422
    assert "levels" in answer.json()["detail"]
