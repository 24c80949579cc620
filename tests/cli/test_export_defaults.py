"""`export` for whoever may create nothing: what it leaves out is the server's default all the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hourhand as package
from hourhand.cli.files.defaults import Described, described
from hourhand.client import Client
from tests.cli.conftest import started
from tests.cli.test_tokens import CONFIG, first_token

SETTINGS = '\n[scheduler]\nmisfire_grace = "5m"\n\n[targets]\ntimeout = "10s"\n'
URL = "https://example.com"
DAILY = {"cron": "0 9 * * *", "set": "all"}
JOBS: list[dict[str, Any]] = [
    {**DAILY, "key": "plain", "target": URL},
    {**DAILY, "key": "as-built-in", "target": {"url": URL, "timeout": "30s"}, "misfire": {"grace": "1m"}},
    {**DAILY, "key": "zone", "target": {"url": URL, "method": "PUT"}, "tz": "Europe/Berlin"},
    {**DAILY, "key": "dst", "target": URL, "dst": {"gap": "skip"}, "retry": {"max": 5}},
    {"key": "shell", "set": "all", "every": "1h", "target": {"argv": ["a"], "success_codes": [0, 3]}},
    {"key": "python", "set": "all", "at": "2030-01-01T00:00:00Z", "target": {"function": "app.tasks:daily"}},
    {"key": "often", "set": "all", "every": "10s", "target": URL, "paused": True},
    {"key": "then", "set": "all", "after": ["plain"], "target": URL},
    {"key": "much-later", "set": "all", "after": ["plain"], "wait": "2h", "target": URL, "paused": True},
]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where a server runs whose operator changed defaults, and who may do what with the jobs of acme there."""
    folder = tmp_path_factory.mktemp("defaults")
    (folder / "hourhand.toml").write_text(CONFIG + SETTINGS)
    root = first_token(folder)
    with started(folder, "--allow-shell") as url, Client(url, token=root) as client:
        found = {"url": url, "root": root}
        for role in ("viewer", "operator", "editor"):
            found[role] = client.tokens.create(role, role=role, tenant="acme")["token"]
        with Client(url, token=found["editor"]) as editor:
            assert editor.jobs.apply(JOBS)["failed"] == 0
        yield found


@pytest.fixture
def as_role(monkeypatch: pytest.MonkeyPatch, tokens: dict[str, str]) -> Any:
    def become(role: str) -> None:
        monkeypatch.setenv("HOURHAND_URL", tokens["url"])
        monkeypatch.setenv("HOURHAND_TOKEN", tokens[role])

    return become


def check_unchanged(hourhand: Any, file: Path) -> None:
    plan = hourhand("plan", str(file), "--prune", "--exit-code")
    assert (plan.code, f"unchanged {len(JOBS)}," in plan.out) == (0, True), (file.read_text(), plan.out)


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_only_read(hourhand: Any, as_role: Any, tmp_path: Path, role: str) -> None:
    file = tmp_path / "jobs.yaml"
    as_role(role)
    done = hourhand("export", "-o", str(file))
    assert done.code == 0, done.err
    as_role("editor")
    check_unchanged(hourhand, file)
    short = hourhand("export", "-o", str(file))
    assert short.code == 0
    check_unchanged(hourhand, file)
    assert "- key: plain\n  cron: 0 9 * * *\n  target: https://example.com\n-" in file.read_text()


@pytest.mark.parametrize("limit", ["jobs", "document_bytes", "runs_per_minute"])
def test_a_tenant_at_its_quota(
    hourhand: Any, as_role: Any, tokens: dict[str, str], tmp_path: Path, limit: str
) -> None:
    file = tmp_path / "jobs.yaml"
    as_role("editor")
    with Client(tokens["url"], token=tokens["root"]) as client:
        client.system.set_quota("acme", **{limit: 1})
        try:
            done = hourhand("export", "-o", str(file))
        finally:
            client.system.set_quota("acme")
    assert done.code == 0, done.err
    check_unchanged(hourhand, file)


def test_only_what_nobody_knows_is_written_out(hourhand: Any, as_role: Any) -> None:
    as_role("viewer")
    [plain] = [one for one in hourhand("export", "--json").json if one["key"] == "plain"]
    assert plain == {
        "key": "plain",
        "set": "all",
        "cron": "0 9 * * *",
        "target": {"type": "http", "url": URL, "timeout": "10s"},
        "misfire": {"grace": "5m"},
    }


def test_a_server_of_another_version_is_taken_to_have_no_defaults() -> None:
    assert package.__version__ != "99.0.0"
    assert described({"info": {"version": "99.0.0"}, "components": {}}) == Described()
