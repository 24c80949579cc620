"""What a cluster does whose runs go through a broker: the whole cycle, a herd, and a spike, beside the bare client.

Real processes on a durable PostgreSQL with a real broker, all on this machine, in the shape of `cluster_throughput` and
`cluster_lateness`. The bare client does nothing but what our adapter does with the broker, so it is the limit. The
share by message says how many runs were claimed because of messages; the others came by the store's own way.

    python -m benchmarks.brokers --broker redis|kafka [--jobs 400000] [--demand 16000] [--seconds 30] [--rounds 3] [--quick]
"""

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import uvloop

from benchmarks import cluster_lateness, cluster_throughput
from benchmarks._many_jobs import load
from benchmarks._postgres import BenchPostgres, postgres
from benchmarks._report import Report, Size, at_least, below, options_of
from hourhand.core.model import Priority
from hourhand.core.offer import Offer
from hourhand.ports.queue import Feed, Offers
from tests.servers.kafka import KafkaServer
from tests.servers.redis import RedisServer

_BATCH = 1_000
_PATIENCE_S = 20.0  # the bare client waits for what it measures
_ROOM: Mapping[int, int] = {int(priority): 2_000 for priority in Priority}


def main() -> None:
    """All of it for one broker."""
    options = options_of(
        __doc__ or "",
        Size("jobs", 400_000, 20_000, "jobs with mixed rules"),
        Size("seconds", 30.0, 10.0, "of steady work to measure"),
        Size("demand", 16_000, 1_000, "runs a second that the jobs ask for"),
        Size("workers", 2, 2, "worker processes"),
        Size("concurrency", 4_000, 2_000, "of each"),
        Size("messages", 200_000, 10_000, "messages for the bare client"),
        Size("herd", 10_000, 500, "jobs due at one instant"),
        Size("spike", 500_000, 5_000, "jobs due at one instant that must be worked off"),
        also=add_broker,
    )
    report = Report("brokers", options)
    report.variant = f"_{options.broker}"
    with broker(options.broker) as url, postgres() as bench:
        report.note(f"PostgreSQL with {', '.join(bench.differing)}; runs go through {options.broker}")
        _tell_bare(report, options, url)
        more = {"queue_url": url}
        many = load(bench, options.jobs, options.demand)
        found = [cluster_throughput.measure(bench, many.url, options, more) for _ in range(options.rounds)]
        report.figure("whole cycle with history", "runs/s", [one.rate for one in found], at_least(12_000))
        report.figure("whole cycle, slowest 10 s", "runs/s", [one.slowest for one in found])
        report.figure("whole cycle, share by message", "%", [one.by_message for one in found])
        report.figure("scheduler's memory", "MB", [one.scheduler_mb for one in found])
        report.figure("scheduler's processor", "cores", [one.scheduler_cores for one in found])
        herd = cluster_lateness.Herd(jobs=options.herd, lead_s=2)
        late = [cluster_lateness.measure(bench, herd, more, [("scheduler",)]) for _ in range(options.rounds)]
        report.figure(f"{herd.title}, p99 lateness", "ms", [one.p99 for one in late], below(200))
        report.figure(f"{herd.title}, most", "ms", [one.most for one in late])
        report.figure(f"{herd.title}, share by message", "%", [one.by_message for one in late])
        _tell_spike(report, options, bench, more)
    report.save()


def _tell_spike(
    report: Report, options: argparse.Namespace, bench: BenchPostgres, more: Mapping[str, str]
) -> None:
    """Far more runs due at once than workers have room for; the least important jobs are the oldest."""
    spike = cluster_lateness.Herd(
        jobs=options.spike, lead_s=2, priorities=tuple(reversed(Priority)), room=options.concurrency
    )
    found = cluster_lateness.measure(bench, spike, more, [("scheduler",)])
    report.figure(f"{spike.title}, worked off after", "s", [found.recorded_s])
    report.figure(f"{spike.title}, worker's memory at most", "MB", [found.worker_mb], below(500))
    report.figure(f"{spike.title}, share by message", "%", [found.by_message])
    for priority in Priority:
        half_s, all_s = found.started[priority.name.lower()]
        report.figure(f"{spike.title}, half of {priority.name} started after", "s", [half_s])
        report.figure(f"{spike.title}, all of {priority.name} started after", "s", [all_s])


def _tell_bare(report: Report, options: argparse.Namespace, url: str) -> None:
    rounds = [uvloop.run(_bare(options.broker, url, options.messages)) for _ in range(options.rounds)]
    report.figure("bare client, messages in", "messages/s", [one[0] for one in rounds])
    report.figure("bare client, messages out and acknowledged", "messages/s", [one[1] for one in rounds])


async def _bare(broker: str, url: str, count: int) -> tuple[float, float]:
    """Messages a second that our adapter writes, and that it reads and acknowledges."""
    offers, feed = _sides(broker, url)
    at = time.time_ns() // 1000
    batches = [
        [
            Offer(job_id=start + n, scheduled_at=at, due_at=at, fence=0, run_class=(start + n) % 3)
            for n in range(_BATCH)
        ]
        for start in range(0, count, _BATCH)
    ]
    began = time.perf_counter()
    for batch in batches:
        await offers.offer(batch)
    written = time.perf_counter()
    read = 0
    while read < count:
        messages = await feed.read(_ROOM)
        await feed.ack(messages)
        read += len(messages)
    ended = time.perf_counter()
    await feed.close()
    await offers.close()
    return count / (written - began), count / (ended - written)


def _sides(broker: str, url: str) -> tuple[Offers, Feed]:
    if broker == "kafka":
        from hourhand.queues.kafka import KafkaFeed, KafkaOffers
        from hourhand.queues.kafka import parse_address as parse_kafka

        address = parse_kafka(f"{url}/bare-{time.time_ns()}")
        return KafkaOffers(address, patience_s=_PATIENCE_S), KafkaFeed(address, "default")
    from hourhand.queues.redis import RedisFeed, RedisOffers, parse_address

    streams = parse_address(f"{url}?name=bare-{time.time_ns()}")
    return RedisOffers(streams), RedisFeed(streams, ("default",), "bench")


@contextlib.contextmanager
def broker(name: str) -> Iterator[str]:
    """A real one of this kind, and its URL."""
    servers: dict[str, Callable[[], Any]] = {"redis": RedisServer, "kafka": _kafka}
    with servers[name]() as server:
        yield server.url


def _kafka() -> KafkaServer:
    """As one runs it, not as tests start it."""
    return KafkaServer(quick=False, heap_mb=1024)


def add_broker(parser: argparse.ArgumentParser) -> None:
    """The option that says which."""
    parser.add_argument("--broker", choices=("redis", "kafka"), default="redis")


if __name__ == "__main__":
    main()
