"""What a process tells about itself: structured log lines, and the engine's metrics in one place.

Services get a `Telemetry` and call it on the event loop; a call is a few integer additions, since it
happens tens of thousands of times a second, and Prometheus families are made only when somebody reads them.
Payloads and secrets are in no metric, and are struck out of every log line.
"""

import logging
import os
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple, TextIO, cast

import structlog
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.run import Settlement
from hourhand.ports.store import Backlog

_MILLISECONDS = (1, 5, 10, 25, 50, 100, 150, 250, 500, 1_000, 1_500, 2_500, 5_000, 10_000, 60_000, 300_000)
_TIMES_US = tuple(ms * 1_000 for ms in _MILLISECONDS)
_BATCHES = (1, 10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)

_CHATTY = ("uvicorn.error", "asyncio")  # what they tell at level info, nobody needs
_RETOLD = ("asyncpg.pool",)  # warns with a traceback of what our own lines say in words
_STRUCK_KEYS = frozenset(
    {"payload", "body", "headers", "authorization", "token", "secret", "signing_secret", "password"}
)
_PASSWORD_IN_URL = re.compile(r"(://[^:/?#\s@]*):[^/?#\s@]*@")
_SIGNING_SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")
_JWT = re.compile(r"eyJ[\w-]{8,}\.[\w-]+\.[\w-]*", re.ASCII)
_API_TOKEN = re.compile(r"(hh_[0-9a-z]{13})_[0-9a-f]+")  # what is left names it


class Telemetry:
    """The engine's counters. One per process, written on the event loop, read by `/metrics`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._settled = dict.fromkeys(Event, 0)
        self._lag = _Histogram(_TIMES_US)
        self._took = _Histogram(_TIMES_US)
        self._planner_step = _Histogram(_TIMES_US)
        self._claim_batch = _Histogram(_BATCHES)
        self._settle_batch = _Histogram(_BATCHES)
        self._planned = 0
        self._backfilled = 0
        self._webhooks: _Webhooks | None = None
        self._store_errors = 0
        self._queue: _Queued | None = None
        self._backlog: Backlog | None = None
        self._audits: dict[str, _Audited] = {}
        self._lease_servers: dict[str, bool] = {}
        self._lease_outages = 0
        self.registry.register(_EngineCollector(self._families))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def run_started(self, lag_us: int) -> None:
        """An attempt began this long after it was due."""
        self._lag.observe(lag_us)

    def runs_settled(self, settlements: Sequence[Settlement]) -> None:
        """A batch of outcomes is durable."""
        succeeded = 0  # by far the most, so not looked up among the others
        for one in settlements:
            if one.event is Event.SUCCEED:
                succeeded += 1
            else:
                self._settled[one.event] += 1
        self._settled[Event.SUCCEED] += succeeded
        self._settle_batch.observe(len(settlements))
        self._took.observe_all(
            one.finished_at - one.started_at for one in settlements if one.started_at is not None
        )

    def planned(self, count: int) -> None:
        """Runs were written ahead of time."""
        self._planned += count

    def backfilled(self, count: int) -> None:
        """Runs were made for backfills."""
        self._backfilled += count

    def webhooks_called(self, *, taken: int, failed: int) -> None:
        """Calls to endpoints of webhooks ended."""
        self._webhook_counts.taken += taken
        self._webhook_counts.failed += failed

    def webhooks_dropped(self, count: int) -> None:
        """Deliveries of webhooks were too many, or too old."""
        self._webhook_counts.dropped += count

    def webhook_disabled(self) -> None:
        """A webhook was given up."""
        self._webhook_counts.disabled += 1

    def planner_stepped(self, duration_us: int) -> None:
        """The planner took one step."""
        self._planner_step.observe(duration_us)

    def claimed(self, count: int) -> None:
        """A worker took a batch of runs."""
        self._claim_batch.observe(count)

    def offered(self, count: int, late_us: int) -> None:
        """A batch was offered through a broker, its first so long after it should have been."""
        self._queued.offered += count
        self._queued.offer_error.observe(late_us)

    def offers_dropped(self, count: int) -> None:
        """Offers came too late to be of use."""
        if count:
            self._queued.dropped += count

    def offers_refused(self) -> None:
        """A broker did not take a batch."""
        self._queued.refused += 1

    def queue_read(self, count: int) -> None:
        """Messages came from a broker."""
        self._queued.read += count

    def queue_taken(self, *, by_message: int = 0, by_store: int = 0, stale: int = 0) -> None:
        """Runs were claimed because of messages, or because they were late; messages were nobody's any more."""
        self._queued.by_message += by_message
        self._queued.by_store += by_store
        self._queued.stale += stale

    def store_failed(self) -> None:
        """A verb of the store raised."""
        self._store_errors += 1

    def backlog(self, backlog: Backlog) -> None:
        """Sizes of the hot tables as last counted."""
        self._backlog = backlog

    def audited(
        self, name: str, *, expected: int, lost: int, kinds: Mapping[str, int], at: int, took_us: int
    ) -> None:
        """What the last audit of a database found."""
        self._audits[name] = _Audited(expected, lost, dict(kinds), at, took_us)

    def lease_server(self, database: str, *, answers: bool) -> None:
        """The lease server of a database's schedulers answers again, or no longer."""
        self._lease_outages += not answers
        self._lease_servers[database] = answers

    @property
    def _queued(self) -> "_Queued":
        """Made when a broker is first spoken of, so that those without one are not told of it."""
        if self._queue is None:
            self._queue = _Queued()
        return self._queue

    @property
    def _webhook_counts(self) -> "_Webhooks":
        """Made when a webhook is first spoken of, so that those without one are not told of it."""
        if self._webhooks is None:
            self._webhooks = _Webhooks()
        return self._webhooks

    def _families(self) -> Iterator[Metric]:
        fires = CounterMetricFamily(
            "hourhand_fires", "Settled runs by what became of them.", labels=["event"]
        )
        for event, count in self._settled.items():
            fires.add_metric([event.value], count)
        yield fires
        yield CounterMetricFamily("hourhand_planned_runs", "Runs written ahead of time.", self._planned)
        yield CounterMetricFamily("hourhand_backfilled_runs", "Runs made for backfills.", self._backfilled)
        yield CounterMetricFamily("hourhand_store_errors", "Store calls that failed.", self._store_errors)
        yield self._lag.family(
            "hourhand_fire_lag_seconds", "From due time to start of an attempt.", SECOND_US
        )
        yield self._took.family("hourhand_attempt_seconds", "Duration of attempts.", SECOND_US)
        yield self._planner_step.family(
            "hourhand_planner_step_seconds", "Duration of planner steps.", SECOND_US
        )
        yield self._claim_batch.family("hourhand_claim_batch_runs", "Runs per claim.")
        yield self._settle_batch.family("hourhand_settle_batch_runs", "Runs per settled batch.")
        if self._queue is not None:
            yield from self._queue.families()
        if self._webhooks is not None:
            yield from self._webhooks.families()
        if self._backlog is not None:
            yield from _backlog_families(self._backlog)
        if self._audits:
            yield from _audit_families(self._audits)
        if self._lease_servers:
            yield from _lease_families(self._lease_servers, self._lease_outages)


