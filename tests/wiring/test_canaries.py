"""A different canary in every place where a secret lives, then successes and failures of every kind: where does one sing?

The real process, with authentication, on PostgreSQL and Redis, at the most talkative level. All that it tells is
searched: what it prints, every answer and error, every route that reads (by walking the route table, so that a new
one is covered), pages, events, the database, calls to targets, the command line, titles of processes. A canary may be
in the one answer that is documented to show it; and what is part of a job's document is where that document is told.
Traces have no exporter in this version: `traceparent` of calls is all there is.
"""

import base64
import contextlib
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from fastapi.routing import APIRoute

from hourhand.web.page_files import page
from hourhand.web.routes import API, PAGE, PREFIX, PROCESS
from tests.servers.machine import wait_until
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer, ask
from tests.wiring.aviary import DEADLINE_S, Aviary, Receiver, command, process

ISSUER, AUDIENCE = "https://id.example.com", "hourhand"
OF_JOBS = ("document", "table", "call")  # where what stands in a job's document belongs
TELL_DOCUMENTS = {"list_jobs", "read_job", "resolve_job", "job_versions"}
FOLLOWED = {"follow_events"}  # has no end; a thread reads it from beginning to end
NOWHERE = "http://ann:{}@127.0.0.1:1/"


class System:
    """The running process, its servers, and somebody who runs it and asks for acme."""

    def __init__(self, folder: Path, postgres: PostgresServer, redis: RedisServer) -> None:
        self.aviary, self.receiver = Aviary(), Receiver()
        self.folder, self.postgres, self.redis = folder, postgres, redis
        self.database = postgres.create_database()
        self.settings = self._settings()
        self.ids: dict[str, str] = {}
        self.token, self.pid = "", 0
        self.client = httpx2.Client()

    def _settings(self) -> dict[str, str]:
        secret, key = self.aviary.secret, secrets.token_bytes(32)
        ask(self.redis.url, f"CONFIG SET requirepass {(password := secret('password of Redis'))}")
        bare = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
        return bare | {
            "HOURHAND_STORE_URL": self.database.replace(
                "postgres@", f"postgres:{secret('password of the database')}@"
            ),
            "HOURHAND_LIMITS_URL": self.redis.url.replace("redis://", f"redis://:{password}@"),
            "HOURHAND_AUTH_MODE": "jwt",
            "HOURHAND_AUTH_SECRET": secret("auth.secret"),
            "HOURHAND_AUTH_ISSUER": ISSUER,
            "HOURHAND_AUTH_AUDIENCE": AUDIENCE,
            "HOURHAND_TARGETS_ALLOW_HOSTS": "127.0.0.1",
            "HOURHAND_TARGETS_SIGNING_SECRET": "whsec_"
            + secret("signing secret", base64.b64encode(key).decode()),
            "HOURHAND_ALERTS_DEADMAN_URL": f"http://{self.receiver.host}/{secret('dead man')}",
            "HOURHAND_TELEMETRY_LOG": "debug",
            "HOURHAND_WORKER_SHELL": "true",
            "HOURHAND_WORKER_DRAIN": "0s",
        }

    def command(self, *arguments: str) -> str:
        return command(self.aviary, self.folder, self.settings, *arguments)

    def ask(
        self, method: str, path: str, *, kind: str = "answer", shows: bool = False, **options: Any
    ) -> httpx2.Response:
        """A request; `shows`: this answer is documented to have a secret in it, so only its headers are heard."""
        headers = {"Authorization": f"Bearer {self.token}", "Hourhand-Tenant": "acme"}
        headers |= options.pop("headers", {})
        answer = self.client.request(method, path, headers=headers, **options)
        place = f"{method} {path.partition('?')[0][:40]}: {answer.status_code}"
        if not shows:
            self.aviary.hear(f"{kind} to {place}", answer.content)
        self.aviary.hear(f"headers of {place}", str(answer.headers.multi_items()))
        return answer

    def make(self, path: str, document: Any, *, shows: bool = False) -> Any:
        made = self.ask("POST", f"{PREFIX}{path}", json=document, shows=shows)
        assert made.status_code in (200, 201, 202), made.text
        return made.json()

    def job(self, name: str, target: dict[str, Any]) -> str:
        """A job with secrets, run at once; the run's id."""
        password = self.aviary.secret(f"payload of {name}", may_be_in=(*OF_JOBS, "output"))
        document = {"name": name, "every": "1h", "target": target, "payload": {"password": password}}
        job_id = self.make("/jobs", {**document, "retry": {"max": 0}})["job_id"]
        self.ids |= {"job_id": job_id, name: job_id}
        return str(self.make(f"/jobs/{job_id}/run", {})["run_id"])

    def until(self, run_id: str, status: str) -> None:
        place = f"{PREFIX}/runs/{run_id}"
        wait_until(
            f"{run_id} {status}", lambda: self.ask("GET", place).json()["status"] == status, DEADLINE_S
        )


