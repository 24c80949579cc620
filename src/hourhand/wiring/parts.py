"""Builds the parts of a process from settings. Adapters are chosen by URL scheme, imported when needed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI

from hourhand.clock import Clock
from hourhand.config import Settings, store_url_fault
from hourhand.config.kinds import is_loopback
from hourhand.core.model import HttpTarget, PythonTarget, ShellTarget
from hourhand.core.report import ReportTokens
from hourhand.core.signature import parse_secret
from hourhand.core.specification import SpecLimits
from hourhand.errors import CannotStart
from hourhand.functions import RegisteredFunction
from hourhand.ids import IdSource
from hourhand.ports.limits import Limits
from hourhand.ports.log import RunLog
from hourhand.ports.store import Store
from hourhand.ports.target import Target
from hourhand.services.audit import Audit
from hourhand.services.backfills import Backfills
from hourhand.services.event_log import EventLog
from hourhand.services.jobs import Jobs, JobsChanged
from hourhand.services.log_writer import LogRouter
from hourhand.services.node import Node
from hourhand.services.progress import Noted, ProgressBoard, unseen
from hourhand.services.recent import Recent
from hourhand.services.reports import Reports
from hourhand.services.room import Room
from hourhand.services.runs import Runs
from hourhand.services.worker import Settled, Worker
from hourhand.targets.addresses import parse_allowed
from hourhand.targets.http import HttpExecutor, HttpSettings
from hourhand.targets.python import PythonExecutor
from hourhand.targets.shell import NoShell, ShellExecutor
from hourhand.telemetry import Telemetry
from hourhand.web.app import create_app
from hourhand.web.context import WebSettings
from hourhand.web.documents import DocumentRules
from hourhand.wiring.identity import build_authenticators
from hourhand.wiring.limiting import default_quota
from hourhand.wiring.nodes import Nodes

_THREADS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that runs in one process, apart from the API's server."""

    store: Store
    jobs: Jobs
    runs: Runs
    node: Node
    worker: Worker
    targets: Mapping[type, Target]
    telemetry: Telemetry
    clock: Clock

    async def close(self) -> None:
        """Let go of connections, threads and the store; the node must have stopped."""
        for target in self.targets.values():
            await target.close()
        await self.store.close()


def sqlite_path(url: str) -> Path:
    """The file behind a `sqlite:///` URL."""
    if fault := store_url_fault(url):
        raise CannotStart(f"store.url: {fault}")
    return Path(url.removeprefix("sqlite:///"))


def open_store(settings: Settings, clock: Clock) -> Store:
    """The store that a URL names."""
    from hourhand.stores.sqlite import SqliteStore

    return SqliteStore.open(
        sqlite_path(settings.store.url),
        clock=clock,
        segments=settings.scheduler.segments,
        lead_us=settings.scheduler.lead_us,
        keep_us=settings.history.keep_us,
        quota=default_quota(settings),
    )


def build_targets(
    settings: Settings,
    clock: Clock,
    functions: Mapping[str, RegisteredFunction],
    report_base: str | None = None,
    tokens: ReportTokens | None = None,
    *,
    log: RunLog,
    board: ProgressBoard | None = None,
) -> dict[type, Target]:
    """What can be executed, by the type of a job's target; without tokens, none of them can report."""
    tokens, board = tokens or ReportTokens(), board or ProgressBoard()
    http = HttpSettings(
        allowed=parse_allowed(settings.targets.allow_hosts),
        signing_keys=tuple(parse_secret(secret) for secret in settings.targets.signing_secret),
        report_base=report_base,
    )
    threads = min(_THREADS, settings.worker.concurrency)
    return {
        HttpTarget: HttpExecutor(clock, http, tokens.token_for),
        PythonTarget: PythonExecutor(functions, threads=threads, log=log, tell=board.tell),
        ShellTarget: ShellExecutor(log) if settings.worker.shell else NoShell(),
    }


def build_parts(
    settings: Settings,
    *,
    store: Store,
    clock: Clock,
    ids: IdSource,
    telemetry: Telemetry,
    targets: Mapping[type, Target],
    logs: LogRouter,
    board: ProgressBoard | None = None,
    settled: Settled = lambda batch: None,
    noted: Noted = unseen,
    jobs_changed: JobsChanged = lambda kind, jobs: None,
) -> Parts:
    """A node that plans, works and sweeps, and the use cases beside it."""
    nodes = Nodes(
        settings=settings,
        ids=ids,
        telemetry=telemetry,
        targets=targets,
        room=Room(settings.worker.concurrency),
        logs=logs,
        board=board or ProgressBoard(),
    )
    node, worker = nodes.joint(store, clock, settled, noted, jobs_changed)
    jobs, runs = build_use_cases(settings, store=store, clock=clock, ids=ids, jobs_changed=jobs_changed)
    return Parts(
        store=store,
        jobs=jobs,
        runs=runs,
        node=node,
        worker=worker,
        targets=targets,
        telemetry=telemetry,
        clock=clock,
    )


def build_use_cases(
    settings: Settings, *, store: Store, clock: Clock, ids: IdSource, jobs_changed: JobsChanged
) -> tuple[Jobs, Runs]:
    """What an API offers over a store."""
    limits = SpecLimits(
        min_interval_us=settings.limits.min_interval_us, payload_bytes=settings.limits.payload_bytes
    )
    jobs = Jobs(store=store, ids=ids, clock=clock, limits=limits, changed=jobs_changed)
    return jobs, Runs(store=store, clock=clock, horizon_us=settings.scheduler.horizon_us)


def build_app(
    settings: Settings,
    *,
    store: Store,
    jobs: Jobs,
    runs: Runs,
    reports: Reports,
    clock: Clock,
    telemetry: Telemetry,
    events: EventLog,
    recent: Recent,
    parts: Callable[[], Mapping[str, str | None]],
    limits: Limits | None = None,
) -> FastAPI:
    """The API over these; `parts` tells what is wrong with the process."""
    rules = DocumentRules(
        payload_bytes=settings.limits.payload_bytes,
        misfire_grace_us=settings.scheduler.misfire_grace_us,
        target_timeout_us=settings.targets.timeout_us,
    )
    return create_app(
        jobs=jobs,
        runs=runs,
        reports=reports,
        audit=Audit(store=store, clock=clock, keep_us=settings.history.keep_us),
        backfills=Backfills(store=store, ids=IdSource(clock), clock=clock, keep_us=settings.history.keep_us),
        store=store,
        clock=clock,
        registry=telemetry.registry,
        settings=WebSettings(
            url=settings.server.url,
            any_host=settings.auth.asks and not is_loopback(settings.server.host),
            origins=settings.server.cors,
            documents=rules,
            requests=settings.limits.requests,
        ),
        parts=parts,
        events=events,
        recent=recent,
        limits=limits,
        authenticators=build_authenticators(settings, store, clock),
    )
