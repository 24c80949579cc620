"""What users' own type checkers see: a program against the SDK is fully typed, and its mistakes are found."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

from hourhand import (
    EFFECTS_DDL, AsyncClient, Client, GiveUp, Hourhand, InvalidSignature, OldAttempt, Retry, Run, exactly_once,
    forget_effects, report, verify,
)
from hourhand.errors import Conflict, NotFound

hh = Hourhand()


@hh.job(cron="0 9 * * *", tz="Europe/Berlin", retry=Retry(3, first="1s", max="10m"), timeout="5m", priority="high")
async def daily_report(ctx: Run, region: str = "eu") -> dict[str, str]:
    ctx.progress(0.4, "loading")
    if region == "":
        raise GiveUp("bad data")
    return {"key": ctx.idempotency_key}


@hh.job(after=[daily_report, "billing/daily"], wait="2h")
def mail() -> None:
    pass


@hh.function
def charge(account: int) -> str:
    return "charged"


async def call_them() -> None:
    assert_type(await daily_report(Run.fake(), "eu"), dict[str, str])
    assert_type(charge(7), str)
    assert_type(charge.run_now(account=7), dict[str, Any])


with Client(timeout_s=5, retries=2) as c:
    for job in c.jobs.list(failing=True):
        assert_type(job, dict[str, Any])
        c.jobs.pause(job, note="INC-42")
    assert_type(c.events(), Iterator[dict[str, Any]])
    assert_type(c.jobs.export(), Iterator[dict[str, Any]])
    try:
        done = c.runs.wait(c.jobs.run("J-1"), timeout_s=60)
    except (NotFound, Conflict) as error:
        assert_type(error.code, str)
    else:
        assert_type(done, dict[str, Any])


async def the_same() -> None:
    async with AsyncClient("http://127.0.0.1:7070", token="t", tenant="a") as c:
        assert_type(c.jobs.list(failing=True), AsyncIterator[dict[str, Any]])
        assert_type(await c.jobs.get("J-1"), dict[str, Any])
        assert_type(c.events(types="run.*"), AsyncIterator[dict[str, Any]])
        async for job in c.jobs.export(state="active"):
            assert_type(job, dict[str, Any])
        assert_type(await c.system.quota(), dict[str, Any])
        assert_type(await c.runs.wait("J-1@20261116T080000Z", timeout_s=60), dict[str, Any])
        assert_type(c.webhooks.list(), AsyncIterator[dict[str, Any]])
        assert_type(c.deeds.list(), AsyncIterator[dict[str, Any]])


def receive(headers: dict[str, str], body: bytes, connection: sqlite3.Connection) -> int:
    try:
        assert_type(verify(headers, body, ["whsec_a", "whsec_b"]), str)
        with exactly_once(connection, headers) as first:
            assert_type(first, bool)
        assert_type(forget_effects(connection, "30d"), int)
    except InvalidSignature as error:
        return error.status
    except OldAttempt as error:
        return error.status
    report(headers, "succeeded", result={"statements": len(EFFECTS_DDL)})
    return 200
"""
MISTAKES = {
    'Client(timeout_s="5")': "arg-type",
    'Client().jobs.pause("J-1", nota="x")': "call-arg",
    "Client().jobs.get(7)": "arg-type",
    "Client().events(kinds='run.*')": "call-arg",
    "for event in AsyncClient().events(): ...": "attr-defined",
    'AsyncClient().jobs.get("J-1").items()': "attr-defined",
    "verify({}, {}, 'whsec_a')": "arg-type",
    "verify({}, b'', 'whsec_a').status": "attr-defined",
    "from hourhand import Clint": "attr-defined",
    "Hourhand().job(crn='0 9 * * *')": "call-arg",
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def checked(program: str, folder: Path, cache: Path) -> str:
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(cache)]
    done = subprocess.run(
        [*command, "--config-file", "", "program.py"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert not done.stderr
    return done.stdout


def test_a_program_is_typed_throughout(tmp_path: Path, cache: Path) -> None:
    assert checked(PROGRAM, tmp_path, cache) == ""


def test_its_mistakes_are_found(tmp_path: Path, cache: Path) -> None:
    lines = ["from hourhand import AsyncClient, Client, Hourhand, verify", *MISTAKES]
    found = checked("\n".join(lines) + "\n", tmp_path, cache)
    at = {
        int(line): code
        for line, code in re.findall(r"^program\.py:(\d+): error: .*\[([a-z-]+)\]$", found, re.M)
    }
    assert at == dict(enumerate(MISTAKES.values(), 2)), found
