"""`hourhand api`, `scheduler` and `worker`: parts of a cluster on PostgreSQL, each a process, or `up` with all.

A process has one node per database, which start, fail and recover by themselves; the API sees all databases
as one store.
"""

import asyncio
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hourhand import __version__
from hourhand.cli.feed import Feed, feed_for
from hourhand.config import Settings
from hourhand.config.kinds import split_listen
from hourhand.core.report import ReportTokens
from hourhand.errors import CannotStart, Unavailable
from hourhand.functions import Registry, load_modules
from hourhand.ids import IdSource
from hourhand.leases.board import Board
from hourhand.ports.target import Target
from hourhand.services.event_log import EventLog
from hourhand.services.local_events import LocalEvents
from hourhand.services.log_writer import LogRouter
from hourhand.services.node import Node
from hourhand.services.progress import ProgressBoard
from hourhand.services.publisher import Publisher
from hourhand.services.recent import Recent
from hourhand.services.reports import Reports
from hourhand.services.room import Room
from hourhand.targets.loop_watch import LoopWatch
from hourhand.targets.python import PythonExecutor
from hourhand.telemetry import Telemetry, configure_logging, label_lines, logger
from hourhand.web.identity import Identity
from hourhand.web.probes import create_probes
from hourhand.web.routes import PREFIX
from hourhand.wiring.browser import open_page
from hourhand.wiring.buses import FrontBus, bus_over
from hourhand.wiring.children import REFUSED, heed_parent, is_child, run_children, same_command
from hourhand.wiring.databases import Database, Databases, require_postgres
from hourhand.wiring.identity import build_authenticators, check_identity
from hourhand.wiring.leasing import LeaseServer
from hourhand.wiring.life import Ending, Pauses, farewell, quiet_collector, run_loop, stop_nodes
from hourhand.wiring.limiting import RequestCounter
from hourhand.wiring.nodes import Nodes, process_name
from hourhand.wiring.parts import build_app, build_targets, build_use_cases
from hourhand.wiring.server import Server, address_of, bind

_CHOOSE_PROBES = (
    "this is telemetry.listen: give each process of a machine its own, in HOURHAND_TELEMETRY_LISTEN, "
    "or port 0 for any"
)

_log = logger("hourhand.process")


class Role(StrEnum):
    """What a process does."""

    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"


def run_api(settings: Settings) -> int:
    """Answer requests until told to stop; the exit code."""
    return _run(settings, (Role.API,))


def run_scheduler(settings: Settings) -> int:
    """Plan and sweep until told to stop; the exit code."""
    return _run(settings, (Role.SCHEDULER,))


def run_worker(settings: Settings) -> int:
    """Execute runs until told to stop, in one process or several; the exit code."""
    if settings.worker.processes == 1:
        return _run(settings, (Role.WORKER,))
    require_postgres(settings, "worker")
    configure_logging(settings.telemetry.log)
    return asyncio.run(
        run_children(
            same_command("--processes", "1"),
            settings.worker.processes,
            lambda index: _own_listener(settings, index),
            settings.worker.drain_us,
            Ending(),
        )
    )


def run_together(settings: Settings, *, opens: bool = False) -> int:
    """All parts of a cluster in this process; the exit code. `opens` shows the page in a browser."""
    return _run(settings, (Role.API, Role.SCHEDULER, Role.WORKER), opens)


def _run(settings: Settings, roles: tuple[Role, ...], opens: bool = False) -> int:
    require_postgres(settings, "up" if len(roles) > 1 else roles[0])
    configure_logging(settings.telemetry.log)
    try:
        if Role.API in roles or settings.telemetry.listen:
            check_identity(settings)
        functions = load_modules(settings.worker.import_modules if Role.WORKER in roles else ())
        return run_loop(_Process(settings, roles, functions, opens=opens).run())
    except CannotStart as error:
        if not is_child():
            raise
        _log.error("cannot start", why=error.message)
        return REFUSED