@pytest.fixture
def system(
    tmp_path: Path, own_postgres: Callable[..., PostgresServer], own_redis: Callable[..., RedisServer]
) -> System:
    return System(tmp_path, own_postgres(), own_redis())


def test_no_secret_is_told_anywhere(system: System) -> None:
    assert "4 steps" in system.command("migrate", "up")
    root = ("token", "create", "root", "--role", "admin", "--tenant", "*", "--direct", "-q")
    system.token = system.command(*root).strip()
    system.aviary.secret("first token", system.token.rpartition("_")[2])
    with (
        system.receiver.listening(),
        process(system.aviary, system.folder, system.settings) as (system.pid, address),
        httpx2.Client(base_url=address, trust_env=False, timeout=DEADLINE_S) as system.client,
    ):
        with following_events(system):
            be_known(system)
            succeed(system)
            fail(system)
        be_refused(system)
        read_everything(system)
        ask_the_command_line(system)
        look_at_titles(system)
        search_the_database(system)
        break_down(system)
    assert_everything_was_heard(system.aviary)
    assert not system.aviary.sung(), "\n".join(system.aviary.sung())


@contextlib.contextmanager
def following_events(system: System) -> Iterator[None]:
    """Everything that happens meanwhile, as the stream tells it."""
    headers = {"Authorization": f"Bearer {system.token}", "Hourhand-Tenant": "acme"}
    heard: list[str] = []
    with system.client.stream("GET", f"{PREFIX}/events", headers=headers) as stream:
        assert stream.status_code == 200

        def follow() -> None:
            with contextlib.suppress(httpx2.TransportError, httpx2.StreamError):
                for line in stream.iter_lines():
                    heard.append(line)
                    if "webhook-is-last" in line:
                        return

        thread = threading.Thread(target=follow)
        thread.start()
        yield
        system.make("/jobs", {"name": "webhook-is-last", "every": "1h", "target": "https://example.com/"})
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    system.aviary.hear("events", "\n".join(heard))


def be_known(system: System) -> None:
    """By tokens that the API makes, by a JWT, and by the cookie of the page."""
    secret = system.aviary.secret
    wish = {"name": "ci", "role": "editor", "tenant": "acme"}
    for key in ("once", "once", "again"):
        made = system.ask("POST", f"{PREFIX}/tokens", json=wish, shows=True, headers={"Idempotency-Key": key})
        if made.status_code == 201:
            secret(f"token {key}", made.json()["token"].rpartition("_")[2])
            system.ids["token"], system.ids["token_id"] = made.json()["token"], made.json()["token_id"]
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 600, "sub": "eva", "role": "admin"}
    person = jwt.encode({**claims, "tenant": "acme"}, system.settings["HOURHAND_AUTH_SECRET"], "HS256")
    for part in person.split(".")[1:]:
        secret("part of a JWT", part)
    assert _as(system, person, "/whoami").json()["subject"] == "eva"
    origin = str(system.client.base_url).rstrip("/")
    form = {"token": system.ids["token"], "next": "/jobs"}
    came = system.client.post("/login", data=form, headers={"Origin": origin})
    assert came.status_code == 303
    [(name, cookie)] = system.client.cookies.items()
    system.client.cookies.clear()
    seen = system.client.get("/jobs", headers={"Cookie": f"{name}={cookie}", "Accept": "text/html"})
    assert seen.status_code == 200
    system.aviary.hear("page by cookie", seen.content + str(seen.headers).encode())


