"""A real server in a process of its own, and the command line in this one."""

import os
import re
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hourhand.cli.app import run
from hourhand.cli.launch import SchemaState
from hourhand.config import Settings, UpOptions

DEADLINE_S = 30

FUNCTIONS = """
import threading
from hourhand import GiveUp, Hourhand, Skip

hh = Hourhand()
never = threading.Event()

@hh.function
def succeed():
    return {"done": True}

@hh.function
def fail():
    raise ValueError("it broke")

@hh.function
def give_up():
    raise GiveUp("bad data")

@hh.function
def talk(ctx):
    ctx.log.info("beginning", step=1)
    ctx.log.bind(step=2).warning("going on", path="/tmp")

@hh.function
def skip():
    raise Skip("holiday")

@hh.function
async def hang():
    import asyncio
    await asyncio.Event().wait()
"""


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)

    @property
    def problem(self) -> Any:
        return msgspec.json.decode(self.err)


class NothingStarts:
    """For commands that start nothing."""

    def up(self, settings: Settings, options: UpOptions) -> int:
        raise AssertionError("this command is not `up`")

    def api(self, settings: Settings) -> int:
        raise AssertionError("this command is not `api`")

    def scheduler(self, settings: Settings) -> int:
        raise AssertionError("this command is not `scheduler`")

    def worker(self, settings: Settings) -> int:
        raise AssertionError("this command is not `worker`")

    def migrations(self, settings: Settings) -> Sequence[SchemaState]:
        raise AssertionError("this command is not `migrate status`")

    def migrate(self, settings: Settings, applied: Callable[[str, str], None]) -> None:
        raise AssertionError("this command is not `migrate up`")


@pytest.fixture
def hourhand(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs a command in this process; named functions stand in for what it starts."""

    def command(*arguments: str, **starts: Callable[..., Any]) -> Done:
        capsys.readouterr()
        launch = NothingStarts()
        for name, function in starts.items():
            setattr(launch, name, function)
        code = run(arguments, launch)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return command


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("HOURHAND_"):
            monkeypatch.delenv(name)


@contextmanager
def started(folder: Path, *options: str) -> Iterator[str]:
    """A server in a process of its own, until the block ends; its URL."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "HOURHAND_WORKER_DRAIN": "0s"}
    environment["HOURHAND_TARGETS_ALLOW_HOSTS"] = "127.0.0.1"  # where tests have their receivers
    command = [
        sys.executable,
        "-m",
        "hourhand",
        "up",
        "--port",
        "0",
        "--data",
        "jobs.db",
        "--no-demo",
        *options,
    ]
    with (
        (folder / "stderr").open("wb") as stderr,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=stderr
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield read_until(process.stdout.fileno(), rb"http://[\d.:]+", folder / "stderr").decode()
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "functions_for_cli.py").write_text(FUNCTIONS)
    with started(folder, "--import", "functions_for_cli", "--allow-shell") as url:
        yield url


@pytest.fixture
def server(server_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a running server, which commands find by themselves."""
    monkeypatch.setenv("HOURHAND_URL", server_url)
    return server_url


def read_until(descriptor: int, pattern: bytes, errors: Path | None = None) -> bytes:
    """What matches in a stream, as soon as it does."""
    text = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not (found := re.search(pattern + rb"(?=\s)", text)):
            told = errors.read_text() if errors else ""
            assert selector.select(DEADLINE_S), f"no {pattern!r} in {text!r}; {told}"
            chunk = os.read(descriptor, 65_536)
            assert chunk, f"ended without {pattern!r}: {text!r}; {told}"
            text += chunk
    return found[0]
