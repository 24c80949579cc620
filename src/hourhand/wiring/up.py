"""`hourhand up`: API, scheduler and worker in one process, until told to stop.

On a SQLite file; pointed at PostgreSQL it is a cluster of one, with all parts.
"""

import asyncio
import socket
import sys
from collections.abc import Sequence

import msgspec

from hourhand import __version__
from hourhand.cli.feed import Feed, NextTry, feed_for
from hourhand.clock import Clock, SystemClock
from hourhand.config import Settings, UpOptions, is_postgres
from hourhand.core.lifecycle import Event
from hourhand.core.model import DEFAULT_TENANT
from hourhand.core.report import ReportTokens
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.errors import HourhandError
from hourhand.functions import Registry, load_modules
from hourhand.ids import IdSource
from hourhand.ports.store import Store
from hourhand.services.event_log import EventLog
from hourhand.services.local_events import LocalEvents
from hourhand.services.log_writer import LogRouter
from hourhand.services.progress import ProgressBoard
from hourhand.services.publisher import Publisher
from hourhand.services.recent import Recent
from hourhand.services.reports import Reports
from hourhand.targets.loop_watch import LoopWatch
from hourhand.targets.python import PythonExecutor
from hourhand.telemetry import Telemetry, configure_logging
from hourhand.web.documents import parse_document
from hourhand.web.routes import PREFIX
from hourhand.wiring.browser import open_page
from hourhand.wiring.demo import DEMO
from hourhand.wiring.identity import check_identity
from hourhand.wiring.life import Ending, farewell, quiet_collector, run_loop, stop_nodes
from hourhand.wiring.limiting import RequestCounter
from hourhand.wiring.parts import Parts, build_app, build_parts, build_targets, open_store, sqlite_path
from hourhand.wiring.queues import refuse_broker
from hourhand.wiring.server import Server, address_of, bind

# The store's writer thread waits for the interpreter after each statement, and the loop for the writer: neither
# must keep the other waiting for the default 5 ms, least of all when a flood keeps both busy and somebody is due.
SWITCH_INTERVAL_S = 0.001


def run_up(settings: Settings, options: UpOptions) -> int:
    """Run everything until SIGINT or SIGTERM; answers the exit code."""
    if settings.store.shards or is_postgres(settings.store.url):
        from hourhand.wiring.cluster import run_together  # here, since its driver is only for a cluster

        return run_together(settings, opens=options.open)
    refuse_broker(settings)
    check_identity(settings)
    configure_logging(settings.telemetry.log)
    functions = load_modules(settings.worker.import_modules)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return run_loop(_Up(settings, options, functions).run())


