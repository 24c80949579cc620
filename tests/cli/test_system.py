"""`up`, `check` and `version`: settings from flags, and what is told about them."""

from pathlib import Path

import pytest

import hourhand as package
from hourhand.config import Settings, UpOptions
from hourhand.errors import CannotStart


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def started(hourhand):
    """What `up` would start with these arguments."""

    def started(*arguments: str) -> tuple[Settings, UpOptions]:
        seen: list[tuple[Settings, UpOptions]] = []

        def start(settings: Settings, options: UpOptions) -> int:
            seen.append((settings, options))
            return 0

        done = hourhand("up", *arguments, up=start)
        assert (done.code, done.err) == (0, "")
        return seen[0]

    return started


def test_up_takes_its_defaults(started) -> None:
    assert started() == (Settings(), UpOptions(demo=True))


def test_flags_become_settings(started) -> None:
    settings, options = started(
        *("--port", "9", "--data", "x/y.db", "--import", "a.b", "--import", "c", "--concurrency", "7"),
        *("--no-demo", "--allow-shell", "--open"),
    )
    assert settings.worker.shell
    assert settings.server.listen == "127.0.0.1:9"
    assert settings.store.url == "sqlite:///x/y.db"
    assert settings.worker.import_modules == ("a.b", "c")
    assert settings.worker.concurrency == 7
    assert options == UpOptions(demo=False, open=True)


def test_an_absolute_file_has_four_slashes(started) -> None:
    assert started("--data", "/tmp/x.db")[0].store.url == "sqlite:////tmp/x.db"


def test_a_flag_goes_before_environment_and_file(started, folder: Path, monkeypatch) -> None:
    (folder / "hourhand.toml").write_text('[worker]\nconcurrency = 1\ndrain = "1s"\npools = ["p"]\n')
    monkeypatch.setenv("HOURHAND_WORKER_CONCURRENCY", "2")
    monkeypatch.setenv("HOURHAND_WORKER_DRAIN", "2s")
    worker = started("--concurrency", "3")[0].worker
    assert (worker.concurrency, worker.drain_us, worker.pools) == (3, 2_000_000, ("p",))


def test_the_exit_code_of_what_was_started_is_kept(hourhand) -> None:
    assert hourhand("up", up=lambda settings, options: 5).code == 5


def test_what_cannot_start_says_why(hourhand) -> None:
    def start(settings: Settings, options: UpOptions) -> int:
        raise CannotStart("the port 7070 is taken; choose another with --port")

    done = hourhand("up", up=start)
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: the port 7070 is taken; choose another with --port\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--listen", "0.0.0.0:7070"], 1, "no authentication"),
        (["--listen", "nonsense"], 1, "expected host:port"),
        (["--concurrency", "0"], 1, "--concurrency: worker.concurrency: expected a whole number"),
        (["--config", "absent.toml"], 1, "absent.toml: there is no such file"),
        (["--port", "70000"], 2, "--port"),
        (["--port", "1", "--listen", "127.0.0.1:1"], 2, "either --port or --listen"),
    ],
)
def test_wrong_settings_start_nothing(hourhand, arguments: list[str], code: int, words: str) -> None:
    done = hourhand("up", *arguments)
    assert done.code == code
    assert words in done.err


def test_check_says_every_value_and_where_it_came_from(hourhand, folder: Path, monkeypatch) -> None:
    (folder / "hourhand.toml").write_text('[scheduler]\nhorizon = "90s"\n')
    monkeypatch.setenv("HOURHAND_STORE_URL", "postgresql://ann:canary@db/x")
    done = hourhand("check")
    assert done.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in done.out.splitlines()}
    assert rows["scheduler.horizon"] == ["1m30s", "hourhand.toml:2"]
    assert rows["store.url"] == ["postgresql://ann:***@db/x", "HOURHAND_STORE_URL"]
    assert rows["scheduler.lead"] == ["2s", "default"]
    assert "canary" not in done.out + done.err


def test_check_ends_with_eight_on_findings(hourhand, folder: Path) -> None:
    (folder / "other.toml").write_text("[server]\nlistn = 1\n")
    done = hourhand("check", "other.toml")
    assert done.code == 8
    assert "finding: other.toml:2: unknown key of [server]: listn; did you mean listen?" in done.out
    document = hourhand("check", "other.toml", "--json").json
    assert document["findings"][0]["where"] == "other.toml:2"


def test_version_in_all_forms(hourhand) -> None:
    assert hourhand("version").out.startswith(f"hourhand {package.__version__} (Python 3.")
    assert hourhand("version", "-q").out == f"{package.__version__}\n"
    assert hourhand("version", "--json").json["version"] == package.__version__


def test_a_group_without_a_command_shows_what_there_is(hourhand) -> None:
    done = hourhand("jobs")
    assert done.code == 2
    assert "create" in done.err
    assert done.err.startswith("Usage: hourhand jobs")


def test_an_unknown_command_is_a_wrong_use(hourhand) -> None:
    assert hourhand("jbos").code == 2


def test_without_a_server_the_message_says_how_to_start_one(hourhand, unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    done = hourhand("jobs", "list", "--server", url)
    assert done.code == 6
    assert done.err == f"error: no hourhand answers at {url}; start one with `hourhand up`\n"
    problem = hourhand("--server", url, "--json", "jobs", "list").problem
    assert (problem["code"], problem["retryable"]) == ("unreachable", True)


def test_a_server_that_is_no_url_is_a_wrong_use(hourhand) -> None:
    assert hourhand("jobs", "list", "--server", "nonsense").code == 2


def test_the_version_alone(hourhand) -> None:
    done = hourhand("--version")
    assert (done.code, done.out, done.err) == (0, f"hourhand {package.__version__}\n", "")
