"""The examples for receivers, each on its real server, called by a real hourhand through a courier who delivers twice."""

import base64
import contextlib
import hashlib
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hourhand import Client
from tests.cli.conftest import started
from tests.examples.courier import Courier, courier
from tests.servers.machine import free_port, wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEADLINE_S = 60
SECRET = "whsec_" + base64.b64encode(hashlib.sha256(b"new").digest()).decode()
OLD_SECRET = "whsec_" + base64.b64encode(hashlib.sha256(b"old").digest()).decode()

COMMANDS: dict[str, list[str]] = {
    "fastapi": ["uvicorn", "fastapi_receiver:app", "--port", "{port}"],
    "fastapi on PostgreSQL": ["uvicorn", "fastapi_receiver:app", "--port", "{port}"],
    "flask": ["flask", "--app", "flask_receiver", "run", "--port", "{port}"],
    "django": [str(EXAMPLES / "django_receiver.py"), "runserver", "--noreload", "127.0.0.1:{port}"],
}


@dataclass
class Receiver:
    """A running example."""

    url: str
    charges: Callable[[], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("hourhand")
    (folder / "hourhand.toml").write_text(f'[targets]\nsigning_secret = ["{OLD_SECRET}", "{SECRET}"]\n')
    with started(folder) as url:
        yield url


@pytest.fixture(params=COMMANDS)
def receiver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Receiver]:
    name, port = request.param, free_port()
    environment = {"SIGNING_SECRETS": SECRET, "PYTHONPATH": str(EXAMPLES), "DATABASE": "receiver.db"}
    on_postgres = name in ("flask", "fastapi on PostgreSQL")
    if on_postgres:
        database = request.getfixturevalue("postgres_url")
        driver = "postgresql" if name == "flask" else "postgresql+asyncpg"
        environment["DATABASE_URL"] = driver + database[database.index("://") :]

    def charges() -> list[tuple[Any, ...]]:
        table = "receiver_charge" if name == "django" else "charges"
        query = f"SELECT run_id, account, cents FROM {table}"
        if on_postgres:
            with psycopg.connect(database) as connection:
                return connection.execute(query).fetchall()
        with contextlib.closing(sqlite3.connect(tmp_path / "receiver.db")) as connection:
            return connection.execute(query).fetchall()

    module = [] if name == "django" else ["-m"]
    command = [sys.executable, *module, *[word.format(port=port) for word in COMMANDS[name]]]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | environment, stdout=log, stderr=log
        ) as process,
    ):
        try:
            wait_until("the receiver listens", lambda: listens(process, port, tmp_path / "log"), DEADLINE_S)
            yield Receiver(f"http://127.0.0.1:{port}", charges)
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


def listens(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def by_courier(receiver: Receiver) -> Iterator[Courier]:
    with courier(receiver.url) as found:
        yield found


def ended(server: str, courier: Courier, path: str) -> dict[str, Any]:
    """A run of a job that calls the receiver through the courier, once it is over."""
    document = {
        "name": "charge",
        "every": "1h",
        "target": f"{courier.url}{path}",
        "payload": {"account": 7, "cents": 1250},
        "retry": {"max": 5, "first": "0.2s", "factor": 1},
        "timeout": "30s",
    }
    with Client(server) as client:
        job = client.jobs.create(document)
        return client.runs.wait(client.jobs.run(job), timeout_s=DEADLINE_S)


def test_what_is_delivered_four_times_is_charged_once(
    server: str, receiver: Receiver, by_courier: Courier
) -> None:
    run = ended(server, by_courier, "/charge")
    assert run["status"] == "SUCCEEDED", run
    assert by_courier.attempts == sorted(set(by_courier.attempts)), "each try has a number of its own"
    assert by_courier.answers == [200 + 4] * 4
    assert receiver.charges() == [(run["run_id"], 7, 1250)]


def test_what_is_taken_with_202_is_charged_once_and_reported(
    server: str, receiver: Receiver, by_courier: Courier
) -> None:
    run = ended(server, by_courier, "/charge-later")
    assert run["status"] == "SUCCEEDED", run
    assert set(by_courier.answers) == {202}
    assert receiver.charges() == [(run["run_id"], 7, 1250)]


def test_a_forged_and_an_overtaken_call_are_refused(
    server: str, receiver: Receiver, by_courier: Courier
) -> None:
    ended(server, by_courier, "/charge")
    path, headers, body = by_courier.calls[-1]
    forged = {name: value for name, value in headers.items() if name.lower() != "webhook-signature"}
    assert by_courier.deliver(path, forged, body)[0] == 401
    assert by_courier.deliver(path, headers, body.replace(b"1250", b"9250"))[0] == 401
    assert by_courier.deliver(path, headers | {"Hourhand-Attempt": "0"}, body)[0] == 409
    assert by_courier.deliver(path, headers, body)[0] == 204
    assert len(receiver.charges()) == 1
