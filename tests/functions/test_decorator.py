"""The decorator: the function stays one, and what stands beside it becomes a job document."""

import asyncio
import inspect
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import hourhand
from hourhand import Hourhand, Retry, Run
from hourhand.functions import Registry


@pytest.fixture
def hh() -> Hourhand:
    return Hourhand(Registry())


def test_the_example_of_the_surface(hh: Hourhand) -> None:
    @hh.job(
        cron="0 9 * * *",
        tz="Europe/Berlin",
        retry=Retry(3, first="1s", max="10m"),
        timeout="5m",
        overlap="queue_one",
        priority="high",
    )
    async def daily_report(ctx: Run, region: str = "eu") -> dict[str, str]:
        ctx.progress(0.4, "loading")
        return {"region": region, "run": ctx.run_id}

    name = f"{__name__}:test_the_example_of_the_surface.<locals>.daily_report"
    assert daily_report.function_name == name
    assert list(hh.registry) == [name]
    assert daily_report.document() == {
        "name": "daily_report",
        "key": name,
        "cron": "0 9 * * *",
        "tz": "Europe/Berlin",
        "retry": {"max": 3, "first": "1s", "factor": 2, "max_delay": "10m"},
        "timeout": "5m",
        "overlap": "queue_one",
        "priority": "HIGH",
        "target": {"type": "python", "function": name},
    }
    assert inspect.iscoroutinefunction(daily_report)
    fake = Run.fake()
    assert asyncio.run(daily_report(fake, "us")) == {"region": "us", "run": fake.run_id}
    assert fake.last_progress == (0.4, "loading")


def test_values_in_the_words_of_the_api(hh: Hourhand) -> None:
    @hh.job(
        every=timedelta(minutes=90),
        phase=datetime(2026, 11, 16, 9, tzinfo=UTC),
        ends_at="2027-01-01T00:00:00Z",
        name="n",
        key="k",
        tags=("a", "b"),
        payload={"x": 1},
        retry=5,
        concurrency=None,
        misfire="skip",
        jitter=2.5,
    )
    def task(x: int) -> None: ...

    document = task.document()
    assert document is not None
    document.pop("target")
    assert document == {
        "name": "n",
        "key": "k",
        "every": "1h30m",
        "phase": "2026-11-16T09:00:00Z",
        "ends_at": "2027-01-01T00:00:00Z",
        "tags": ["a", "b"],
        "payload": {"x": 1},
        "retry": {"max": 5},
        "concurrency": None,
        "misfire": {"policy": "skip"},
        "jitter": "2s500ms",
    }


def test_a_job_follows_functions_ids_and_keys(hh: Hourhand) -> None:
    @hh.job(every="1h")
    def extract() -> None: ...

    @hh.job(every="1h", key="own/key")
    def fetch() -> None: ...

    @hh.job(after=[extract, fetch, "J-0000000000001", "a/key"], wait=timedelta(hours=2))
    def report() -> None: ...

    @hh.job(after=report)
    def mail() -> None: ...

    @hh.job(after="a/key")
    def other() -> None: ...

    documents = [one.document() or {} for one in (report, mail, other)]
    assert [document["after"] for document in documents] == [
        [extract.function_name, "own/key", "J-0000000000001", "a/key"],
        [report.function_name],
        ["a/key"],
    ]
    assert documents[0]["wait"] == "2h"


def test_only_jobs_can_be_followed(hh: Hourhand) -> None:
    @hh.function
    def no_job() -> None: ...

    with pytest.raises(ValueError, match="no_job is no job"):
        hh.job(after=[no_job])
    with pytest.raises(TypeError, match="expected ids, keys or declared functions"):
        hh.job(after=[len])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="exactly one"):
        hh.job(after="a", cron="* * * * *")


