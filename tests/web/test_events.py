"""The stream of events over a real socket: what arrives, how it resumes, what it is spared, and how it ends."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

import httpx2
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from hourhand.clock import ManualClock
from hourhand.core.access import LOCAL
from hourhand.core.instant import MINUTE_US
from hourhand.core.lifecycle import Event as Change
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.ports.events import Event, EventBatch, EventData, EventType
from hourhand.ports.identity import Authenticator
from hourhand.services.event_log import EVENTS_PER_SECOND, EventLog, Subscription
from hourhand.services.jobs import Jobs
from hourhand.services.local_events import LocalEvents
from hourhand.services.publisher import Publisher
from hourhand.services.runs import Runs
from hourhand.services.tokens import REVOKED_WITHIN_US, TokenAuthenticator, Tokens, TokenWish
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web import event_stream
from hourhand.web.app import create_app
from hourhand.web.problems import Problem
from hourhand.wiring.server import Server, address_of, bind
from tests.web.test_jobs_routes import DAILY
from tests.web.worker import take

DEADLINE_S = 10.0


class Frame(NamedTuple):
    """One message as a browser would see it."""

    id: str | None
    event: str | None
    data: Any
    retry_ms: int | None = None
    comment: str | None = None


class Reader:
    """Reads frames from a response, with a deadline."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()
        self._place: str | None = None

    async def next(self) -> Frame:
        async with asyncio.timeout(DEADLINE_S):
            return _frame([line async for line in self._block()])

    async def event(self) -> Frame:
        """The next frame that makes an event."""
        while True:
            frame = await self.next()
            if frame.event is not None:
                return frame

    async def begun(self) -> str:
        """The place that the stream begins after; from then on everything is heard."""
        while (frame := await self.next()).id is None:
            pass
        return frame.id

    async def rest(self) -> list[str]:
        """What is left until the server ends the stream."""
        async with asyncio.timeout(DEADLINE_S):
            return [line async for line in self._lines]

    async def _block(self) -> AsyncIterator[str]:
        async for line in self._lines:
            if not line:
                return
            yield line
        raise EOFError("the stream has ended")


def _frame(lines: list[str]) -> Frame:
    fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
    return Frame(
        id=fields.get("id"),
        event=fields.get("event"),
        data=json.loads(fields["data"]) if "data" in fields else None,
        retry_ms=int(fields["retry"]) if "retry" in fields else None,
        comment=next((line for line in lines if line.startswith(":")), None),
    )


