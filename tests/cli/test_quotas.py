"""`quota` against a running server: shown, set without forgetting what was set before, listed."""

import pytest

pytestmark = pytest.mark.usefixtures("server")

TARGET = ("--python", "functions_for_cli:succeed")


def create(hourhand, *options: str):
    return hourhand("jobs", "create", "x", "--cron", "0 9 * * *", *TARGET, *options)


def test_a_quota_is_set_shown_and_kept_to(hourhand) -> None:
    tried = hourhand("quota", "set", "acme", "--jobs", "1", "--dry-run")
    assert "the quota of acme would be set" in tried.err
    assert hourhand("quota", "show", "--tenant", "acme", "--json").json["own"]["jobs"] is None
    assert hourhand("quota", "set", "acme", "--jobs", "1").code == 0
    done = hourhand("quota", "set", "acme", "--runs-per-minute", "none", "--json")
    assert (done.json["own"]["jobs"], done.json["own"]["runs_per_minute"]) == (1, 0), (
        "what is not named stays"
    )
    assert create(hourhand, "--tenant", "acme").code == 0
    shown = hourhand("quota", "show", "--tenant", "acme")
    assert "jobs         1 of 1" in shown.out
    refused = create(hourhand, "--tenant", "acme")
    assert refused.code == 1
    assert "the tenant may have 1 jobs; it has 1" in refused.err
    assert hourhand("quota", "set", "acme", "--jobs", "default", "--json").json["own"]["jobs"] is None
    assert create(hourhand, "--tenant", "acme").code == 0
    assert hourhand("quota", "set", "acme", "--history-days", "7").code == 0
    assert "history      7 days" in hourhand("quota", "show", "--tenant", "acme").out
    assert "acme" in hourhand("quota", "list", "-q").out.split()
    assert "2 of any number" in hourhand("quota", "list").out


@pytest.mark.parametrize("value", ["many", "-1", "1.5"])
def test_what_is_no_limit(hourhand, value: str) -> None:
    wrong = hourhand("quota", "set", "acme", f"--jobs={value}")
    assert wrong.code == 2
    assert "a whole number, none or default" in wrong.err


def test_nothing_to_set(hourhand) -> None:
    assert hourhand("quota", "set", "acme").code == 2
