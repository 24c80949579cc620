"""An application over a real store on a clock that stands still, and a client that needs no socket."""

from collections.abc import AsyncIterator, Callable, Sequence

import httpx2
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from hourhand.clock import ManualClock
from hourhand.core.instant import DAY_US, MINUTE_US
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.ports.identity import Authenticator
from hourhand.ports.limits import Limits
from hourhand.ports.store import Store
from hourhand.services.jobs import Jobs
from hourhand.services.runs import Runs
from hourhand.stores.postgres import PostgresStore
from hourhand.stores.sqlite.store import SqliteStore
from hourhand.web.app import create_app
from hourhand.web.context import Parts, WebSettings
from tests.web.described import check_headers

ADDRESS = "http://127.0.0.1:7070"

MakeApp = Callable[..., FastAPI]


@pytest.fixture(autouse=True)
def headers_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test asks for without a socket: the headers of the answer are in the description of the API."""
    ask = httpx2.ASGITransport.handle_async_request

    async def asked(transport: httpx2.ASGITransport, request: httpx2.Request) -> httpx2.Response:
        answer = await ask(transport, request)
        if isinstance(transport.app, FastAPI):
            check_headers(transport.app, request.method, request.url.path, answer)
        return answer

    monkeypatch.setattr(httpx2.ASGITransport, "handle_async_request", asked)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()  # 2027-01-15T08:00:00Z, a Friday


@pytest.fixture
async def store(clock: ManualClock) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore.in_memory(clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
def make_app(store: SqliteStore, clock: ManualClock) -> MakeApp:
    def make(
        settings: WebSettings | None = None,
        parts: Parts = dict,
        authenticators: Sequence[Authenticator] | None = None,
        limits: Limits | None = None,
        registry: CollectorRegistry | None = None,
    ) -> FastAPI:
        return create_app(
            jobs=Jobs(store=store, ids=IdSource(clock, seed=1), clock=clock, limits=SpecLimits()),
            runs=Runs(store=store, clock=clock, horizon_us=MINUTE_US),
            store=store,
            clock=clock,
            registry=registry or CollectorRegistry(),
            settings=settings,
            parts=parts,
            authenticators=authenticators,
            limits=limits,
        )

    return make


@pytest.fixture(params=["sqlite", "postgres"])
async def each_store(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Store]:
    """A fresh store of each kind, for what must not depend on it."""
    opened: Store
    if request.param == "sqlite":
        opened = SqliteStore.in_memory(clock=clock)
    else:
        opened = await PostgresStore.open(
            request.getfixturevalue("migrated_url"),
            clock=clock,
            lead_us=MINUTE_US,
            keep_us=30 * DAY_US,
            pool_size=4,
        )
    yield opened
    await opened.close()


@pytest.fixture
async def each_client(each_store: Store, clock: ManualClock) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an application over each kind of store."""
    app = create_app(
        jobs=Jobs(store=each_store, ids=IdSource(clock, seed=1), clock=clock, limits=SpecLimits()),
        runs=Runs(store=each_store, clock=clock, horizon_us=MINUTE_US),
        store=each_store,
        clock=clock,
        registry=CollectorRegistry(),
    )
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as opened:
        yield opened


@pytest.fixture
def app(make_app: MakeApp) -> FastAPI:
    return make_app()


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ADDRESS) as opened:
        yield opened
