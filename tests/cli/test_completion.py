"""Completion: what a line may go on with, and the scripts in the real shells."""

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from hourhand.cli.app import build
from hourhand.cli.completion.lines import place_of, words_of
from hourhand.client import Client
from tests.servers.machine import Unavailable, install_debian_package, skip_or_fail

MAIN: Any = typer.main.get_command(build(lambda settings, options: 0))  # type: ignore[arg-type]
DEADLINE_S = 60
JOB_ACTS = ("create", "update", "pause", "resume", "delete", "run", "skip", "unskip")
_numbers = itertools.count()


def found(*words: str) -> list[str]:
    return [text for text, _ in place_of(MAIN, ["hourhand", *words]).answers()]


def kind(*words: str) -> str | None:
    return place_of(MAIN, ["hourhand", *words]).kind


def test_commands_and_options() -> None:
    assert found("jo") == ["jobs"]
    assert {"jobs", "runs", "apply", "completion", "tail"} <= set(found(""))
    assert found("jobs", "cl") == ["clone"]
    assert found("--server", "http://x", "jobs", "pa") == ["pause"]
    assert found("--server=http://x", "jobs", "pa") == ["pause"]
    assert found("jobs", "create", "x", "--over") == ["--overlap"]
    assert found("jobs", "update", "x", "--no-pa") == ["--no-paused"]
    assert "--dry-run" in found("jobs", "pause", "x", "--")
    assert found("nothing", "like", "") == []
    assert "answer" not in found("completion", "")


def test_values() -> None:
    assert found("jobs", "create", "x", "--overlap", "q") == ["queue_one", "queue"]
    assert found("jobs", "create", "x", "--overlap=q") == ["--overlap=queue_one", "--overlap=queue"]
    assert found("dlq", "list", "--group-by", "") == ["error", "job"]
    assert found("jobs", "list", "--state", "") == ["active", "paused", "completed"]
    assert found("runs", "list", "--state", "R") == ["RUNNING", "RETRYING"]
    assert found("operations", "create", "re") == ["resume", "requeue"]
    assert found("deeds", "--action", "job.") == ["job.*", *(f"job.{act}" for act in JOB_ACTS)]
    assert found("tail", "--type=run.s") == ["--type=run.succeeded", "--type=run.skipped"]
    assert found("jobs", "create", "--note", "--ov") == []  # it is the value of --note
    assert (kind("jobs", "show", ""), kind("why", ""), kind("tail", "--job", "")) == ("job",) * 3
    assert (kind("runs", "show", ""), kind("dlq", "requeue", "a", "")) == ("run", "run")
    assert kind("backfill", "cancel", "") == "backfill"
    assert (kind("apply", ""), kind("apply", "-f", ""), kind("import", "crontab", "")) == ("file",) * 3
    assert kind("next", "x", "--tz", "") == "zone"
    assert (kind("jobs", "list", "--tag", ""), kind("export", "--set", "")) == ("tag", "set")
    assert (kind("jobs", "list", "--tenant", ""), kind("quota", "set", "")) == ("tenant",) * 2
    assert kind("jobs", "show", "a", "") is None  # one job only
    assert kind("jobs", "show", "--", "") == "job"


@pytest.mark.parametrize(
    ("line", "words", "quoted"),
    [
        ("hourhand jobs ", ["hourhand", "jobs", ""], False),
        ("hourhand 'a b", ["hourhand", "a b"], True),
        ("hourhand a\\ b", ["hourhand", "a b"], False),
        ('hourhand "a\\"b" c', ["hourhand", 'a"b', "c"], False),
        ("hourhand ''  ", ["hourhand", "", ""], False),
        ("", [""], False),
    ],
)
def test_words_of_a_line(line: str, words: list[str], quoted: bool) -> None:
    assert words_of(line) == (words, quoted)


@pytest.fixture
def jobs(server: str) -> tuple[str, str]:
    """A key and a name that only these tests have."""
    number = next(_numbers)
    key, name = f"team:app/complete-{os.getpid()}-{number}-end", f"spaced out {os.getpid()}-{number}-end"
    with Client(server) as client:
        for fields in ({"key": key}, {"name": name}):
            client.jobs.create({**fields, "cron": "0 9 * * *", "target": "https://example.com"})
    return key, name


