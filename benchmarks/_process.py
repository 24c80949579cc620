"""Children of a benchmark: the real `hourhand up`, and small servers that say their port once they listen."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_START_S = 120.0  # a large file is looked through before the first answer
_STOP_S = 60.0
_PAUSE_S = 0.05


@dataclass(slots=True)
class Child:
    """A process of ours and where it listens."""

    process: "subprocess.Popen[bytes]"
    port: int

    def kill(self) -> None:
        """End it without a word, as a power cut would end it."""
        self.process.kill()
        self.process.wait(_STOP_S)

    def cpu_s(self) -> float:
        """Processor time that its living threads have used, to the nanosecond."""
        used_ns = 0
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                used_ns += int((thread / "schedstat").read_text().split()[0])
        return used_ns / 1e9

    def memory_mb(self) -> float:
        """Its resident memory now."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def hourhand_up(data: Path, *arguments: str) -> Iterator[Child]:
    """The real command on a file, ready to answer; stopped at the end unless it was killed."""
    port = free_port()
    log = data.with_suffix(".log")
    command = [sys.executable, "-m", "hourhand", "up", "--port", str(port), "--data", str(data), "--no-demo"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        _wait_until_ready(process, port, log)
        yield Child(process, port)
    finally:
        _stop(process)


@contextlib.contextmanager
def server(module: str, *arguments: str) -> Iterator[Child]:
    """A module of ours that prints its port and serves until it is stopped."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, env=environment(), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{module} did not start")
        yield Child(process, int(line))
    finally:
        _stop(process)
        process.stdout.close()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment() -> dict[str, str]:
    """Ours without settings: what is measured has its defaults, whatever the shell exports."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
    return {**kept, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}


def is_ready(port: int) -> bool:
    """Whether the API there answers that it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end_s = time.monotonic() + _START_S
    while not is_ready(port):
        if process.poll() is not None or time.monotonic() > end_s:
            raise SystemExit(f"hourhand up did not become ready: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(_PAUSE_S)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
