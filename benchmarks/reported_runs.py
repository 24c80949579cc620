"""What it costs to wait for very many reports: sockets, memory and processor of `hourhand up` while they are awaited.

One-time jobs whose HTTP target answers 202 at once, all due together. Once every run waits for its report and kept
connections had time to close, the process is looked at from outside: open sockets, memory, processor. Then every run
is reported through the API, as fast as it answers. At the end every run must have succeeded at its first attempt.

    python -m benchmarks.reported_runs [--runs 10000] [--seconds 10] [--rounds 3] [--quick]
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import uvloop

from benchmarks._http import drive, post
from benchmarks._process import Child, hourhand_up, server
from benchmarks._report import Report, Size, below, options_of
from benchmarks._system import scratch
from hourhand.core.identity import format_run_id
from hourhand.core.report import report_token

_PATIENCE_S = 300.0
_KEEP_ALIVE_S = 10.0  # longer than either side keeps a connection
_CONNECTIONS = 32
_PER_REQUEST = 1_000
_SUCCEEDED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One round."""

    sockets: int  # more than before anything was called
    memory_mb: float  # likewise
    cores: float
    reports_s: float


def measure(runs: int, seconds: float, target: int) -> Found:
    """Let all of them be accepted, look, and report them."""
    with scratch() as folder:
        data, config = Path(folder) / "bench.db", Path(folder) / "bench.toml"
        config.write_text('[targets]\nallow_hosts = ["127.0.0.1"]\n[telemetry]\nlog = "warning"\n')
        with hourhand_up(data, "--config", str(config)) as up:
            sockets, memory_mb = _sockets(up), up.memory_mb()
            uvloop.run(_create(up.port, runs, target))
            _wait(data, f"SELECT count(*) = {runs} FROM running WHERE phase = 2 AND node_id IS NULL")
            time.sleep(_KEEP_ALIVE_S)
            cpu_s, began_s = up.cpu_s(), time.perf_counter()
            time.sleep(seconds)
            cores = (up.cpu_s() - cpu_s) / (time.perf_counter() - began_s)
            open_sockets, used_mb = max(0, _sockets(up) - sockets), up.memory_mb() - memory_mb
            driven = uvloop.run(drive(up.port, _reports(up.port, data), _CONNECTIONS))
            if set(driven.statuses) != {200}:
                raise SystemExit(f"not every report was taken: {driven.statuses}")
            done = f"attempt = 1 AND state = {_SUCCEEDED}"
            _wait(data, f"SELECT count(*) = {runs} FROM history WHERE {done}")
    return Found(sockets=open_sockets, memory_mb=used_mb, cores=cores, reports_s=driven.rate)


async def _create(port: int, runs: int, target: int) -> None:
    job = {
        "at": "2020-01-01T00:00:00Z",
        "callback_url": f"http://127.0.0.1:{target}/accept",
        "timeout": "1h",
    }
    sizes = [min(_PER_REQUEST, runs - first) for first in range(0, runs, _PER_REQUEST)]
    bodies = [msgspec.json.encode([job] * size) for size in sizes]
    driven = await drive(port, (post(port, "/api/v1/jobs/bulk", body) for body in bodies), 1)
    if set(driven.statuses) != {200}:
        raise SystemExit(f"jobs were not created: {driven.statuses}")


def _reports(port: int, data: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(f"file:{data}?mode=ro", uri=True)) as connection:
        [(key,)] = connection.execute("SELECT value FROM meta WHERE key = 'report_key'").fetchall()
        rows = connection.execute("SELECT job_id, scheduled_at, fence FROM running").fetchall()
    for job_id, scheduled_at, fence in rows:
        run_id = format_run_id(job_id, scheduled_at)
        token = report_token(bytes.fromhex(key), run_id, fence)
        body = msgspec.json.encode({"attempt": fence, "outcome": "succeeded", "result": {"rows": 1}})
        head = f"\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        yield post(port, f"/api/v1/runs/{run_id}/report", body).replace(b"\r\n\r\n", head, 1)


def _wait(data: Path, condition: str) -> None:
    end_s = time.monotonic() + _PATIENCE_S
    with closing(sqlite3.connect(f"file:{data}?mode=ro", uri=True)) as connection:
        while not connection.execute(condition).fetchone()[0]:
            if time.monotonic() > end_s:
                raise SystemExit(f"not within {_PATIENCE_S:g} s: {condition}")
            time.sleep(0.1)


def _sockets(child: Child) -> int:
    folder = Path(f"/proc/{child.process.pid}/fd")
    return sum(os.readlink(one).startswith("socket:") for one in list(folder.iterdir()) if one.is_symlink())


def main() -> None:
    """All rounds."""
    options = options_of(
        __doc__ or "",
        Size("runs", 10_000, 500, "runs that wait for their reports"),
        Size("seconds", 10.0, 2.0, "of looking"),
    )
    report = Report("reported_runs", options)
    found = []
    with server("benchmarks._http") as target:
        for _ in range(options.rounds):
            found.append(measure(options.runs, options.seconds, target.port))
            report.say(str(found[-1]))
    report.figure("sockets that are held", "sockets", [one.sockets for one in found], below(1))
    report.figure("processor while they wait", "cores", [one.cores for one in found], below(0.03))
    report.figure("memory more than before", "MB", [one.memory_mb for one in found], below(50))
    report.figure("reports taken", "reports/s", [one.reports_s for one in found])
    report.save()


if __name__ == "__main__":
    main()
