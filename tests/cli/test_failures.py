"""How commands end when something answers that is not hourhand, or something happens that nobody foresaw."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.recorder import Recorder, recorder, short_pauses

GUIDES = Path(__file__).parents[2] / "docs" / "guides"

__all__ = ["recorder", "short_pauses"]

COMMANDS = ["jobs list", "whoami", "jobs show J-1", "jobs run J-1", "cluster status", "export", "tail"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'"x"', b"<html>"])
def test_what_is_not_hourhand_is_said_to_be_none(
    hourhand: Any, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, command: str, body: bytes
) -> None:
    recorder.replies = [(200, body, {})]
    monkeypatch.setenv("HOURHAND_URL", recorder.url)
    done = hourhand(*command.split())
    assert done.code == 6
    assert "is not hourhand" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", COMMANDS[:-1])
@pytest.mark.parametrize("body", [{"a": 1}, {"data": [1]}, {"data": None}, {"job_id": {}}])
def test_nothing_that_answers_makes_a_traceback(
    hourhand: Any, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, command: str, body: Any
) -> None:
    recorder.replies = [(200, body, {})]
    monkeypatch.setenv("HOURHAND_URL", recorder.url)
    done = hourhand(*command.split())
    assert done.code in (0, 1, 6)
    if done.code:
        assert done.err.startswith("error: ")
        assert hourhand(*command.split(), "--json").code in (0, 1, 6)


def test_what_nobody_foresaw_is_one_error_and_a_traceback_for_who_asks(
    hourhand: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*arguments: object) -> None:
        raise KeyError("a cause")

    done = hourhand("migrate", "status", migrations=breaks)
    assert (done.code, done.err.splitlines()[0]) == (1, "error: KeyError: 'a cause'")
    done = hourhand("migrate", "status", "--json", migrations=breaks)
    assert (done.code, done.problem["code"]) == (1, "internal")
    monkeypatch.setenv("HOURHAND_DEBUG", "1")
    with pytest.raises(KeyError):
        hourhand("migrate", "status", migrations=breaks)


def test_a_process_that_breaks_down_shows_where(hourhand: Any) -> None:
    def breaks(*arguments: object) -> None:
        raise KeyError("a cause")

    with pytest.raises(KeyError):
        hourhand("scheduler", scheduler=breaks)


def test_a_server_with_a_query_is_a_usage_error(hourhand: Any) -> None:
    done = hourhand("jobs", "list", "--server", "http://127.0.0.1:7373/?a=1")
    assert (done.code, "Traceback" in done.err) == (2, False)


def test_a_refusal_is_told_once(hourhand: Any, server: str) -> None:
    made = hourhand("jobs", "create", "once", "--cron", "0 9 * * *", "--url", "https://example.com", "-q")
    skipped = hourhand("jobs", "skip", made.out.strip(), "2030-01-01T00:00:01Z")
    assert (skipped.code, skipped.err) == (
        2,
        "error: at: expected a time at which the job fires, got 2030-01-01T00:00:01Z; "
        "the nearest: 2029-12-31T09:00:00Z and 2030-01-01T09:00:00Z\n",
    )
    done = hourhand("deeds", "--action", "nope")
    assert (done.code, done.err.count("\n"), done.err.count("expected an action")) == (2, 1, 1)
    assert done.err.endswith("webhook.update\n")


def test_a_tenant_that_is_none_is_looked_for_where_it_was_given(
    hourhand: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "expected a tenant of 1 to 63 small letters"
    assert hourhand("jobs", "list", "--tenant", "Bad Tenant").err.startswith(f"error: --tenant: {words}")
    assert hourhand("quota", "set", "A B", "--jobs", "1").err.startswith(f"error: TENANT: {words}")
    monkeypatch.setenv("HOURHAND_TENANT", "Bad Tenant")
    assert "HOURHAND_TENANT" in hourhand("jobs", "list").err


@pytest.mark.parametrize("form", [[], ["--json"], ["--jsonl"], ["-q"]])
@pytest.mark.parametrize("wrong", [("--tz", "Mars/Base"), ("--tenant", "a b"), ("--tenant", "ü")])
def test_what_is_asked_wrongly_is_a_usage_error_in_every_form(
    hourhand: Any, recorder: Recorder, form: list[str], wrong: tuple[str, str]
) -> None:
    recorder.replies = [(200, {"data": [], "next_cursor": None}, {})]
    assert hourhand("jobs", "list", "--server", recorder.url, *form).code == 0
    assert hourhand("jobs", "list", "--server", recorder.url, *wrong, *form).code == 2
    assert hourhand(*wrong, "jobs", "list", "--server", recorder.url, *form).code == 2


def test_both_guides_name_the_same_commands_that_find_something() -> None:
    rows = [
        line
        for name in ("cli", "operations")
        for line in (GUIDES / f"{name}.md").read_text("utf-8").splitlines()
        if line.startswith("| 8 |")
    ]
    assert len(rows) == 2
    assert rows[0] == rows[1]