class _Webhooks:
    """What became of calls to endpoints of webhooks."""

    def __init__(self) -> None:
        self.taken = 0
        self.failed = 0
        self.dropped = 0
        self.disabled = 0

    def families(self) -> Iterator[Metric]:
        """All of them."""
        calls = CounterMetricFamily(
            "hourhand_webhook_calls", "Calls to webhooks by what came of them.", labels=["outcome"]
        )
        calls.add_metric(["taken"], self.taken)
        calls.add_metric(["failed"], self.failed)
        yield calls
        yield CounterMetricFamily(
            "hourhand_webhook_dropped", "Deliveries that were dropped: too many or too old.", self.dropped
        )
        yield CounterMetricFamily(
            "hourhand_webhooks_disabled", "Webhooks that were disabled after failing.", self.disabled
        )


class _Audited(NamedTuple):
    """The last audit of one database."""

    expected: int
    lost: int
    kinds: dict[str, int]
    at: int
    took_us: int


class _EngineCollector(Collector):
    """Hands the registry the families as they are when somebody asks."""

    def __init__(self, families: Any) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families()


class _Histogram:
    """Counts by upper bound in whole numbers, without the locks of a live family."""

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0

    def observe(self, value: int) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def observe_all(self, values: Iterable[int]) -> None:
        bounds, counts, total = self._bounds, self._counts, 0
        for value in values:
            counts[bisect_left(bounds, value)] += 1
            total += value
        self._total += total

    def family(self, name: str, help: str, scale: int = 1) -> HistogramMetricFamily:
        buckets, running = [], 0
        for bound, count in zip(self._bounds, self._counts, strict=False):
            running += count
            buckets.append((repr(bound / scale), float(running)))
        buckets.append(("+Inf", float(running + self._counts[-1])))
        family = HistogramMetricFamily(name, help)
        family.add_metric([], buckets, self._total / scale)
        return family


