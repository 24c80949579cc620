"""`api`, `scheduler`, `worker` and `migrate`: settings from flags, refusals, and what is told about a schema."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hourhand.__main__ import Wired
from hourhand.cli.launch import SchemaState
from hourhand.config import Settings, load
from hourhand.config.settings import TelemetrySettings
from hourhand.errors import CannotStart, Unavailable
from hourhand.wiring.cluster import _own_listener

URL = "postgres://ann:canary@127.0.0.1/x"
PARTS = ("api", "scheduler", "worker")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def state(version: int, pending: tuple[str, ...] = (), newest: int = 3) -> SchemaState:
    return SchemaState(database="postgres://db/x", version=version, newest=newest, pending=pending)


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_started_with_the_settings_and_ends_with_its_code(
    hourhand, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", URL)
    seen: list[Settings] = []

    def start(settings: Settings) -> int:
        seen.append(settings)
        return 5

    done = hourhand(part, **{part: start})
    assert (done.code, done.out, done.err) == (5, "", "")
    assert seen[0].store.url == URL


def test_flags_of_a_worker_become_settings(hourhand) -> None:
    seen: list[Settings] = []
    arguments = ["--import", "a.b", "--import", "c", "--pool", "gpu", "--pool", "slow"]
    arguments += ["--concurrency", "7", "--processes", "3", "--drain", "1m30s", "--allow-shell"]
    done = hourhand("worker", *arguments, worker=lambda settings: seen.append(settings) or 0)
    assert done.code == 0
    worker = seen[0].worker
    assert (worker.import_modules, worker.pools) == (("a.b", "c"), ("gpu", "slow"))
    assert (worker.concurrency, worker.processes, worker.drain_us) == (7, 3, 90_000_000)
    assert worker.shell


def test_flags_of_an_api_become_settings(hourhand) -> None:
    seen: list[str] = []

    def start(settings: Settings) -> int:
        seen.append(settings.server.listen)
        return 0

    hourhand("api", "--port", "9", api=start)
    hourhand("api", "--listen", "[::1]:8", api=start)
    assert seen == ["127.0.0.1:9", "[::1]:8"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["api", "--listen", "0.0.0.0:7070"], 1, "no authentication"),
        (["api", "--port", "1", "--listen", "127.0.0.1:1"], 2, "either --port or --listen"),
        (["worker", "--processes", "65"], 1, "--processes: worker.processes: expected a whole number"),
        (["worker", "--drain", "soon"], 1, "--drain: worker.drain: expected a duration"),
        (["worker", "--pool", ""], 1, "--pool: worker.pools"),
        (["scheduler", "--config", "absent.toml"], 1, "there is no such file"),
        (["migrate", "status", "--config", "absent.toml"], 1, "there is no such file"),
    ],
)
def test_wrong_settings_start_nothing(hourhand, arguments: list[str], code: int, words: str) -> None:
    done = hourhand(*arguments)
    assert done.code == code
    assert words in done.err


@pytest.mark.parametrize("arguments", [["api"], ["scheduler"], ["worker"], ["worker", "--processes", "2"]])
def test_on_a_file_a_part_of_a_cluster_is_refused(hourhand, arguments: list[str]) -> None:
    part = arguments[0]
    done = hourhand(*arguments, **{part: getattr(Wired(), part)})
    assert done.code == 1
    for words in (
        f"`hourhand {part}`",
        "sqlite:///./hourhand.db",
        "hourhand up",
        "HOURHAND_STORE_URL",
        "migrate up",
    ):
        assert words in done.err


@pytest.mark.parametrize("verb", ["status", "up"])
def test_a_file_has_nothing_to_migrate(hourhand, verb: str) -> None:
    done = hourhand("migrate", verb, migrations=Wired().migrations, migrate=Wired().migrate)
    assert done.code == 1
    assert "sqlite:///./hourhand.db" in done.err


@pytest.mark.parametrize(
    ("found", "code", "words"),
    [
        ([state(3)], 0, "up to date"),
        ([state(1, ("0002_more", "0003_less"))], 8, "hourhand migrate up"),
        ([state(0, ("0001_begin",), newest=1)], 8, "pending"),
        ([state(4)], 8, "newer than this program"),
        ([state(3), state(2, ("0003_less",))], 8, "pending"),
    ],
)
def test_status_says_how_far_each_database_is(
    hourhand, found: list[SchemaState], code: int, words: str
) -> None:
    done = hourhand("migrate", "status", migrations=lambda settings: found)
    assert done.code == code
    assert words in done.out + done.err
    as_json = hourhand("migrate", "status", "--json", migrations=lambda settings: found)
    assert as_json.code == code
    assert [row["version"] for row in as_json.json["databases"]] == [one.version for one in found]
    assert as_json.json["databases"][0]["pending"] == list(found[0].pending)


def test_up_tells_each_step(hourhand) -> None:
    def migrate(settings: Settings, applied: Callable[[str, str], None]) -> None:
        applied("postgres://db/x", "0001_begin")
        applied("postgres://db/x", "0002_more")

    done = hourhand("migrate", "up", migrate=migrate)
    assert (done.code, done.out) == (0, "2 steps\n")
    assert "postgres://db/x: 0001_begin\n" in done.err
    document = hourhand("migrate", "up", "--json", migrate=migrate).json
    assert [step["applied"] for step in document["applied"]] == ["0001_begin", "0002_more"]
    assert "nothing to do" in hourhand("migrate", "up", migrate=lambda settings, applied: None).out


@pytest.mark.parametrize(
    "arguments",
    [("--dry-run", "migrate", "up"), ("migrate", "--dry-run", "up"), ("migrate", "up", "--dry-run")],
)
def test_a_dry_run_of_up_only_lists_what_is_pending(hourhand, arguments: tuple[str, ...]) -> None:
    found = [state(3), state(1, ("0002_more", "0003_less"))]
    done = hourhand(*arguments, migrations=lambda settings: found)  # to migrate would fail
    assert (done.code, done.out) == (0, "postgres://db/x: 0002_more\npostgres://db/x: 0003_less\n")
    assert "would make 2 steps" in done.err
    document = hourhand(*arguments, "--json", migrations=lambda settings: found).json
    assert [one["step"] for one in document["pending"]] == ["0002_more", "0003_less"]
    assert (document["applied"], document["dry_run"]) == ([], True)
    assert "nothing to do" in hourhand(*arguments, migrations=lambda settings: [state(3)]).err
    refused = hourhand(*arguments, migrations=lambda settings: [state(4)])
    assert refused.code == 1
    assert "newer than this program" in refused.err


@pytest.mark.parametrize(("error", "code"), [(Unavailable("no answer"), 6), (CannotStart("foreign"), 1)])
def test_what_fails_says_why(hourhand, error: Exception, code: int) -> None:
    def fails(*arguments: object) -> None:
        raise error

    for verb in ("status", "up"):
        done = hourhand("migrate", verb, migrations=fails, migrate=fails)
        assert done.code == code
        assert str(error) in done.err


def test_a_server_that_does_not_answer_is_named_without_its_password(
    hourhand, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", f"postgres://ann:canary@127.0.0.1:{unused_tcp_port}/x")
    for verb in ("status", "up"):
        done = hourhand("migrate", verb, migrations=Wired().migrations, migrate=Wired().migrate)
        assert done.code == 6
        assert f"postgres://ann:***@127.0.0.1:{unused_tcp_port}/x" in done.err
        assert "canary" not in done.out + done.err


@pytest.mark.parametrize("url", ["postgres://ann:ca/nary@[::1/x", "postgres://ann:canary@h:port/x"])
@pytest.mark.parametrize("arguments", [["api", "--port", "0"], ["scheduler"], ["worker"], ["migrate", "up"]])
def test_what_is_no_url_is_refused_at_once(
    hourhand, monkeypatch: pytest.MonkeyPatch, url: str, arguments: list[str]
) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", url)
    wired = Wired()
    done = hourhand(
        *arguments, api=wired.api, scheduler=wired.scheduler, worker=wired.worker, migrate=wired.migrate
    )
    assert (done.code, done.out) == (1, "")
    assert "expected a URL such as postgres://" in done.err
    assert "nary" not in done.err


@pytest.mark.parametrize(
    "url",
    [
        "postgre://ann:canary@h/d",
        "ann:canary@127.0.0.1/d",
        "mysql://ann:canary@h/d",
        "postgres://a:can@ary@h/d",
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_command_shows_the_password_of_what_is_no_store(
    hourhand, monkeypatch: pytest.MonkeyPatch, url: str, form: list[str]
) -> None:
    monkeypatch.setenv("HOURHAND_STORE_URL", url)
    checked = hourhand("check", *form)
    assert checked.code == 8
    loaded = load(environment={"HOURHAND_STORE_URL": url}, folder=Path(), system_file=Path("absent"))
    (finding,) = loaded.findings
    assert finding.message in checked.out
    for arguments in (["up"], ["api"], ["scheduler"], ["worker"], ["migrate", "status"], ["migrate", "up"]):
        done = hourhand(*arguments, *form)
        assert (done.code, done.out) == (1, "")
        assert finding.message in done.err
        assert "hourhand up" not in done.err
        for shown in (done.err, checked.out, checked.err):
            assert "ary@" not in shown


@pytest.mark.parametrize(
    ("part", "setting", "words"),
    [
        ("scheduler", "HOURHAND_TELEMETRY_LISTEN", "telemetry.listen"),
        ("worker", "HOURHAND_TELEMETRY_LISTEN", "telemetry.listen"),
        ("api", "HOURHAND_SERVER_LISTEN", "--port"),
    ],
)
def test_a_taken_port_is_refused_by_the_name_of_its_setting(
    folder: Path, part: str, setting: str, words: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        environment = {**os.environ, "HOURHAND_STORE_URL": URL, setting: address}
        command = [sys.executable, "-m", "hourhand", part]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert f"cannot listen on {address}" in done.stderr
    assert [word in done.stderr for word in ("telemetry.listen", "--port")] == [
        word == words for word in ("telemetry.listen", "--port")
    ]


@pytest.mark.parametrize(
    ("listen", "second"),
    [("127.0.0.1:7181", "127.0.0.1:7182"), ("[::1]:7181", "[::1]:7182"), ("127.0.0.1:0", None), ("", None)],
)
def test_each_of_several_processes_listens_on_the_next_port(listen: str, second: str | None) -> None:
    settings = Settings(telemetry=TelemetrySettings(listen=listen))
    assert _own_listener(settings, 1).get("HOURHAND_TELEMETRY_LISTEN") == second


@pytest.mark.parametrize("part", [*PARTS, "migrate"])
def test_help_says_what_it_is_for(hourhand, part: str) -> None:
    done = hourhand(part, "--help")
    assert done.code == 0
    assert "cluster" in done.out
