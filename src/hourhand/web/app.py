"""The application: routes, guards around them, problems for whatever goes wrong."""

from collections.abc import Sequence

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from hourhand import __version__
from hourhand.clock import Clock
from hourhand.core.instant import DAY_US
from hourhand.ids import IdSource
from hourhand.ports.identity import Authenticator
from hourhand.ports.limits import Limits
from hourhand.ports.store import Store
from hourhand.services.audit import Audit
from hourhand.services.backfills import Backfills
from hourhand.services.event_log import EventLog
from hourhand.services.graphs import Graphs
from hourhand.services.jobs import Jobs
from hourhand.services.operations import Operations
from hourhand.services.overview import Overview
from hourhand.services.quotas import Quotas
from hourhand.services.recent import Recent
from hourhand.services.repeats import Repeats
from hourhand.services.reports import Reports
from hourhand.services.run_logs import RunLogs
from hourhand.services.runs import Runs
from hourhand.services.tokens import Tokens
from hourhand.services.webhooks import Webhooks
from hourhand.services.why import Why
from hourhand.web import problems
from hourhand.web.compressing import Compressor
from hourhand.web.context import Parts, WebContext, WebSettings
from hourhand.web.cors import Cors
from hourhand.web.guards import BodyLimit, HostGuard
from hourhand.web.identity import Identity
from hourhand.web.observing import HttpMetrics, Observer
from hourhand.web.openapi import describe
from hourhand.web.request_limit import RequestLimit
from hourhand.web.routes import PLACED, methods_at

_KEEP_US = 30 * DAY_US  # of history, where nobody says otherwise


def create_app(
    *,
    jobs: Jobs,
    runs: Runs,
    reports: Reports | None = None,
    backfills: Backfills | None = None,
    audit: Audit | None = None,
    store: Store,
    clock: Clock,
    registry: CollectorRegistry,
    settings: WebSettings | None = None,
    parts: Parts = dict,
    events: EventLog | None = None,
    recent: Recent | None = None,
    authenticators: Sequence[Authenticator] | None = None,
    limits: Limits | None = None,
) -> FastAPI:
    """An ASGI application over these services.

    `parts` tells what is wrong with the process, for /readyz. Without `authenticators` everybody may do
    everything, which is for loopback only. Without `limits` nobody's requests are counted. Whoever stops the server closes `events`
    first: streams end only then.
    """
    settings = settings or WebSettings()
    app = FastAPI(
        title="hourhand",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"metrics": False, "logs": False},  # ours say the same, by route template
    )
    app.state.context = WebContext(
        jobs=jobs,
        graphs=Graphs(store=store, clock=clock),
        runs=runs,
        why=Why(store=store, clock=clock, horizon_us=runs.horizon_us),
        quotas=Quotas(store=store, payload_bytes=settings.documents.payload_bytes),
        reports=reports or Reports(store=store),
        repeats=Repeats(store=store),
        backfills=backfills or Backfills(store=store, ids=IdSource(clock), clock=clock, keep_us=_KEEP_US),
        webhooks=Webhooks(store=store, ids=IdSource(clock), clock=clock),
        audit=audit or Audit(store=store, clock=clock, keep_us=_KEEP_US),
        operations=Operations(store=store, ids=IdSource(clock), clock=clock),
        logs=RunLogs(store=store, runs=runs, clock=clock),
        store=store,
        clock=clock,
        registry=registry,
        parts=parts,
        events=events or EventLog(clock=clock),
        overview=Overview(store=store, clock=clock, recent=recent or Recent(clock=clock)),
        settings=settings,
        identity=Identity(authenticators, url=settings.url),
        request_limit=RequestLimit(limit=settings.requests, limits=limits, clock=clock, registry=registry),
        tokens=Tokens(store=store, ids=IdSource(clock), clock=clock),
    )
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    app.router.routes.extend(PLACED.routes)
    problems.install(app, methods_at)
    # The last that is added is the outermost.
    app.add_middleware(BodyLimit, payload_bytes=settings.documents.payload_bytes)
    app.add_middleware(Compressor)
    app.add_middleware(HostGuard, url=settings.url, any_host=settings.any_host, origins=settings.origins)
    if settings.origins:
        app.add_middleware(Cors, origins=settings.origins)
    app.add_middleware(Observer, clock=clock, metrics=HttpMetrics(registry))
    return app
