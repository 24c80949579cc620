"""What routes are given: the services and settings of this process, and on whose behalf a request comes."""

from collections.abc import Callable, Mapping

import msgspec
from fastapi import Request
from prometheus_client import CollectorRegistry

from hourhand.clock import Clock
from hourhand.core.access import Via
from hourhand.core.bucket import Limit
from hourhand.ports.store import Store
from hourhand.services.audit import Audit
from hourhand.services.backfills import Backfills
from hourhand.services.event_log import EventLog
from hourhand.services.graphs import Graphs
from hourhand.services.jobs import Jobs
from hourhand.services.node import Degraded
from hourhand.services.operations import Operations
from hourhand.services.overview import Overview
from hourhand.services.quotas import Quotas
from hourhand.services.repeats import Repeats
from hourhand.services.reports import Reports
from hourhand.services.run_logs import RunLogs
from hourhand.services.runs import Runs
from hourhand.services.tokens import Tokens
from hourhand.services.webhooks import Webhooks
from hourhand.services.why import Why
from hourhand.web.access import CALLER, TENANT_HEADER, Caller
from hourhand.web.documents import DocumentRules
from hourhand.web.identity import Identity
from hourhand.web.request_limit import RequestLimit

Parts = Callable[[], Mapping[str, str | None]]  # each part of the process, and what is wrong with it


class WebSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the edge needs to know of the operator's settings."""

    url: str = ""  # the address that people and targets use, where it is not loopback
    any_host: bool = False  # it listens beyond loopback, where everybody is asked who they are
    origins: tuple[str, ...] = ()  # of other sites' pages that may ask
    documents: DocumentRules = DocumentRules()
    requests: Limit | None = None  # of one user


class WebContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a route may use."""

    jobs: Jobs
    graphs: Graphs
    runs: Runs
    backfills: Backfills
    webhooks: Webhooks
    audit: Audit
    operations: Operations
    why: Why
    quotas: Quotas
    reports: Reports
    repeats: Repeats
    logs: RunLogs
    store: Store
    clock: Clock
    registry: CollectorRegistry
    parts: Parts
    events: EventLog
    overview: Overview
    settings: WebSettings
    identity: Identity
    tokens: Tokens
    request_limit: RequestLimit


def is_ready(parts: Mapping[str, str | None]) -> bool:
    """Whether the process can do its work: nothing is wrong that others do not make up for."""
    return all(wrong is None or isinstance(wrong, Degraded) for wrong in parts.values())


def context_of(request: Request) -> WebContext:
    """The context of the application that a request came to."""
    context: WebContext = request.app.state.context
    return context


def caller_of(request: Request) -> tuple[WebContext, str]:
    """The context, and whose jobs a request is about."""
    caller: Caller = request.scope[CALLER]
    return context_of(request), caller.tenant


def user_of(request: Request) -> str | None:
    """Whom to count what a request takes against; None for nobody in particular, on loopback."""
    caller: Caller = request.scope[CALLER]
    who = caller.principal
    return None if who.via is Via.LOCAL else f"{who.tenant}/{who.subject}"


def sees_everything(request: Request) -> bool:
    """Whether a request comes from somebody who runs the system, and names no tenant."""
    caller: Caller = request.scope[CALLER]
    return caller.principal.runs_the_system and TENANT_HEADER not in request.headers