class _Queued:
    """What went through a broker."""

    def __init__(self) -> None:
        self.offered = self.dropped = self.refused = 0
        self.read = self.by_message = self.by_store = self.stale = 0
        self.offer_error = _Histogram(_TIMES_US)

    def families(self) -> Iterator[Metric]:
        counts = (
            ("hourhand_offered_runs", "Runs offered through a broker.", self.offered),
            ("hourhand_offers_dropped", "Offers that came too late to be of use.", self.dropped),
            ("hourhand_offers_refused", "Batches that a broker did not take.", self.refused),
            ("hourhand_queue_messages", "Messages read from brokers.", self.read),
            ("hourhand_queue_stale", "Messages about runs that were nobody's any more.", self.stale),
        )
        for name, help, count in counts:
            yield CounterMetricFamily(name, help, count)
        taken = CounterMetricFamily(
            "hourhand_queue_taken",
            "Runs claimed because of a message, or by the store's own way, late.",
            labels=["way"],
        )
        taken.add_metric(["message"], self.by_message)
        taken.add_metric(["store"], self.by_store)
        yield taken
        yield self.offer_error.family(
            "hourhand_offer_error_seconds", "From when an offer should be made to when it was.", SECOND_US
        )


def _backlog_families(backlog: Backlog) -> Iterator[Metric]:
    sizes = (
        ("hourhand_jobs", "Jobs known.", backlog.jobs),
        ("hourhand_planned", "Runs planned and not yet taken.", backlog.planned),
        ("hourhand_running", "Runs in a worker's hand or between two attempts.", backlog.running),
        ("hourhand_blocked", "Runs waiting for a slot of their job.", backlog.blocked),
        ("hourhand_waiting", "Runs waiting for the jobs that they follow.", backlog.waiting),
        ("hourhand_dead", "Dead letters.", backlog.dead),
    )
    for name, help, size in sizes:
        yield GaugeMetricFamily(name, help, size)


def _lease_families(servers: Mapping[str, bool], outages: int) -> Iterator[Metric]:
    up = GaugeMetricFamily(
        "hourhand_lease_server_up",
        "1 while the lease server answers; else the store keeps the leases.",
        labels=["database"],
    )
    for database, answers in servers.items():
        up.add_metric([database], answers)
    yield up
    yield CounterMetricFamily("hourhand_lease_server_outages", "How often it stopped answering.", outages)


def _audit_families(audits: Mapping[str, _Audited]) -> Iterator[Metric]:
    numbers: tuple[tuple[str, str, Callable[[_Audited], float]], ...] = (
        ("hourhand_audit_expected", "Times that the last audit expected.", lambda one: one.expected),
        ("hourhand_audit_lost", "Of them, those that are nowhere.", lambda one: one.lost),
        ("hourhand_audit_seconds", "How long it took.", lambda one: one.took_us / SECOND_US),
        ("hourhand_audit_timestamp_seconds", "When it was.", lambda one: one.at / SECOND_US),
    )
    for name, help, number in numbers:
        family = GaugeMetricFamily(name, help, labels=["database"])
        for database, one in audits.items():
            family.add_metric([database], number(one))
        yield family
    findings = GaugeMetricFamily(
        "hourhand_audit_findings", "What did not fit in the last audit, by kind.", labels=["database", "kind"]
    )
    for database, one in audits.items():
        for kind, count in one.kinds.items():
            findings.add_metric([database, kind], count)
    yield findings


def configure_logging(level: str, *, stream: TextIO | None = None, as_json: bool | None = None) -> None:
    """Send every log line, ours and libraries', to one stream: for people on a terminal, else as JSON."""
    out = sys.stderr if stream is None else stream
    terminal = out.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    renderer: structlog.typing.Processor = structlog.processors.JSONRenderer()
    if not (not terminal if as_json is None else as_json):
        colors = terminal and not os.environ.get("NO_COLOR")
        renderer = structlog.dev.ConsoleRenderer(colors=colors)
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _strike_out,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel("DEBUG" if level == "debug" else "WARNING")
    for retold in _RETOLD:
        logging.getLogger(retold).setLevel("DEBUG" if level == "debug" else "ERROR")


def logger(name: str, **bound: object) -> structlog.typing.FilteringBoundLogger:
    """A logger that says its name, and what is bound to it, on every line."""
    return cast(structlog.typing.FilteringBoundLogger, structlog.get_logger(name, **bound))


def label_lines(**labels: object) -> None:
    """Say this on every line of the present task, and of the tasks that it starts from now on."""
    structlog.contextvars.bind_contextvars(**labels)


def _strike_out(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in line.items():
        if key.lower() in _STRUCK_KEYS:
            line[key] = "***"
        elif isinstance(value, str):
            struck = _SIGNING_SECRET.sub("whsec_***", _PASSWORD_IN_URL.sub(r"\1:***@", value))
            line[key] = _API_TOKEN.sub(r"\1_***", _JWT.sub("***", struck))
    return line