def succeed(system: System) -> None:
    """Targets that take what they get, one that reports later, a command, and a webhook that is told."""
    secret, host = system.aviary.secret, system.receiver.host
    hook = system.make("/webhooks", {"url": f"http://{host}/204"}, shows=True)
    secret("webhook", hook["secret"].removeprefix("whsec_"), may_be_in=("table",))
    system.ids["webhook_id"] = hook["webhook_id"]
    place = f"/webhooks/{hook['webhook_id']}"
    rotated = system.make(f"{place}/rotate", {}, shows=True)
    secret("webhook, rotated", rotated["secret"].removeprefix("whsec_"), may_be_in=("table",))
    system.ids["event_id"] = system.make(f"{place}/test", {})["event_id"]
    run_id = system.job("taken", _http(system, f"http://ann:{{}}@{host}/200"))
    system.aviary.hear("call to a target", str(system.receiver.call("/200")))
    system.until(run_id, "SUCCEEDED")
    run_id = system.job("reports", _http(system, f"http://ann:{{}}@{host}/202"))
    called = system.receiver.call("/202")
    token = secret("report token", called["Hourhand-Report-Token"], may_be_in=("call",))
    system.aviary.hear("call to a target", str(called))
    report = {"attempt": int(called["Hourhand-Attempt"]), "outcome": "succeeded", "result": {"rows": 1}}
    for wrong in ({"attempt": "x"}, {"token": token}, {"result": {"rows": [token] * 2_000}}):
        _report(system, run_id, token, {**report, **wrong})
    assert _report(system, run_id, token, report).status_code == 200
    system.until(run_id, "SUCCEEDED")
    system.until(system.job("command", _shell(system, "true")), "SUCCEEDED")


def fail(system: System) -> None:
    """Targets that refuse, that are not there, that may not be called; a webhook that is not taken."""
    host = system.receiver.host
    broken = system.make("/webhooks", {"url": f"http://{host}/500"}, shows=True)
    system.aviary.secret("webhook, broken", broken["secret"].removeprefix("whsec_"), may_be_in=("table",))
    system.make(f"/webhooks/{broken['webhook_id']}/test", {})
    system.receiver.call("/500")
    targets = {
        "refuses": _http(system, f"http://ann:{{}}@{host}/400"),
        "nobody": _http(system, NOWHERE),
        "not-allowed": _http(system, "http://ann:{}@10.0.0.1/"),
        "no-name": _http(system, "http://ann:{}@no.such.name.invalid/"),
        "failing": _shell(system, "false"),
    }
    for name, target in targets.items():
        system.ids["run_id"] = system.job(name, target)
        system.until(system.ids["run_id"], "FAILED")
    job = system.ids["refuses"]
    changed = {"target": _http(system, NOWHERE)}
    system.ask("PATCH", f"{PREFIX}/jobs/{job}", kind="document", json=changed)
    system.ask("POST", f"{PREFIX}/jobs/{job}/pause", kind="document", json={"note": "INC-42"})
    asked = {"job": job, "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z", "force": True}
    system.ids["backfill_id"] = system.make("/backfills", asked)["backfill_id"]
    paused = {"action": "resume", "filter": {"tag": "none"}}
    system.ids["operation_id"] = system.make("/operations", paused)["operation_id"]