class _Up:
    """One life of the process."""

    def __init__(self, settings: Settings, options: UpOptions, functions: Registry) -> None:
        self._settings = settings
        self._options = options
        self._functions = functions
        self._ending = Ending()

    async def run(self) -> int:
        settings = self._settings
        clock = SystemClock()
        listener = bind(settings.server.host, settings.server.port)
        is_new = not sqlite_path(settings.store.url).exists()
        store = open_store(settings, clock)
        feed, writer = feed_for(sys.stdout, colour=sys.stdout.isatty())
        base = (settings.server.url or address_of(listener)) + PREFIX
        ids, bus, events, logs = IdSource(clock), LocalEvents(), EventLog(clock=clock), LogRouter()
        recent = Recent(clock=clock)
        bus.subscribe(events.add)
        bus.subscribe(recent.add)
        publisher = Publisher(bus=bus, clock=clock, publisher=f"{ids.node_id():x}")
        board = ProgressBoard()

        def settled(batch: Sequence[tuple[ClaimedRun, Settlement]]) -> None:
            publisher.settled(batch)
            _tell(feed, batch)

        parts = build_parts(
            settings,
            store=store,
            clock=clock,
            ids=ids,
            telemetry=Telemetry(),
            targets=build_targets(
                settings, clock, self._functions, base, await _tokens(store), log=logs, board=board
            ),
            logs=logs,
            board=board,
            settled=settled,
            noted=publisher.noted,
            jobs_changed=publisher.jobs_changed,
        )
        counter = RequestCounter(settings)
        server = Server(
            build_app(
                settings,
                limits=counter.over(store, clock, name=str(sqlite_path(settings.store.url)), alone=True),
                store=store,
                jobs=parts.jobs,
                runs=parts.runs,
                reports=Reports(
                    store=store, telemetry=parts.telemetry, settled=settled, noted=publisher.noted
                ),
                clock=clock,
                telemetry=parts.telemetry,
                events=events,
                recent=recent,
                parts=lambda: parts.node.parts,
            ),
            settings.server.trusted_proxies,
        )
        await self._live(parts, server, listener, events, feed, is_new)
        await counter.close()
        writer.close()
        return 0

    async def _live(
        self,
        parts: Parts,
        server: Server,
        listener: socket.socket,
        events: EventLog,
        feed: Feed,
        is_new: bool,
    ) -> None:
        """Run what was built until somebody asks for the end, then let it end in order."""
        settings = self._settings
        self._ending.heed_signals()
        demo = await _create_demo(parts) if is_new and self._options.demo else []
        watch = LoopWatch(PythonExecutor.execute.__code__)
        await parts.node.start()
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        ticking = asyncio.create_task(_tick(feed, parts.clock))
        address = address_of(listener)
        await _show_banner(feed, parts, settings, address, demo)
        if self._options.open:
            open_page(settings.server.url or address)
        quiet_collector()
        await asyncio.wait(
            [serving, asyncio.create_task(self._ending.asked.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        feed.say(farewell(parts.worker.in_hand, settings.worker.drain_us))
        events.close()  # streams would go on for ever
        server.stop()
        await serving
        await stop_nodes([parts.node], settings.worker.drain_us, self._ending)
        ticking.cancel()
        watch.stop()
        await parts.close()
        feed.say("stopped")


async def _tokens(store: Store) -> ReportTokens:
    """What lets targets report; a file is the first of one database."""
    tokens = ReportTokens()
    key = await store.report_key(0)
    if key is not None:
        tokens.learn(0, key)
    return tokens


async def _create_demo(parts: Parts) -> list[str]:
    """The demo's jobs in a new store."""
    now_at = parts.clock.now()
    news = [parse_document(function.document() or {}, now_at) for function in DEMO]
    answers = await parts.jobs.create_many(DEFAULT_TENANT, news)
    return [job.spec.name for job in answers if not isinstance(job, HourhandError)]


async def _show_banner(
    feed: Feed, parts: Parts, settings: Settings, address: str, demo: Sequence[str]
) -> None:
    backlog = await parts.store.backlog()
    feed.banner(
        version=__version__,
        store=settings.store.url,
        parts=("api", "scheduler", "worker"),
        address=address,
        jobs=backlog.jobs,
        demo=demo,
        asks=settings.auth.asks,
    )


async def _tick(feed: Feed, clock: Clock) -> None:
    while True:
        await asyncio.sleep(1)
        feed.tick(clock.now())


def _tell(feed: Feed, batch: Sequence[tuple[ClaimedRun, Settlement]]) -> None:
    """What became of runs, for the line per run."""
    for run, settlement in batch:
        started_at = settlement.started_at
        lag_us = 0 if started_at is None else max(0, started_at - run.due_at)
        took_us = None if started_at is None else settlement.finished_at - started_at
        if settlement.event is Event.SUCCEED:
            feed.settled(settlement.finished_at, run.spec.name, settlement.event, lag_us, took_us)
            continue
        detail = msgspec.json.decode(settlement.detail) if settlement.detail else {}
        if settlement.event is Event.RELEASE and (run.fence > 1 or not detail):
            continue  # given back, or told already: a run that waits for a worker has one line
        retry = None
        if settlement.event is Event.RETRY:
            delay_us = max(0, settlement.due_at - settlement.finished_at)
            retry = NextTry(number=settlement.tries, of=run.spec.retry.max, delay_us=delay_us)
        feed.settled(
            settlement.finished_at,
            run.spec.name or run.run_id,
            settlement.event,
            lag_us,
            took_us,
            error=detail.get("error"),
            reason=detail.get("reason"),
            retry=retry,
            run_id=run.run_id,
        )
