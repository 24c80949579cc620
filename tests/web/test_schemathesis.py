"""Requests that schemathesis makes up from the description of the API, against the real command: it finds nothing.

Every operation is asked for with what the description allows and with what it forbids. `events` is left out, since
it answers for ever. That a document which fits its schema is refused with 422 is no finding: which jobs there are, or
that cron and every exclude each other, no schema says.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.process import ROOT, Up, wait_for

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "5"))  # of each operation; more in a soak
PATIENCE_S = 600
ONE_TOKEN = "/api/v1/tokens/{token_id}"  # asked for last: among those it revokes may be its own
CONFIG = """
hooks = "tests.web.schemathesis_hooks"
request-timeout = 20.0
[checks]
# what a precondition refuses is not read any further
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "412", "413", "415", "422", "428", "429"]
positive_data_acceptance.expected-statuses = ["2xx", "304", "401", "403", "404", "409", "410", "412", "422", "429"]
ensure_resource_availability.enabled = false
[parameters]
"""


class Guarded:
    """`hourhand up` that asks who is there, and somebody who may do everything."""

    def __init__(self, folder: Path) -> None:
        self.up = Up(folder, more={"HOURHAND_AUTH_MODE": "tokens"})
        self.token = self._first_token()
        self.up.start()

    def ask(self, status: int, method: str, path: str, body: object = None) -> dict[str, Any]:
        answer = self.up.api.call(method, path, body, {"Authorization": f"Bearer {self.token}"})
        assert answer.status == status, answer
        return dict(answer.body)

    def _first_token(self) -> str:
        words = ["token", "create", "fuzz", "--direct", "--role", "admin", "--tenant", "*", "-q"]
        environment = {**self.up.environment, "HOURHAND_STORE_URL": f"sqlite:///{self.up.data}"}
        made = subprocess.run(
            [*self.up.launcher, *words],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return made.stdout.strip()


@pytest.fixture
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One for each case: what is made up may revoke the very token that it is asked with."""
    started = Guarded(tmp_path_factory.mktemp("fuzzed"))
    yield started
    started.up.kill()


def known(guarded: Guarded) -> dict[str, str]:
    """Things that are there, by the name of the parameter that names them."""
    target = {"type": "http", "url": "http://127.0.0.1:9/"}
    job = {"cron": "0 9 * * *", "name": "known", "key": "known", "target": target, "retry": {"max": 0}}
    job_id = guarded.ask(201, "POST", "/jobs", job)["job_id"]
    run_id = guarded.ask(202, "POST", f"/jobs/{job_id}/run")["run_id"]
    wait_for("the run fails", lambda: guarded.ask(200, "GET", f"/runs/{run_id}")["status"] == "FAILED")
    backfill = {"job": job_id, "from": "2026-11-01T00:00:00Z", "force": True, "rate": "1/h"}
    operation = {"action": "resume", "filter": {"tag": "none"}}
    hook = {"url": "https://203.0.113.1/hook", "types": ["job.*"]}
    webhook_id = guarded.ask(201, "POST", "/webhooks", hook)["webhook_id"]
    return {
        "job_id": job_id,
        "run_id": run_id,
        "backfill_id": guarded.ask(202, "POST", "/backfills", backfill)["backfill_id"],
        "operation_id": guarded.ask(202, "POST", "/operations", operation)["operation_id"],
        "webhook_id": webhook_id,
        "event_id": guarded.ask(202, "POST", f"/webhooks/{webhook_id}/test")["event_id"],
        "tenant": "known",
        "token_id": guarded.ask(201, "POST", "/tokens", {"name": "x", "role": "viewer"})["token_id"],
    }


@pytest.mark.parametrize("with_known", [False, True], ids=["made up", "known"])
def test_nothing_is_found(guarded: Guarded, tmp_path: Path, with_known: bool) -> None:
    config = CONFIG
    if with_known:
        given = {f"path.{name}": value for name, value in known(guarded).items()}
        given["header.Hourhand-Tenant"] = "default"  # whose all of them are
        config += "".join(f'"{name}" = "{value}"\n' for name, value in given.items())
    (tmp_path / "schemathesis.toml").write_text(config)
    # read by ourselves: schemathesis waits no longer than 10 s for it
    (tmp_path / "openapi.json").write_text(json.dumps(guarded.ask(200, "GET", "//openapi.json")))
    spared = ("--exclude-method", "DELETE") if with_known else ()
    fuzz(guarded, tmp_path, *spared, "--exclude-path", ONE_TOKEN)
    guarded.ask(
        200, "GET", "/quota"
    )  # to the end it was somebody who asked, so nothing was left out unnoticed
    if not with_known:
        fuzz(guarded, tmp_path, "--include-path", ONE_TOKEN)


def fuzz(guarded: Guarded, folder: Path, *chosen: str) -> None:
    """Have schemathesis ask for some operations; AssertionError tells what it found."""
    words = [
        *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", "schemathesis.toml"),
        *("run", "openapi.json", "--url", f"http://127.0.0.1:{guarded.up.port}", "--no-color"),
        *("--header", f"Authorization: Bearer {guarded.token}"),
        *("--max-examples", str(EXAMPLES), "--phases", "examples,coverage,fuzzing"),
        *("--generation-deterministic", "--exclude-path", "/api/v1/events", *chosen),
    ]
    log = folder / "schemathesis.log"
    with log.open("wb") as out:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            words, stdout=out, stderr=subprocess.STDOUT, cwd=folder, env=environment, timeout=PATIENCE_S
        )
    assert ended.returncode == 0, log.read_text()[-20_000:]
    assert " passed" in log.read_text()
