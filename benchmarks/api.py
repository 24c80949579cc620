"""How many requests a second one API process answers: `POST /jobs`, each durable before its answer, and `GET /jobs/{id}/status`.

Over kept connections to the real `hourhand up` in a process of its own; jobs that have run and jobs that have not.
Beside each, in turn with it, a FastAPI route that stores nothing on the same server: the most that the framework
leaves. Client and server share this machine.

    python -m benchmarks.api [--requests 20000] [--connections 32] [--rounds 3] [--quick]
"""

import argparse
import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks._http import Driven, drive, get, post
from benchmarks._process import hourhand_up, server
from benchmarks._report import Report, Size, at_least, options_of, percentile
from benchmarks._system import scratch

PATH = "/api/v1/jobs"
_KNOWN = 500  # jobs whose status is asked for
_RAN = 250  # of them that have run


def main() -> None:
    """Both questions, each beside the bare route."""
    options = options_of(
        __doc__ or "",
        Size("requests", 20_000, 1_000, "requests of each kind and round"),
        Size("connections", 32, 8, "kept connections"),
    )
    report = Report("api", options)
    asyncio.run(measure(report, options))
    report.save()


async def measure(report: Report, options: argparse.Namespace) -> None:
    """In turn, so that a slow minute meets both."""
    posts: list[Driven] = []
    statuses: list[Driven] = []
    bare_posts: list[Driven] = []
    bare_statuses: list[Driven] = []
    for _ in range(options.rounds):
        with scratch() as folder, hourhand_up(Path(folder) / "bench.db") as up:
            posts.append(await _drive(up.port, _posts, options))
            ids = await _known(up.port)
            statuses.append(
                await _drive(up.port, lambda port, count, ids=ids: _statuses(port, count, ids), options)
            )
        with server("benchmarks._bare_app") as bare:
            bare_posts.append(await _drive(bare.port, _posts, options))
            bare_statuses.append(
                await _drive(bare.port, lambda port, count: _statuses(port, count, ["J-1"]), options)
            )
    for name, driven, goal in (
        ("POST /jobs", posts, 1_500),
        ("GET /jobs/{id}/status", statuses, 3_000),
        ("bare route, POST", bare_posts, None),
        ("bare route, GET", bare_statuses, None),
    ):
        unit = "requests/s"
        report.figure(name, unit, [one.rate for one in driven], None if goal is None else at_least(goal))
        p99 = [percentile(sorted(one.latencies_ms), 0.99) for one in driven]
        report.figure(f"{name}, p99 of an answer", "ms", p99)


async def _drive(port, requests, options: argparse.Namespace) -> Driven:  # type: ignore[no-untyped-def]
    await drive(port, requests(port, options.connections * 10), options.connections)  # warm, as a server is
    driven = await drive(port, requests(port, options.requests), options.connections)
    wrong = {status: count for status, count in driven.statuses.items() if status not in (200, 201)}
    if wrong:
        raise SystemExit(f"expected only 200 and 201, got {wrong}")
    return driven


def _posts(port: int, count: int) -> Iterator[bytes]:
    for n in range(count):
        document = {"name": f"job-{n}", "cron": f"{n % 60} {n // 60 % 24} * * *", "payload": {"n": n}}
        document["callback_url"] = "https://example.com/hook"
        yield post(port, PATH, json.dumps(document).encode())


def _statuses(port: int, count: int, ids: list[str]) -> Iterator[bytes]:
    return (get(port, f"{PATH}/{ids[n % len(ids)]}/status") for n in range(count))


async def _known(port: int) -> list[str]:
    """Jobs, half of them with runs that have ended."""
    listed = await asyncio.to_thread(_fetch, f"http://127.0.0.1:{port}{PATH}?limit={_KNOWN}")
    ids = [str(job["job_id"]) for job in listed["data"]]
    runs = iter([post(port, f"{PATH}/{one}/run", b"") for one in ids[:_RAN]])
    await drive(port, runs, 8)
    return ids


def _fetch(url: str) -> dict[str, list[dict[str, object]]]:
    with urllib.request.urlopen(url) as answer:
        found: dict[str, list[dict[str, object]]] = json.load(answer)
        return found


if __name__ == "__main__":
    main()
