"""Builds the nodes of a process: one per database, on the same room and targets."""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hourhand.clock import Clock
from hourhand.config import Settings
from hourhand.core.model import PythonTarget
from hourhand.core.serving import MAX_FUNCTIONS, Serves
from hourhand.core.specification import SpecLimits
from hourhand.ids import IdSource
from hourhand.leases.allotted import AllottedLeases
from hourhand.leases.board import Board
from hourhand.leases.native import NativeLeases
from hourhand.ports.leases import Leases
from hourhand.ports.queue import Queue
from hourhand.ports.store import Store
from hourhand.ports.target import Target
from hourhand.queues.native import NativeQueue
from hourhand.services.audit import Audit
from hourhand.services.auditor import Auditor
from hourhand.services.backfiller import Backfiller
from hourhand.services.jobs import Jobs, JobsChanged
from hourhand.services.log_writer import LogRouter, LogWriter
from hourhand.services.node import Node, Scheduler
from hourhand.services.operator import Operator
from hourhand.services.planner import Planner
from hourhand.services.progress import Noted, ProgressBoard
from hourhand.services.room import Room
from hourhand.services.runs import Runs
from hourhand.services.sweeper import PERIOD_US, SHARED_PERIOD_US, Sweeper
from hourhand.services.tenure import Tenure
from hourhand.services.webhook_sender import WebhookSender
from hourhand.services.worker import Settled, Worker
from hourhand.targets.addresses import parse_allowed
from hourhand.targets.pinging import Pinger
from hourhand.targets.python import PythonExecutor
from hourhand.targets.webhook_caller import WebhookCaller
from hourhand.telemetry import Telemetry
from hourhand.wiring.life import draw
from hourhand.wiring.queues import Brokers

SHARD = "{shard}"  # stands in a URL for the number of a database