class WatchedLog(EventLog):
    """Says when a client has left."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.left = asyncio.Event()

    def leave(self, subscription: Subscription) -> None:
        super().leave(subscription)
        self.left.set()


class Place:
    """A served application with everything that publishes."""

    def __init__(
        self, store: SqliteStore, clock: ManualClock, authenticators: Sequence[Authenticator] | None = None
    ) -> None:
        self.store = store
        self.clock = clock
        self.log = WatchedLog(clock=clock, max_clients=3)
        self.bus = LocalEvents()
        self.bus.subscribe(self.log.add)
        self.publisher = Publisher(bus=self.bus, clock=clock, publisher="p1")
        jobs = Jobs(
            store=store,
            ids=IdSource(clock, seed=1),
            clock=clock,
            limits=SpecLimits(),
            changed=self.publisher.jobs_changed,
        )
        self.app: FastAPI = create_app(
            jobs=jobs,
            runs=Runs(store=store, clock=clock, horizon_us=MINUTE_US),
            store=store,
            clock=clock,
            registry=CollectorRegistry(),
            events=self.log,
            authenticators=authenticators,
        )
        self.server = Server(self.app)
        listener = bind("127.0.0.1", 0)
        self.serving = asyncio.create_task(self.server.serve(sockets=[listener]))
        self.client = httpx2.AsyncClient(base_url=address_of(listener), timeout=DEADLINE_S)
        self._numbers: Iterator[int] = iter(range(1_000_000))

    @contextlib.asynccontextmanager
    async def follow(self, query: str = "", last_id: str | None = None) -> AsyncIterator[Reader]:
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        async with self.client.stream("GET", f"/api/v1/events{query}", headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Reader(response)

    async def create(self, **fields: Any) -> str:
        answer = await self.client.post("/v1/jobs", json={**DAILY, **fields})
        return str(answer.json()["job_id"])

    def happen(self, count: int = 1, **fields: Any) -> list[str]:
        """Events, as another process would publish them; answers their ids."""
        values = {"tenant": "default", "job_id": 1, "scheduled_at": self.clock.now(), **fields}
        kind = values.pop("type", EventType.RUN_SUCCEEDED)
        events = tuple(
            Event(
                id=f"{self.clock.now() + next(self._numbers):016d}-p2",
                type=kind,
                at=self.clock.now(),
                data=EventData(state="SUCCEEDED"),
                **values,
            )
            for _ in range(count)
        )
        self.bus.publish(EventBatch(events))
        return [event.id for event in events]

    async def gone(self) -> None:
        """Wait until the server has noticed that all clients left."""
        async with asyncio.timeout(DEADLINE_S):
            while self.log.clients:
                self.log.left.clear()
                await self.log.left.wait()

    async def close(self) -> None:
        await self.client.aclose()
        self.log.close()
        self.server.stop()
        await self.serving


@pytest.fixture
async def place(store: SqliteStore, clock: ManualClock) -> AsyncIterator[Place]:
    opened = Place(store, clock)
    yield opened
    await opened.close()


def settled(run: ClaimedRun, clock: ManualClock) -> Settlement:
    return Settlement(
        job_id=run.job_id,
        scheduled_at=run.scheduled_at,
        slot=run.slot,
        fence=run.fence,
        event=Change.EXHAUST,
        version=run.version,
        tries=4,
        started_at=run.due_at + 5_000,
        finished_at=run.due_at + 25_000,
        detail='{"error": "HTTP 500\\nmore", "response": {"body": "secret"}}',
    )


# --- what arrives


async def test_changes_of_jobs_and_ends_of_runs_arrive(place: Place) -> None:
    async with place.follow() as stream:
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        assert stream.response.headers["cache-control"] == "no-store"
        assert (await stream.next()).retry_ms == 2_000
        await stream.begun()
        job_id = await place.create(name="nightly", payload={"secret": 1})
        created = await stream.event()
        assert created.event == created.data["type"] == "job.created"
        assert created.data == {
            "id": created.id,
            "type": "job.created",
            "at": "2027-01-15T08:00:00Z",
            "job_id": job_id,
            "run_id": None,
            "data": {"state": "active", "name": "nightly", "version": 1},
        }
        await place.client.post(f"/v1/jobs/{job_id}/run")
        [run] = await take(place.store)
        place.publisher.settled([(run, settled(run, place.clock))])
        failed = await stream.event()
        assert (failed.event, failed.data["run_id"]) == ("run.failed", run.run_id)
        assert failed.data["data"] == {
            "state": "FAILED",
            "name": "nightly",
            "lag_ms": 5,
            "took_ms": 20,
            "attempt": 1,
            "error": "HTTP 500",
            "version": 1,
        }
        for action, name in (("pause", "job.paused"), ("resume", "job.resumed")):
            await place.client.post(f"/v1/jobs/{job_id}/{action}")
            assert (await stream.event()).event == name
        await place.client.patch(f"/v1/jobs/{job_id}", json={"name": "b"})
        assert (await stream.event()).data["data"]["name"] == "b"
        await place.client.delete(f"/v1/jobs/{job_id}")
        deleted = await stream.event()
        assert (deleted.event, deleted.data["data"]["state"]) == ("job.deleted", "deleted")


async def test_filters_by_type_and_job(place: Place) -> None:
    job_id = await place.create()
    async with (
        place.follow("?types=run.failed,job.*") as some,
        place.follow(f"?job_id={job_id}") as one,
        place.follow("?types=run.*&job_id=J-0000000000002") as other,
    ):
        for stream in (some, one, other):
            await stream.begun()
        place.happen(type=EventType.RUN_SUCCEEDED, job_id=2)
        place.happen(type=EventType.RUN_FAILED, job_id=3)
        place.happen(type=EventType.RUN_FAILED, job_id=2, tenant="other")
        await place.client.post(f"/v1/jobs/{job_id}/pause")
        assert [(await some.event()).event for _ in range(2)] == ["run.failed", "job.paused"]
        assert (await one.event()).data["job_id"] == job_id
        assert (await other.event()).data["job_id"] == "J-0000000000002"


async def test_a_quiet_stream_is_kept_alive(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "KEEP_ALIVE_S", 0.02)
    async with place.follow() as stream:
        await stream.begun()
        assert (await stream.next()).comment == ": keep-alive"
        place.happen()
        while (frame := await stream.next()).event is None:
            assert frame.comment == ": keep-alive"


async def test_too_many_arrive_as_numbers(place: Place) -> None:
    async with place.follow() as stream:
        await stream.begun()
        ids = [*place.happen(EVENTS_PER_SECOND), *place.happen(500, type=EventType.RUN_FAILED)]
        for event_id in ids[:EVENTS_PER_SECOND]:
            assert (await stream.event()).id == event_id
        stats = await stream.event()
        assert (stats.event, stats.id) == ("stats", ids[-1])
        assert stats.data == {
            "counts": {"run.succeeded": EVENTS_PER_SECOND, "run.failed": 500},
            "dropped": 500,
        }


# --- coming back


async def test_a_client_that_comes_back_gets_what_it_missed(place: Place) -> None:
    async with place.follow() as stream:
        begun = await stream.begun()
        first, second = place.happen(2)
        assert (await stream.event()).id == first
    third, *many = place.happen(250)
    async with place.follow(last_id=first) as stream:
        assert [(await stream.event()).id for _ in range(251)] == [second, third, *many]
        [live] = place.happen()
        assert (await stream.event()).id == live
    async with place.follow(last_id=begun) as stream:
        assert (await stream.event()).id == first


async def test_a_client_that_comes_back_too_late_is_told_to_read_anew(place: Place) -> None:
    [old] = place.happen()
    place.clock.advance(4 * MINUTE_US)
    [middle] = place.happen()
    place.clock.advance(4 * MINUTE_US)
    [new] = place.happen()
    for last_id in ("nonsense", "x" * 5_000):
        async with place.follow(last_id=last_id) as stream:
            reset = await stream.event()
            assert (reset.event, reset.id, reset.data) == ("reset", new, {})
        await place.gone()
    place.clock.advance(4 * MINUTE_US)
    place.happen()
    async with place.follow(last_id=old) as stream:
        assert (await stream.event()).event == "reset"
    async with place.follow(last_id=middle) as stream:
        assert (await stream.event()).id == new


# --- refusals and ends


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("types=run.suceeded", "did you mean run.succeeded?"),
        ("types=run.*,jobs.*", "did you mean job.*?"),
        ("types=zzz", "allowed: "),
    ],
)
async def test_unknown_types_are_refused_with_the_nearest(place: Place, query: str, hint: str) -> None:
    answer = await place.client.get(f"/v1/events?{query}")
    assert answer.status_code == 422
    [error] = Problem.model_validate(answer.json()).errors
    assert error.pointer == "?types"
    assert error.hint is not None
    assert error.hint.startswith(hint)
    assert place.log.clients == 0


async def test_wrong_job_ids_are_refused(place: Place) -> None:
    assert (await place.client.get("/v1/events?job_id=7")).status_code == 422


async def test_clients_are_bounded_and_their_places_are_free_when_they_leave(place: Place) -> None:
    async with place.follow(), place.follow(), place.follow():
        answer = await place.client.get("/v1/events")
        assert answer.status_code == 429
        assert answer.headers["retry-after"]
        assert Problem.model_validate(answer.json()).code == "overloaded"
    await place.gone()
    async with place.follow() as stream:
        await stream.begun()


async def test_one_user_leaves_room_for_others(store: SqliteStore, clock: ManualClock) -> None:
    place = Place(store, clock, [TokenAuthenticator(store=store, clock=clock)])
    place.log._max_of_user = 1
    try:
        tokens = Tokens(store=store, ids=IdSource(clock), clock=clock)
        made = [await tokens.create(LOCAL, TokenWish(name=name, tenant="acme")) for name in ("ann", "bob")]
        ann, bob = [{"Authorization": f"Bearer {one.text}"} for one in made]
        place.client.headers.update(ann)
        async with place.follow():
            refused = await place.client.get("/v1/events")
            assert refused.status_code == 429
            assert refused.json()["detail"].startswith("1 clients of yours follow events already")
            assert refused.headers["retry-after"]
            place.client.headers.update(bob)
            async with place.follow() as stream:
                await stream.begun()
    finally:
        await place.close()


async def test_stopping_ends_the_streams_at_once(place: Place) -> None:
    async with place.follow() as stream:
        await stream.begun()
        place.log.close()
        place.server.stop()
        async with asyncio.timeout(2):
            await place.serving
        assert await stream.rest() == []


# --- who may follow


async def test_a_stream_ends_before_it_tells_a_revoked_token_anything(
    store: SqliteStore, clock: ManualClock
) -> None:
    place = Place(store, clock, [TokenAuthenticator(store=store, clock=clock)])
    try:
        tokens = Tokens(store=store, ids=IdSource(clock), clock=clock)
        made = await tokens.create(LOCAL, TokenWish(name="ann", tenant="acme"))
        place.client.headers["Authorization"] = f"Bearer {made.text}"
        async with place.follow() as stream:
            await stream.begun()
            [known] = place.happen(tenant="acme")
            assert (await stream.event()).id == known
            await tokens.revoke("acme", made.token.id)
            clock.advance(REVOKED_WITHIN_US)
            place.happen(tenant="acme")
            assert await stream.rest() == []
        await place.gone()
    finally:
        await place.close()