def be_refused(system: System) -> None:
    """Secrets in wrong places, and wrong secrets."""
    secret = system.aviary.secret
    forged = jwt.encode({"sub": "eve", "role": "admin"}, secret("key of a forger"), "HS256")
    guessed = f"hh_{'0' * 13}_{secret('guessed token', secrets.token_hex(32))}"
    for token in (forged, f"{forged}x", guessed, system.ids["token"] + "0", secret("no token at all")):
        assert _as(system, token, "/jobs").status_code == 401
    secret("part of a forged JWT", forged.split(".")[2])
    wrong = {"token": secret("wrong login"), "next": "/"}
    origin = str(system.client.base_url).rstrip("/")
    system.aviary.hear("login", system.client.post("/login", data=wrong, headers={"Origin": origin}).content)
    token = secret("token in an address")
    for path in (f"/jobs?token={token}", f"/events?access_token={token}", f"/runs?job_id=x&token={token}"):
        assert system.ask("GET", PREFIX + path).status_code == 422
    bad = secret("value that is wrong")
    for document in _wrong_documents(bad):
        answer = system.ask("POST", f"{PREFIX}/jobs", json=document)
        assert answer.status_code == 422, f"{document}: {answer.text}"
        bulk = system.ask("POST", f"{PREFIX}/jobs/bulk", json=[document])
        assert bulk.json()["failed"] == 1
    for body in (f'{{"payload": "{bad}', f'{{"payload": "{bad}", "payload": 1}}', f'["{bad}", NaN]'):
        headers = {"Content-Type": "application/json"}
        assert system.ask("POST", f"{PREFIX}/jobs", content=body, headers=headers).status_code in (400, 422)
    for hook in (f"https://ann:{bad}@example.com/", f"ftp://ann:{bad}@example.com/"):
        assert system.ask("POST", f"{PREFIX}/webhooks", json={"url": hook}).status_code == 422
    assert system.ask("DELETE", f"{PREFIX}/tokens/{system.ids['token_id']}").status_code == 200


def read_everything(system: System) -> None:
    """Every route that reads, as those who run the system see it; under each form that a page has."""
    system.ids |= {"tenant": "acme", "rest": f"{system.ids['job_id']}/edit", "version": page().tag}
    asked = {"job_strips": {"job_id": system.ids["job_id"]}, "resolve_job": {"ref": "taken"}}
    for prefix, router in ((PREFIX, API), ("", PROCESS), ("", PAGE)):
        for route in router.routes:
            assert isinstance(route, APIRoute)
            if "GET" not in route.methods or route.name in FOLLOWED:
                continue
            kind = "document" if route.name in TELL_DOCUMENTS else "answer"
            for path in _filled(route.path, system.ids):
                for accepted in ("application/json", "text/html") if router is PAGE else ("*/*",):
                    options: dict[str, Any] = {"headers": {"Accept": accepted}}
                    options["params"] = asked.get(route.name, {})
                    answer = system.ask("GET", prefix + path, kind=kind, **options)
                    readable = router is PAGE or answer.status_code == 200
                    assert readable, f"{route.name} {path}: {answer.text}"


def ask_the_command_line(system: System) -> None:
    """What settings there are and how the servers are, by those who have them; and what people see of a job."""
    assert "auth.secret" in system.command("check")
    assert "signing_secret" in system.command("check", "--json")
    assert "schema 4" in system.command("doctor")
    system.settings |= {"HOURHAND_URL": str(system.client.base_url), "HOURHAND_TOKEN": system.token}
    assert "taken" in system.command("jobs", "show", "taken", "--tenant", "acme")
    files = [{"key": "filed", "every": "1h", "target": _http(system, NOWHERE)} for _ in range(2)]
    for job in files:
        (system.folder / "jobs.json").write_text(json.dumps({"set": "filed", "jobs": [job]}))
        assert "pruned 0" in system.command("apply", "-f", "jobs.json", "--tenant", "acme")


def look_at_titles(system: System) -> None:
    """Of the process and of those that it started."""
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = re.search(r"^PPid:\s+(\d+)", (place / "status").read_text(), re.MULTILINE)
            if system.pid in (int(place.name), int(parent[1]) if parent else 0):
                system.aviary.hear("title of a process", (place / "cmdline").read_bytes())