def _own_listener(settings: Settings, index: int) -> dict[str, str]:
    """Children cannot all listen on one port: each has the next."""
    host, _, port = settings.telemetry.listen.rpartition(":")
    if not host or port == "0":
        return {}
    return {"HOURHAND_TELEMETRY_LISTEN": f"{host}:{int(port) + index}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    """A socket and who answers on it."""

    socket: socket.socket
    server: Server

    @property
    def address(self) -> str:
        return address_of(self.socket)


class _Process:
    """One life of it."""

    def __init__(
        self, settings: Settings, roles: tuple[Role, ...], functions: Registry, *, opens: bool
    ) -> None:
        self._settings = settings
        self._opens = opens
        self._roles = roles
        self._functions = functions
        self._ending = Ending()
        self._databases = Databases(settings, self._ending)
        self._lease_server = (
            LeaseServer(settings) if Role.SCHEDULER in roles and settings.leases.url else None
        )
        self._counter = RequestCounter(settings) if Role.API in roles else None
        self._telemetry = Telemetry()
        self._clock = self._databases.clock
        self._ids = IdSource(self._clock)
        self._local = LocalEvents()
        self._front_bus = FrontBus(self._local)
        self._logs = LogRouter()
        self._targets: Mapping[type, Target] = {}
        self._tokens = ReportTokens()
        self._board = ProgressBoard()
        self._started: dict[int, Node] = {}
        self._starting: set[int] = set()

    async def run(self) -> int:
        self._ending.heed_signals()
        heed_parent(self._ending)
        sockets = self._bind()
        feed, writer = feed_for(sys.stdout, colour=False)
        try:
            if await self._databases.begin():
                await self._live(sockets, feed)
            return 0
        finally:
            for one in sockets.values():
                one.close()
            if self._lease_server is not None:
                await self._lease_server.close()
            if self._counter is not None:
                await self._counter.close()
            await self._databases.close()
            writer.close()

    async def _live(self, sockets: dict[str, socket.socket], feed: Feed) -> None:
        events, recent = EventLog(clock=self._clock), Recent(clock=self._clock)
        self._local.subscribe(events.add)
        self._local.subscribe(recent.add)
        listeners = self._listeners(sockets, events, recent)
        if Role.WORKER in self._roles:
            base = self._settings.server.url or f"http://{self._settings.server.listen}"
            self._targets = build_targets(
                self._settings,
                self._clock,
                self._functions,
                base + PREFIX,
                self._tokens,
                log=self._logs,
                board=self._board,
            )
        watch = LoopWatch(PythonExecutor.execute.__code__)
        self._nodes = Nodes(
            settings=self._settings,
            ids=self._ids,
            telemetry=self._telemetry,
            targets=self._targets,
            room=Room(self._settings.worker.concurrency),
            logs=self._logs,
            board=self._board,
        )
        tasks = [asyncio.create_task(self._arrived(one)) for one in self._databases.opened]
        tasks.append(asyncio.create_task(self._databases.follow(self._arrived)))
        serving = [asyncio.create_task(one.server.serve(sockets=[one.socket])) for one in listeners]
        feed.say(self._banner(listeners))
        if self._opens:
            open_page(self._settings.server.url or listeners[-1].address)
        quiet_collector()
        try:
            await self._until_end(tasks, serving)
        finally:
            in_hand = sum(node.in_hand for node in self._started.values())
            feed.say(farewell(in_hand, self._settings.worker.drain_us))
            events.close()  # streams would go on for ever
            for listener in listeners:
                listener.server.stop()
            await asyncio.gather(*serving)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await stop_nodes(list(self._started.values()), self._settings.worker.drain_us, self._ending)
            for target in self._targets.values():
                await target.close()
            watch.stop()
            feed.say("stopped")

    async def _until_end(self, tasks: list[asyncio.Task[None]], serving: list[asyncio.Task[None]]) -> None:
        """Until it is told to end, a server ends, or something cannot start after all."""
        asked = asyncio.create_task(self._ending.asked.wait())
        watched: set[asyncio.Task[None]] = {*tasks, *serving}
        while not asked.done():
            done, _ = await asyncio.wait({asked, *watched}, return_when=asyncio.FIRST_COMPLETED)
            for task in done & watched:
                task.result()  # raises what it failed with
                watched.discard(task)
                if task in serving:
                    asked.cancel()
                    return

    # --- databases and their nodes

    async def _arrived(self, database: Database) -> None:
        """Run on a database that was opened; one that goes away meanwhile is waited for."""
        store = database.store
        assert store is not None
        bus = bus_over(store.channel, self._local, hears=Role.API in self._roles)
        self._front_bus.add(store.channel, bus)
        if self._roles == (Role.API,):
            return
        key = await store.report_key(0)
        if key is not None:
            self._tokens.learn(database.index, key)
        publisher = Publisher(bus=bus, clock=store.clock, publisher=f"{self._ids.node_id():x}")
        plans = Role.SCHEDULER in self._roles
        node = self._nodes.shared(
            store,
            store.clock,
            plans=plans,
            works=Role.WORKER in self._roles,
            settled=publisher.settled,
            noted=publisher.noted,
            jobs_changed=publisher.jobs_changed,
            hints_arrive=lambda: store.channel.listening,
            shard=database.index,
            lease_board=self._lease_board(database.index) if plans and store.plans else None,
        )
        self._starting.add(database.index)
        if len(self._settings.store.databases) > 1:
            label_lines(shard=database.index)
        pauses = Pauses()
        while not self._ending.asked.is_set():
            try:
                await node.start()
                self._started[database.index] = node
                self._starting.discard(database.index)
                _log.info("started", database=database.name, parts=list(node.parts))
                return
            except Unavailable as error:
                pause_s = pauses.next_s()
                _log.warning("cannot begin yet", database=database.name, why=error.message)
                await self._ending.asked_within(pause_s)

    def _lease_board(self, index: int) -> Board | None:
        """Where a database's schedulers share the segments, if not in the database itself."""
        if self._lease_server is None:
            return None
        return self._lease_server.board(f"{self._databases.cluster}:{index}")

    # --- what it tells

    def _parts(self) -> dict[str, str | None]:
        """Each part and what is wrong with it, by database where there are several."""
        told: dict[str, str | None] = {}
        several = len(self._settings.store.databases) > 1
        for index, node in sorted(self._started.items()):
            told |= {f"{name} {index}" if several else name: wrong for name, wrong in node.parts.items()}
        for index in sorted(self._starting):
            told[f"database {index}"] = "not started yet"
        return told

    def _bind(self) -> dict[str, socket.socket]:
        """Listen first, so that a taken port is a clear refusal."""
        settings = self._settings
        found: dict[str, socket.socket] = {}
        if Role.API in self._roles:
            found["api"] = bind(settings.server.host, settings.server.port)
        elif settings.telemetry.listen:
            host, port = split_listen(settings.telemetry.listen)
            found["probes"] = bind(host, port, _CHOOSE_PROBES)
        return found

    def _listeners(
        self, sockets: Mapping[str, socket.socket], events: EventLog, recent: Recent
    ) -> list[_Listener]:
        listeners = []
        if "probes" in sockets:
            identity = Identity(build_authenticators(self._settings, self._databases.front, self._clock))
            probes = create_probes(self._telemetry.registry, self._parts, identity)
            listeners.append(_Listener(socket=sockets["probes"], server=Server(probes)))
        if "api" in sockets:
            listeners.append(_Listener(socket=sockets["api"], server=self._api(events, recent)))
        return listeners

    def _api(self, events: EventLog, recent: Recent) -> Server:
        store = self._databases.front
        publisher = Publisher(bus=self._front_bus, clock=self._clock, publisher=f"{self._ids.node_id():x}")
        jobs, runs = build_use_cases(
            self._settings,
            store=store,
            clock=self._clock,
            ids=self._ids,
            jobs_changed=publisher.jobs_changed,
        )
        assert self._counter is not None
        name = self._databases.cluster
        return Server(
            build_app(
                self._settings,
                limits=self._counter.over(store, self._clock, name=name, alone=False),
                store=store,
                jobs=jobs,
                runs=runs,
                reports=Reports(
                    store=store,
                    telemetry=self._telemetry,
                    settled=publisher.settled,
                    noted=publisher.noted,
                ),
                clock=self._clock,
                telemetry=self._telemetry,
                events=events,
                recent=recent,
                parts=self._parts,
            ),
            self._settings.server.trusted_proxies,
        )

    def _banner(self, listeners: list[_Listener]) -> str:
        databases = ", ".join(one.name for one in self._databases.opened)
        where = "".join(f", listening on {one.address}" for one in listeners)
        return f"hourhand {__version__} {' '.join(self._roles)} {process_name()} on {databases}{where}"
