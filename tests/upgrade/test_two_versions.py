"""Processes of the version before go on working while a database is brought up to date, and after it.

The version before is taken from the repository's own history, so that it is really that code that asks the tables.
"""

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from hourhand.stores.postgres import schema
from tests.servers.machine import in_ci

ROOT = Path(__file__).parents[2]
STEPS_BEFORE = 3  # of the version before


def git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def source_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the last commit whose schema had just the steps of the version before."""
    folder = "src/hourhand/stores/postgres/migrations"
    try:
        added = git("log", "--diff-filter=A", "--format=%H", "--", f"{folder}/{STEPS_BEFORE + 1:04}_*.sql")
        archive = git("archive", f"{added.decode().split()[-1]}^", "src")
    except (OSError, subprocess.CalledProcessError, IndexError):
        if in_ci():
            raise
        pytest.skip("the repository's history is not here")
    place = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(place, filter="data")
    return place / "src"


class Process:
    """A running `process.py`."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self._running = running

    @classmethod
    async def start(cls, stack: AsyncExitStack, source: Path, url: str, node_id: int) -> "Process":
        script = Path(__file__).with_name("process.py")
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            str(script),
            url,
            str(node_id),
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        stack.callback(lambda: running.returncode is None and running.kill())
        return cls(running)

    async def rounds(self, count: int) -> None:
        assert self._running.stdout is not None
        for _ in range(count):
            while (line := await self._running.stdout.readline()) != b"round\n":
                assert line, "it ended"

    async def stop(self) -> dict[str, list[int]]:
        assert self._running.stdin is not None
        self._running.stdin.close()
        assert self._running.stdout is not None
        lines = (await self._running.stdout.read()).splitlines()
        assert await self._running.wait() == 0
        return json.loads(lines[-1])


async def test_they_work_side_by_side_through_the_steps(postgres_url: str, source_before: Path) -> None:
    await schema.up(postgres_url, only_to=STEPS_BEFORE)
    async with asyncio.timeout(120), AsyncExitStack() as stack:
        old = await Process.start(stack, source_before, postgres_url, 1)
        await old.rounds(3)
        assert len(await schema.up(postgres_url)) >= 1
        await old.rounds(3)
        new = await Process.start(stack, ROOT / "src", postgres_url, 2)
        await new.rounds(3)
        late = await Process.start(stack, source_before, postgres_url, 3)
        await asyncio.gather(late.rounds(3), old.rounds(3), new.rounds(3))
        answers = [await one.stop() for one in (old, late, new)]
    made = sorted(job_id for answer in answers for job_id in answer["made"])
    assert sorted(job_id for answer in answers for job_id in answer["done"]) == made, "lost or doubled"
    connection = await asyncpg.connect(postgres_url)
    try:
        kept = [row[0] for row in await connection.fetch("SELECT job_id FROM history ORDER BY job_id")]
        left = await connection.fetchval("SELECT count(*) FROM planned") + await connection.fetchval(
            "SELECT count(*) FROM running"
        )
    finally:
        await connection.close()
    assert (kept, left) == (made, 0)