def search_the_database(system: System) -> None:
    """What a backup would have: jobs and what signs for webhooks, but nothing that lets anybody in."""
    names = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    tables = [row[0] for row in system.postgres.query(names, database=system.database)]
    assert {"jobs", "tokens", "webhooks"} <= set(tables)
    for name in tables:
        rows = system.postgres.query(f'SELECT t::text FROM "{name}" t', database=system.database)
        system.aviary.hear(f"table {name}", "\n".join(row[0] for row in rows))


def break_down(system: System) -> None:
    """The database refuses a row and shows it in its words, then Redis is away, then the database."""
    refusing = "ALTER TABLE webhooks ADD CONSTRAINT never CHECK (false) NOT VALID"
    system.postgres.execute(refusing, database=system.database)
    place = f"{PREFIX}/webhooks/{system.ids['webhook_id']}"
    assert system.ask("PATCH", place, json={"description": "x"}).status_code >= 500
    system.redis.kill()
    assert system.ask("GET", f"{PREFIX}/jobs", kind="document").status_code == 200
    system.postgres.kill()
    late = {"name": "late", "every": "1h", "target": _http(system, NOWHERE)}
    assert system.ask("POST", f"{PREFIX}/jobs", json=late).status_code == 503
    for path in ("/jobs", "/readyz", "/whoami", "/overview"):
        system.ask("GET", PREFIX + path)
    log = system.folder / "stderr"
    wait_until("a line that it tries again", lambda: "trying again" in log.read_text(), DEADLINE_S)


def assert_everything_was_heard(aviary: Aviary) -> None:
    """Else nothing found would mean nothing."""
    kinds = {place.split()[0] for place in aviary.places()}
    assert kinds >= {
        "log",
        "answer",
        "document",
        "headers",
        "events",
        "page",
        "call",
        "table",
        "output",
        "title",
    }
    assert {"log on stdout", "log on stderr", "answer to GET /metrics: 200"} <= aviary.places()
    assert len(aviary.places()) > 80


def _as(system: System, token: str, path: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return system.ask("GET", PREFIX + path, headers=headers)


def _report(system: System, run_id: str, token: str, report: dict[str, Any]) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return system.ask("POST", f"{PREFIX}/runs/{run_id}/report", headers=headers, json=report)


def _http(system: System, url: str) -> dict[str, Any]:
    password = system.aviary.secret("password of a target", may_be_in=OF_JOBS)
    header = system.aviary.secret("header of a target", may_be_in=OF_JOBS)
    return {"type": "http", "url": url.format(password), "headers": {"X-Api-Key": f"Bearer {header}"}}


def _shell(system: System, word: str) -> dict[str, Any]:
    value = system.aviary.secret("environment of a command", may_be_in=OF_JOBS)
    return {"type": "shell", "argv": [word], "env": {"API_KEY": value}}


def _wrong_documents(bad: str) -> Iterator[dict[str, Any]]:
    """Jobs that are refused, with a secret in what is wrong or beside it."""
    good = {"name": "x", "cron": "0 9 * * *", "target": "https://example.com/"}
    yield {**good, "token": bad}
    yield {**good, "cron": 5, "payload": {"password": bad}}
    for url in (
        "ftp://ann:{}@a.example/",
        "https://ann:{}@a b/",
        "https://ann:{}@a:99999/",
        "https://ann:{}@[::1/",
    ):
        yield {**good, "target": url.format(bad)}
    for headers in (bad, {"A": {"x": bad}}, {"A": f"{bad}\n"}, {"Host": bad}, {"A": bad, "a": bad}):
        yield {**good, "target": {"type": "http", "url": "https://example.com/", "headers": headers}}
    for env in (bad, {"KEY": [bad]}, {"A=B": bad}, {"KEY": f"{bad}\0"}):
        yield {**good, "target": {"type": "shell", "argv": ["true"], "env": env}}


def _filled(path: str, ids: dict[str, str]) -> Iterator[str]:
    """A route's path with ids of ours in it; an asset's with each name that there is."""
    names = list(page().assets) if "{name:path}" in path else [""]
    for name in names:
        yield re.sub(r"\{(\w+)(?::path)?\}", lambda found: {**ids, "name": name}[found[1]], path)  # noqa: B023