def test_names_that_the_server_knows(hourhand: Any, server: str, jobs: tuple[str, str]) -> None:
    def answers(*words: str) -> list[str]:
        done = hourhand("completion", "answer", "--", "hourhand", *words)
        assert (done.code, done.err) == (0, "")
        return [line.partition("\t")[0] for line in done.out.splitlines()]

    key, name = jobs
    assert answers("jobs", "show", key[:-1]) == [key]
    assert answers("jobs", "show", name[:-1]) == [name]
    with Client(server) as client:
        job = client.jobs.resolve(key)
        function = {"type": "python", "function": "functions_for_cli:fail"}
        failing = client.jobs.create({"cron": "0 9 1 1 *", "target": function, "retry": {"max": 0}})
        run = client.runs.wait(client.jobs.run(failing)["run_id"])["run_id"]
    assert answers("jobs", "show", job["job_id"]) == [job["job_id"]]
    assert run in answers("runs", "show", run[:-3])
    assert run in answers("runs", "show", "")
    assert run in answers("dlq", "show", "")
    with Client(server) as client:
        token, gone = (client.tokens.create(word)["token_id"] for word in ("stays", "goes"))
        client.tokens.revoke(gone)
        hook = client.webhooks.create({"url": "https://example.com/hook"})["webhook_id"]
        operation = client.operations.create("pause", {"name": name})["operation_id"]
    assert (token in answers("token", "revoke", "T-"), gone in answers("token", "revoke", "")) == (
        True,
        False,
    )
    assert hook in answers("webhooks", "show", hook[:-1])
    assert operation in answers("operations", "cancel", "")
    with Client(server) as client:
        fields = {"key": f"{key}/in-a-set", "set": "completed-set", "tags": ["completed-tag"]}
        client.jobs.apply([{**fields, "cron": "0 9 * * *", "target": "https://example.com"}])
    assert answers("plan", "--set", "completed-s") == ["completed-set"]
    assert answers("jobs", "list", "--tag=completed-t") == ["--tag=completed-tag"]
    assert "default" in answers("jobs", "list", "--tenant", "")
    assert answers("next", "x", "--tz", "Europe/Berl") == ["Europe/Berlin"]
    assert answers("apply", "") == [":files"]


def test_silence_where_no_server_answers(hourhand: Any) -> None:
    for server in ("http://127.0.0.1:9", "nonsense"):
        done = hourhand("completion", "answer", "--", "hourhand", "--server", server, "jobs", "show", "")
        assert (done.code, done.out, done.err) == (0, "", "")


def shell(name: str) -> str:
    """A shell of this machine, or of Debian's package where root may install it."""
    path = shutil.which(name)
    if path is None:
        try:
            install_debian_package(name)
        except Unavailable as error:
            skip_or_fail(str(error))
        path = shutil.which(name)
    assert path is not None
    return path


@pytest.fixture
def in_shell(server: str, tmp_path: Path) -> Callable[..., list[str]]:
    def run(name: str, *arguments: str) -> list[str]:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("HOURHAND_")},
            "HOURHAND_URL": server,
            "HOME": str(tmp_path),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TERM": "dumb",
        }
        done = subprocess.run(
            [shell(name), *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


BASH = r"""
eval "$(hourhand completion bash)"
complete -p hourhand >/dev/null || exit 1
try() {
    COMP_LINE=$1; COMP_POINT=${#1}
    _hourhand hourhand "${1##* }" ""
    printf '%s\n' "${COMPREPLY[@]}"
}
try "$LINE"
"""


def test_bash(in_shell: Callable[..., list[str]], jobs: tuple[str, str], tmp_path: Path) -> None:
    key, name = jobs

    def completed(line: str) -> list[str]:
        return in_shell("bash", "--norc", "-c", f"LINE={shell_quoted(line)}\n{BASH}")

    assert completed("hourhand jobs sk") == ["skip"]
    assert completed("hourhand jobs create x --ov") == ["--overlap"]
    # bash itself breaks words at colons, so only what comes behind is to be given
    assert completed(f"hourhand jobs show {key[:-1]}") == [key.partition(":")[2]]
    assert completed("hourhand jobs show spaced\\ out\\ " + name.split()[-1][:-1]) == [
        name.replace(" ", "\\ ")
    ]
    (tmp_path / "jobs.yaml").touch()
    assert completed("hourhand apply job") == ["jobs.yaml"]


def shell_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_zsh(in_shell: Callable[..., list[str]], jobs: tuple[str, str]) -> None:
    """In a terminal of its own: a line, Tab, and what became of it, which the shell itself writes down."""
    key, _ = jobs

    def completed(line: str) -> str:
        script = f"""
zmodload zsh/zpty
zpty shell 'TERM=dumb zsh -f -i'
zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D; eval "$(hourhand completion zsh)"'
zpty -w shell 'kept() {{ print -r -- $BUFFER > line.txt; exit }}; zle -N kept; bindkey "^X" kept; print -n READ; print Y'
zpty -r -m shell out '*READY*'
zpty -w -n shell {shell_quoted(line)}$'\\t'
zpty -w -n shell $'\\x18'
while zpty -r shell out; do :; done
cat line.txt
"""
        return in_shell("zsh", "-f", "-c", script)[-1].rstrip()

    assert completed("hourhand jobs sk") == "hourhand jobs skip"
    assert completed("hourhand jobs create x --ov") == "hourhand jobs create x --overlap"
    assert completed(f"hourhand jobs show {key[:-1]}") == f"hourhand jobs show {key}"


def test_fish(in_shell: Callable[..., list[str]], jobs: tuple[str, str]) -> None:
    key, name = jobs

    def completed(line: str) -> list[str]:
        script = f"hourhand completion fish | source; complete -C {shell_quoted(line)}"
        return [one.partition("\t")[0] for one in in_shell("fish", "--no-config", "-c", script)]

    assert completed("hourhand jobs sk") == ["skip"]
    assert completed("hourhand jobs create x --ov") == ["--overlap"]
    assert completed(f"hourhand jobs show {key[:-1]}") == [key]
    assert (
        completed("hourhand jobs show spaced\\ out\\ " + name.split()[-1][:-1])[0].replace("\\", "") == name
    )