def test_without_a_schedule_a_function_is_only_registered(hh: Hourhand) -> None:
    @hh.function
    def one() -> int:
        return 1

    @hh.job()
    def two() -> int:
        return 2

    assert (one(), two()) == (1, 2)
    assert one.document() is None
    assert two.document() is None
    assert [registered.function for registered in hh.registry.values()] == [one, two]


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"corn": "* * * * *"}, TypeError, "no field 'corn'; did you mean 'cron'"),
        ({"cron": "* * * * *", "every": "1s"}, ValueError, "exactly one"),
        ({"timeout": "1s"}, ValueError, "exactly one"),
        ({"every": "soon"}, ValueError, "not a duration"),
        ({"at": datetime(2026, 1, 1)}, ValueError, "no zone"),  # noqa: DTZ001
    ],
)
def test_what_is_wrong_is_said_where_it_is_written(
    hh: Hourhand, fields: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        hh.job(**fields)


def test_only_functions_and_only_once(hh: Hourhand) -> None:
    @hh.function
    def once() -> None: ...

    with pytest.raises(ValueError, match="declared already"):
        hh.function(once)
    with pytest.raises(TypeError, match="expected a function, got type"):
        hh.function(int)
    with pytest.raises(TypeError, match="generator"):
        hh.function(lambda: (yield))


def test_a_document_is_the_callers_own(hh: Hourhand) -> None:
    @hh.job(every="1s", payload={"a": []})
    def task(a: list[int]) -> None: ...

    document = task.document()
    assert document is not None
    document["payload"]["a"].append(1)
    document.clear()
    again = task.document()
    assert again is not None
    assert again["payload"] == {"a": []}


class AskedServer:
    """A server that remembers what it was asked for."""

    def __init__(self) -> None:
        self.jobs = self
        self.asked: list[dict[str, Any]] = []

    def __enter__(self) -> "AskedServer":
        return self

    def __exit__(self, *_: object) -> None: ...

    def create(self, document: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(document)
        return {"job_id": "J-1", **document}


def test_a_function_asks_for_runs_of_itself() -> None:
    server = AskedServer()
    hh = Hourhand(Registry(), client=lambda: server)

    @hh.job(
        cron="0 9 * * *", tz="Europe/Berlin", payload={"region": "eu", "deep": True}, timeout="1m", key="k"
    )
    def report(region: str, deep: bool) -> None: ...

    @hh.function
    def plain() -> None: ...

    made = report.at(datetime(2026, 11, 16, 9, tzinfo=UTC), region="us")
    report.run_now()
    plain.at("2026-11-16T08:00:00Z")

    assert made["job_id"] == "J-1"
    first, now, last = server.asked
    assert first == {
        "name": "report",
        "timeout": "1m",
        "at": "2026-11-16T09:00:00Z",
        "target": {"type": "python", "function": report.function_name},
        "payload": {"region": "us", "deep": True},
    }
    assert now["payload"] == {"region": "eu", "deep": True}
    assert now["at"].endswith("Z")
    assert (last["name"], last["payload"]) == ("plain", {})


class AwaitedServer:
    """The same, awaited."""

    def __init__(self) -> None:
        self.jobs = self
        self.asked: list[dict[str, Any]] = []

    async def __aenter__(self) -> "AwaitedServer":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def create(self, document: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(document)
        return {"job_id": "J-1", **document}


async def test_on_an_event_loop_it_is_awaited() -> None:
    """Waiting there would hold up everybody, and under `hourhand up` also who is to answer."""
    blocking, awaited = AskedServer(), AwaitedServer()
    hh = Hourhand(Registry(), client=lambda: blocking, async_client=lambda: awaited)

    @hh.job(cron="0 9 * * *", payload={"region": "eu"})
    async def report(region: str) -> None: ...

    for ask in (lambda: report.run_now(), lambda: report.at("2026-11-16T08:00:00Z")):
        with pytest.raises(RuntimeError, match=r"await report.run_now_async"):
            ask()
    assert (await report.run_now_async(region="us"))["job_id"] == "J-1"
    await report.at_async("2026-11-16T08:00:00Z")
    now, later = awaited.asked
    assert (now["payload"], later["payload"], later["at"]) == (
        {"region": "us"},
        {"region": "eu"},
        "2026-11-16T08:00:00Z",
    )
    assert await asyncio.to_thread(report.run_now) == {"job_id": "J-1", **blocking.asked[0]}


def test_what_users_import_is_there_and_costs_nothing_until_used() -> None:
    for name in hourhand.__all__:
        assert getattr(hourhand, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hourhand.nothing
    code = "import hourhand, sys; print(sorted({'msgspec', 'aiohttp', 'structlog', 'asyncio'} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
