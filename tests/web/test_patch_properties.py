"""A merge patch changes what it names and nothing else, whatever it names."""

import asyncio
from typing import Any

import httpx2
import msgspec
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from hourhand.clock import ManualClock
from hourhand.core.instant import MINUTE_US
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.services.jobs import Jobs
from hourhand.services.runs import Runs
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.app import create_app
from tests.web.conftest import ADDRESS

# Each field with what it may become; the first is what the job begins with.
FIELDS: dict[str, list[Any]] = {
    "name": ["a", "b", "ünï"],
    "key": ["k/1", None, "k/2"],
    "tags": [["x"], [], ["y", "z"], None],
    "cron": ["0 9 * * *", "*/5 * * * *"],
    "tz": ["Europe/Berlin", "UTC", None],
    "starts_at": ["2027-02-01T00:00:00Z", None],
    "ends_at": ["2029-01-01T00:00:00Z", None],
    "max_runs": [1000, None, 7],
    "payload": [{"a": [1, 2.50, None]}, None, "text", [], {"b": {}}],
    "priority": ["HIGH", "LOW", None],
    "pool": ["blue", "default", None],
    "timeout": ["5m", "10s", None],
    "delivery": ["at_most_once", "at_least_once", None],
    "concurrency": [3, None, 1],
    "overlap": ["skip", "queue_one", None],
    "jitter": ["5s", "0s", None],
    "note": ["why", None, "other"],
    "retry": [{"max": 7, "first": "2s"}, {"max": 1}, {"factor": 3}, None],
    "misfire": [{"policy": "skip", "grace": "90s"}, {"grace": "10s"}, None],
}
FIRST = {
    **{name: values[0] for name, values in FIELDS.items()},
    "callback_url": "https://example.com/x",
    "paused": True,
}
FOLLOWING = {  # what is computed from others
    "version",
    "updated_at",
    "next_fire_time",
    "schedule_in_words",
    "effective_from",
}
PATCHES = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in FIELDS.items()}
)


async def patched_twice(first: dict[str, Any], second: dict[str, Any]) -> list[dict[str, Any]]:
    clock = ManualClock()
    store = SqliteStore.in_memory(clock=clock)
    app = create_app(
        jobs=Jobs(store=store, ids=IdSource(clock, seed=1), clock=clock, limits=SpecLimits()),
        runs=Runs(store=store, clock=clock, horizon_us=MINUTE_US),
        store=store,
        clock=clock,
        registry=CollectorRegistry(),
    )
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as client:
        made = await client.post("/api/v1/jobs", json=FIRST)
        assert made.status_code == 201, made.text
        path = made.headers["location"]
        found = [(await client.get(path)).json()]
        for patch in (first, second):
            answer = await client.patch(path, json=patch)
            assert answer.status_code in (200, 422), answer.text
            found.append((await client.get(path)).json())
            if answer.status_code == 422:
                assert found[-1] == found[-2]
    await store.close()
    return found


def fields_of(job: dict[str, Any], but: set[str]) -> bytes:
    return msgspec.json.encode({name: value for name, value in job.items() if name not in but | FOLLOWING})


@given(first=PATCHES, second=PATCHES)
def test_what_a_patch_does_not_name_stays_byte_by_byte(first: dict[str, Any], second: dict[str, Any]) -> None:
    jobs = asyncio.run(patched_twice(first, second))
    for before, after, patch in zip(jobs, jobs[1:], (first, second), strict=False):
        assert fields_of(after, set(patch)) == fields_of(before, set(patch))
    for name in ("retry", "misfire"):  # and within an object what the patch does not name there
        if isinstance(first.get(name), dict) and jobs[1]["version"] > 1:
            unnamed = set(jobs[0][name]) - set(first[name])
            assert {one: jobs[1][name][one] for one in unnamed} == {
                one: jobs[0][name][one] for one in unnamed
            }