def process_name() -> str:
    """What this process is called in the list of nodes."""
    return f"{socket.gethostname()}-{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """What the nodes of a process have in common."""

    settings: Settings
    ids: IdSource
    telemetry: Telemetry
    targets: Mapping[type, Target]
    room: Room
    logs: LogRouter
    board: ProgressBoard

    def joint(
        self,
        store: Store,
        clock: Clock,
        settled: Settled,
        noted: Noted,
        jobs_changed: JobsChanged = lambda kind, jobs: None,
    ) -> tuple[Node, Worker]:
        """Scheduler and worker under one lease: a store that only this process has."""
        leases = NativeLeases(store=store, ids=self.ids, kind="up", name=process_name(), plans=True)
        worker = self._worker(store, NativeQueue(store), clock, leases, settled, noted)
        node = Node(
            store=store,
            clock=clock,
            telemetry=self.telemetry,
            scheduler=self._scheduler(store, clock, leases, jobs_changed),
            worker=worker,
            log=self._log(store, clock),
        )
        return node, worker

    def shared(
        self,
        store: Store,
        clock: Clock,
        *,
        plans: bool,
        works: bool,
        settled: Settled,
        noted: Noted,
        jobs_changed: JobsChanged = lambda kind, jobs: None,
        hints_arrive: Callable[[], bool],
        shard: int = 0,
        lease_board: Board | None = None,
    ) -> Node:
        """A scheduler, a worker or both, each under a lease of its own, on a store that others have too.

        With a lease board the schedulers share the segments there. Workers' leases are the store's in any case: it
        must know whose runs go on elsewhere.
        """
        return Node(
            store=store,
            clock=clock,
            telemetry=self.telemetry,
            scheduler=self._tenured(store, clock, jobs_changed, shard, lease_board) if plans else None,
            worker=self._leased(store, clock, settled, noted, shard) if works else None,
            log=self._log(store, clock, shard) if works else None,
            hints_arrive=hints_arrive,
            draw=draw,
        )

    def _log(self, store: Store, clock: Clock, shard: int = 0) -> LogWriter:
        writer = LogWriter(store=store, clock=clock)
        self.logs.add(writer, shard)
        return writer

    def _tenured(
        self, store: Store, clock: Clock, jobs_changed: JobsChanged, shard: int, board: Board | None
    ) -> Scheduler:
        lease_us = self.settings.scheduler.lease_us
        leases: Leases
        if board is None:
            leases = NativeLeases(
                store=store,
                ids=self.ids,
                kind="scheduler",
                name=process_name(),
                plans=True,
                lease_us=lease_us,
            )
        else:
            leases = AllottedLeases(
                board=board,
                store=store,
                ids=self.ids,
                clock=clock,
                telemetry=self.telemetry,
                kind="scheduler",
                name=process_name(),
                segments=self.settings.scheduler.segments,
                lease_us=lease_us,
                database=str(shard),
            )
        return self._scheduler(store, clock, leases, jobs_changed, Tenure(leases, lease_us), shard)

    def _leased(self, store: Store, clock: Clock, settled: Settled, noted: Noted, shard: int) -> Worker:
        leases = NativeLeases(store=store, ids=self.ids, kind="worker", name=process_name(), plans=False)
        queue = self._brokers.queue(store, clock, shard)
        return self._worker(store, queue, clock, leases, settled, noted)

    def _worker(
        self, store: Store, queue: Queue, clock: Clock, leases: NativeLeases, settled: Settled, noted: Noted
    ) -> Worker:
        return Worker(
            store=store,
            queue=queue,
            leases=leases,
            targets=self.targets,
            clock=clock,
            telemetry=self.telemetry,
            name=process_name(),
            pools=self.settings.worker.pools,
            room=self.room,
            lead_us=self.settings.scheduler.lead_us,
            settled=settled,
            board=self.board,
            noted=noted,
            serves=self._serves(),
        )

    @property
    def _brokers(self) -> Brokers:
        return Brokers(settings=self.settings, telemetry=self.telemetry)

    def _serves(self) -> Serves:
        """What people who ask why a run waits are told of this worker."""
        python = self.targets.get(PythonTarget)
        functions = python.names if isinstance(python, PythonExecutor) else None
        return Serves(
            pools=tuple(self.settings.worker.pools),
            shell=self.settings.worker.shell,
            functions=None if functions is None or len(functions) > MAX_FUNCTIONS else functions,
        )

    def _scheduler(
        self,
        store: Store,
        clock: Clock,
        leases: Leases,
        jobs_changed: JobsChanged = lambda kind, jobs: None,
        tenure: Tenure | None = None,
        shard: int = 0,
    ) -> Scheduler:
        settings, telemetry = self.settings, self.telemetry
        return Scheduler(
            leases=leases,
            planner=Planner(
                store=store,
                leases=leases,
                clock=clock,
                horizon_us=settings.scheduler.horizon_us,
                telemetry=telemetry,
            ),
            sweeper=Sweeper(
                store=store,
                keep_us=settings.history.keep_us,
                dead_keep_us=settings.history.dead_keep_us,
                telemetry=telemetry,
                period_us=PERIOD_US if tenure is None else SHARED_PERIOD_US,
            ),
            backfiller=Backfiller(store=store, telemetry=telemetry),
            operator=Operator(
                store=store,
                jobs=Jobs(store=store, ids=self.ids, clock=clock, limits=SpecLimits(), changed=jobs_changed),
                runs=Runs(store=store, clock=clock, horizon_us=settings.scheduler.horizon_us),
            ),
            auditor=self._auditor(store, clock, shard),
            webhooks=WebhookSender(
                store=store,
                caller=WebhookCaller(clock, parse_allowed(settings.targets.allow_hosts)),
                clock=clock,
                telemetry=telemetry,
            ),
            tenure=tenure,
            dispatcher=None if tenure is None else self._brokers.dispatcher(store, leases, shard),
        )

    def _auditor(self, store: Store, clock: Clock, shard: int) -> Auditor:
        """Small pages: planning and firing share its event loop."""
        settings = self.settings
        audit = Audit(
            store=store, clock=clock, keep_us=settings.history.keep_us, page_jobs=200, unit_times=2_000
        )
        pinger = Pinger(
            settings.alerts.deadman_url.replace(SHARD, str(shard)),
            parse_allowed(settings.targets.allow_hosts),
        )
        return Auditor(
            audit=audit,
            clock=clock,
            telemetry=self.telemetry,
            grace_us=settings.scheduler.misfire_grace_us,
            name=str(shard),
            ping=pinger.ping,
        )
