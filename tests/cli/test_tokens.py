"""`token` and `whoami` against real processes: the first token, what it opens, and that no secret stays behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hourhand.client import Client
from hourhand.clock import SystemClock
from hourhand.core.instant import SECOND_US
from hourhand.errors import WrongToken
from hourhand.services.tokens import REVOKED_WITHIN_US
from tests.cli.conftest import DEADLINE_S, Done, read_until, started

CONFIG = '[auth]\nmode = "tokens"\n\n[store]\nurl = "sqlite:///jobs.db"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hourhand.toml").write_text(CONFIG)
    return tmp_path


def alone(folder: Path, *arguments: str, **variables: str) -> Done:
    """A command in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
    done = subprocess.run(
        [sys.executable, "-m", "hourhand", *arguments],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def first_token(folder: Path, **variables: str) -> str:
    done = alone(
        folder, "token", "create", "root", "--role", "admin", "--tenant", "*", "--direct", "-q", **variables
    )
    assert done.code == 0, done.err
    [line] = done.out.splitlines()  # and nothing else, so that $(…) is the token
    assert line.startswith("hh_")
    return line


def test_from_the_first_token_to_a_revoked_one(
    folder: Path, hourhand, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = first_token(folder)
    with started(folder) as url:
        monkeypatch.setenv("HOURHAND_URL", url)
        refused = hourhand("jobs", "list")
        assert (refused.code, "needs a token" in refused.err) == (4, True)
        assert "HOURHAND_TOKEN" in refused.err
        busy = alone(folder, "token", "create", "more", "--direct")
        assert busy.code == 1
        assert "leave out --direct" in busy.err

        monkeypatch.setenv("HOURHAND_TOKEN", root)
        who = hourhand("whoami")
        assert who.code == 0
        assert "root:T-" in who.out
        assert "an API token" in who.out
        made = hourhand(
            "token", "create", "ci", "--role", "editor", "--tenant", "acme", "--expires", "90d", "--json"
        )
        assert made.code == 0, made.err
        ci = made.json
        assert (ci["role"], ci["tenant"], ci["created_by"].partition(":")[0]) == ("editor", "acme", "root")
        assert ci["expires_at"] is not None
        tried = hourhand("token", "create", "never", "--dry-run")
        assert tried.code == 0
        listed = hourhand("token", "list")
        assert ci["token_id"] in listed.out
        assert "never" not in listed.out
        assert hourhand("token", "list", "--tenant", "acme", "-q").out.split() == [ci["token_id"]]
        assert hourhand("token", "list", "--tenant", "*", "-q").out.split() != [ci["token_id"]]
        people = hourhand("token", "create", "ann")
        assert "not shown again" in people.err
        assert "hh_" in people.out

        monkeypatch.setenv("HOURHAND_TOKEN", ci["token"])
        assert hourhand("whoami", "--json").json["tenant"] == "acme"
        assert hourhand("token", "list").code == 4

        monkeypatch.setenv("HOURHAND_TOKEN", root)
        assert hourhand("token", "revoke", ci["token"], "-y").code == 2  # an id, never the text
        assert hourhand("token", "revoke", "T-0000000000000", "-y").code == 3
        gone = hourhand("token", "revoke", ci["token_id"], "-y")
        assert (gone.code, gone.out.split()[0]) == (0, "revoked")
        wait_until_refused(url, ci["token"])
        assert_nowhere(folder, (root, ci["token"]))


def test_two_processes_of_a_cluster_heed_a_revocation(folder: Path, migrated_url: str) -> None:
    variables = {"HOURHAND_STORE_URL": migrated_url, "HOURHAND_AUTH_MODE": "tokens"}
    root = first_token(folder, **variables)
    with ExitStack() as processes:
        urls = [processes.enter_context(api(folder / str(n), variables)) for n in (1, 2)]
        second = first_token(folder, **variables)  # a database may be in use
        for url in urls:
            with Client(url, token=second) as client:
                assert client.whoami()["role"] == "admin"
        with Client(urls[0], token=root) as client:
            mine = client.whoami()["subject"].partition(":")[2]
            [other] = [one for one in client.tokens.list() if one["token_id"] != mine]
            assert client.tokens.revoke(other)["state"] == "revoked"
        began_at = SystemClock().now()
        for url in urls:
            wait_until_refused(url, second)
        assert SystemClock().now() - began_at < REVOKED_WITHIN_US + 3 * SECOND_US
        assert_nowhere(folder, (root, second))


@contextmanager
def api(folder: Path, variables: dict[str, str]) -> Iterator[str]:
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOURHAND_")}
    with (
        (folder / "stderr").open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "hourhand", "api", "--port", "0"],
            cwd=folder,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield read_until(process.stdout.fileno(), rb"http://[\d.:]+", folder / "stderr").decode()
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


def wait_until_refused(url: str, token: str) -> None:
    deadline_at = SystemClock().now() + DEADLINE_S * SECOND_US
    with Client(url, token=token) as client:
        while SystemClock().now() < deadline_at:
            try:
                client.whoami()
            except WrongToken:
                return
    raise AssertionError("it still works")


def assert_nowhere(folder: Path, tokens: tuple[str, ...]) -> None:
    """No secret is in any file: the database, its log, what processes wrote."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        for token in tokens:
            assert token.rpartition("_")[2].encode() not in content, path.name


@pytest.mark.parametrize(
    "arguments",
    [
        ("token", "create", "ci", "--role", "king"),
        ("token", "create", "ci", "--expires", "soon"),
        ("token", "create", "ci", "--direct", "--server", "http://127.0.0.1:1"),
        ("token", "create", "ci", "--config", "x.toml"),
    ],
)
def test_what_cannot_be_meant_is_said_so(hourhand, arguments: tuple[str, ...]) -> None:
    assert hourhand(*arguments).code == 2
