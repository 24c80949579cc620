"""Lists page by page while jobs come and go, as lines in bounded memory, and about how many there are."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import msgspec
import pytest

from hourhand.stores.relational import reading
from tests.web.test_jobs_routes import create

LINES = {"Accept": "application/x-ndjson"}

Meanwhile = Callable[[int], Awaitable[None]]


async def walked(client: httpx2.AsyncClient, path: str, meanwhile: Meanwhile) -> list[str]:
    """The ids of all pages, by the Link of each; something happens between them."""
    found: list[str] = []
    address: str | None = path
    while address is not None:
        answer = await client.get(address)
        assert answer.status_code == 200, answer.text
        found += [one.get("run_id") or one["job_id"] for one in answer.json()["data"]]
        link = answer.headers.get("link", "")
        assert bool(link) is (answer.json()["next_cursor"] is not None)
        address = link.partition(">")[0].removeprefix("<") or None
        await meanwhile(len(found))
    return found


@pytest.mark.parametrize("query", ["limit=7", "limit=7&tag=a", "limit=7&name=job", "limit=7&state=active"])
async def test_what_stays_is_listed_once_whatever_comes_and_goes(
    client: httpx2.AsyncClient, query: str
) -> None:
    ids = [await create(client, name=f"job-{n}", tags=["a"]) for n in range(40)]
    gone: set[str] = set()

    async def meanwhile(seen: int) -> None:
        await create(client, name="job-new", tags=["a"])
        for job_id in (ids[-seen], ids[max(0, 40 - seen - 3)]):  # the last that was listed, and one to come
            if job_id not in gone:
                gone.add(job_id)
                await client.delete(f"/api/v1/jobs/{job_id}")

    found = await walked(client, f"/api/v1/jobs?{query}", meanwhile)
    assert len(found) == len(set(found))
    assert set(ids) - gone <= set(found) <= set(ids)
    assert [one for one in found if one not in gone] == [one for one in reversed(ids) if one not in gone]


async def test_history_is_stable_while_runs_are_asked_for(client: httpx2.AsyncClient) -> None:
    job = await create(client)
    path = f"/api/v1/jobs/{job}"
    ids = [(await client.post(f"{path}/run")).json()["run_id"] for _ in range(12)]

    async def meanwhile(_: int) -> None:
        await client.post(f"{path}/run")

    found = await walked(client, f"{path}/history?coming=false&limit=5", meanwhile)
    assert len(found) == len(set(found))
    assert set(ids) <= set(found)


async def test_sorts_that_no_index_has_are_refused_by_name(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/api/v1/jobs?sort=name")
    assert answer.status_code == 422
    assert "-created_at" in answer.json()["errors"][0]["expected"]


# --- how many


async def test_about_how_many(client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(6):
        await create(client, name=f"{'a' if n % 2 else 'b'}-{n}", paused=n < 2)

    async def count(query: str = "") -> object:
        answer = await client.get(f"/api/v1/jobs?count=estimate&limit=1{query}")
        return answer.json().get("count") or answer.json()["errors"][0]["pointer"]

    assert await count() == {"estimate": 6, "or_more": False}
    assert await count("&name=a") == {"estimate": 3, "or_more": False}
    assert await count("&state=paused") == {"estimate": 2, "or_more": False}
    assert await count("&set=none") == {"estimate": 0, "or_more": False}
    monkeypatch.setattr(reading, "MOST_COUNTED", 4)
    assert await count() == {"estimate": 4, "or_more": True}
    for query in ("&tag=x", "&failing=true", "&state=active", "&name=a&state=paused"):
        assert await count(query) == "?count"
    refused = await client.get("/api/v1/jobs?count=estimate&state=active")
    [advised] = re.findall(r"state=\w+", refused.json()["detail"])
    assert (await client.get(f"/api/v1/jobs?count=estimate&{advised}")).status_code == 200
    assert "count" not in (await client.get("/api/v1/jobs")).json()


# --- lines


async def test_lines_hold_all_that_match_each_as_in_the_list(client: httpx2.AsyncClient) -> None:
    for n in range(250):
        body = b'{"name": "n", "cron": "0 9 * * *", "callback_url": "https://example.com/", "payload": {\n "a":\r\n 1}}'
        tags = b', "tags": ["odd"]}' if n % 2 else b"}"
        await client.post(
            "/api/v1/jobs", content=body[:-1] + tags, headers={"Content-Type": "application/json"}
        )
    answer = await client.get("/api/v1/jobs", headers=LINES)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.headers["vary"].split(", ")[0] == "Accept"
    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    listed = (await client.get("/api/v1/jobs?limit=1000")).json()["data"]
    assert lines == listed
    some = await client.get("/api/v1/jobs?tag=odd&payload=false&limit=3", headers=LINES)
    assert len(some.content.splitlines()) == 125
    assert msgspec.json.decode(some.content.splitlines()[0])["payload"] is None


async def test_lines_of_nothing_and_of_wrong_filters(client: httpx2.AsyncClient) -> None:
    empty = await client.get("/api/v1/jobs", headers=LINES)
    assert (empty.status_code, empty.content) == (200, b"")
    wrong = await client.get("/api/v1/jobs?state=odd", headers=LINES)
    assert (wrong.status_code, wrong.headers["content-type"]) == (422, "application/problem+json")


_MEASURED = """
import asyncio, resource, sys
from pathlib import Path
from hourhand.clock import ManualClock
from hourhand.stores.sqlite.store import SqliteStore
from tests.contract.builders import draft, every, spec
from tests.web.test_keeping import open_app

SCOPE = {"type": "http", "method": "GET", "path": "/api/v1/jobs", "raw_path": b"/api/v1/jobs", "query_string": b"",
    "server": ("127.0.0.1", 7070), "scheme": "http", "http_version": "1.1", "asgi": {"version": "3.0"},
    "headers": [(b"host", b"127.0.0.1:7070"), (b"accept", b"application/x-ndjson")]}

async def main() -> None:
    clock = ManualClock()
    store = SqliteStore.open(Path(sys.argv[1]), clock=clock)
    app = open_app(store, clock)
    for first in range(0, 20_000, 1_000):
        await store.create_jobs([draft(spec(every(3600), name="n" * 190), id=first + n + 1) for n in range(1_000)])
    sent, never = [0, 0], asyncio.Event()
    async def receive():
        await never.wait()
    async def send(message):
        sent[0] += len(message.get("body", b""))
        sent[1] = max(sent[1], len(message.get("body", b"")))
    begun_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await app(dict(SCOPE), receive, send)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun_kib
    print(sent[0], sent[1], grown_kib)
    await store.close()

asyncio.run(main())
"""


async def test_lines_of_many_jobs_are_never_held_together(tmp_path: Path) -> None:
    """The growth of the process's peak, in a process of its own, beside what it sent."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", _MEASURED, str(tmp_path / "many.db")],
        timeout=120,
        check=True,
        capture_output=True,
    )
    sent, largest, grown_kib = map(int, done.stdout.split()[-3:])
    assert sent > 15_000_000
    assert largest < 200_000
    assert grown_kib * 1024 < sent / 3
