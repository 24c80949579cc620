"""Builds the parts of a process from settings. Adapters are chosen by URL scheme, imported when needed."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hourhand.clock import Clock
from hourhand.config import Settings
from hourhand.core.model import HttpTarget, PythonTarget
from hourhand.core.signature import parse_secret
from hourhand.core.specification import SpecLimits
from hourhand.errors import CannotStart
from hourhand.functions import RegisteredFunction
from hourhand.ids import IdSource
from hourhand.leases.native import NativeLeases
from hourhand.ports.store import Store
from hourhand.ports.target import Target
from hourhand.queues.native import NativeQueue
from hourhand.services.jobs import Jobs, JobsChanged
from hourhand.services.node import Node, Scheduler
from hourhand.services.planner import Planner
from hourhand.services.room import Room
from hourhand.services.runs import Runs
from hourhand.services.sweeper import Sweeper
from hourhand.services.worker import Settled, Worker
from hourhand.targets.addresses import parse_allowed
from hourhand.targets.http import HttpExecutor, HttpSettings
from hourhand.targets.python import PythonExecutor
from hourhand.telemetry import Telemetry

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
    scheme, _, path = url.partition(":///")
    if scheme != "sqlite" or not path:
        raise CannotStart(f"store.url: no store for {scheme!r}; this version has sqlite:///FILE")
    return Path(path)


def open_store(settings: Settings, clock: Clock) -> Store:
    """The store that a URL names."""
    from hourhand.stores.sqlite import SqliteStore

    return SqliteStore.open(
        sqlite_path(settings.store.url),
        clock=clock,
        segments=settings.scheduler.segments,
        lead_us=settings.scheduler.lead_us,
        keep_us=settings.history.keep_us,
    )


def build_targets(
    settings: Settings, clock: Clock, functions: Mapping[str, RegisteredFunction], report_base: str | None
) -> dict[type, Target]:
    """What can be executed, by the type of a job's target."""
    http = HttpSettings(
        allowed=parse_allowed(settings.targets.allow_hosts),
        signing_keys=tuple(parse_secret(secret) for secret in settings.targets.signing_secret),
        report_base=report_base,
    )
    threads = min(_THREADS, settings.worker.concurrency)
    return {
        HttpTarget: HttpExecutor(clock, http),
        PythonTarget: PythonExecutor(functions, threads=threads),
    }


def build_parts(
    settings: Settings,
    *,
    store: Store,
    clock: Clock,
    ids: IdSource,
    telemetry: Telemetry,
    targets: Mapping[type, Target],
    settled: Settled = lambda batch: None,
    jobs_changed: JobsChanged = lambda kind, jobs: None,
) -> Parts:
    """A node that plans, works and sweeps, and the use cases beside it."""
    scheduler = settings.scheduler
    name = f"{socket.gethostname()}-{os.getpid()}"
    leases = NativeLeases(store=store, ids=ids, kind="up", name=name, plans=True)
    worker = Worker(
        store=store,
        queue=NativeQueue(store),
        leases=leases,
        targets=targets,
        clock=clock,
        telemetry=telemetry,
        name=name,
        pools=settings.worker.pools,
        room=Room(settings.worker.concurrency),
        lead_us=scheduler.lead_us,
        settled=settled,
    )
    planner = Planner(
        store=store, leases=leases, clock=clock, horizon_us=scheduler.horizon_us, telemetry=telemetry
    )
    sweeper = Sweeper(
        store=store,
        keep_us=settings.history.keep_us,
        dead_keep_us=settings.history.dead_keep_us,
        telemetry=telemetry,
    )
    limits = SpecLimits(
        min_interval_us=settings.limits.min_interval_us, payload_bytes=settings.limits.payload_bytes
    )
    return Parts(
        store=store,
        jobs=Jobs(store=store, ids=ids, clock=clock, limits=limits, changed=jobs_changed),
        runs=Runs(store=store, clock=clock, horizon_us=scheduler.horizon_us),
        node=Node(
            store=store,
            clock=clock,
            telemetry=telemetry,
            scheduler=Scheduler(leases=leases, planner=planner, sweeper=sweeper),
            worker=worker,
        ),
        worker=worker,
        targets=targets,
        telemetry=telemetry,
        clock=clock,
    )
