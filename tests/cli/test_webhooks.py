"""`webhooks` against a running server: made, tested, looked at, disabled, deleted."""

import pytest

pytestmark = pytest.mark.usefixtures("server")
NOWHERE = "http://127.0.0.1:9/hook"  # where nobody listens


@pytest.fixture
def webhook(hourhand) -> str:
    made = hourhand("webhooks", "create", NOWHERE, "--type", "job.*", "--description", "chat", "-q")
    assert made.code == 0, made.err
    return made.out.strip()


def test_one_is_made_and_its_secret_printed_once(hourhand) -> None:
    tried = hourhand("webhooks", "create", NOWHERE, "--dry-run")
    assert (tried.code, tried.err) == (0, f"would tell {NOWHERE} of *\n")
    made = hourhand("webhooks", "create", NOWHERE, "--json")
    assert made.json["secret"].startswith("whsec_")
    told = hourhand("webhooks", "create", NOWHERE)
    assert "secret       whsec_" in told.out
    shown = hourhand("webhooks", "show", made.json["webhook_id"])
    assert "whsec_" not in shown.out
    assert made.json["webhook_id"] in hourhand("webhooks", "list", "-q").out.split()
    assert hourhand("webhooks", "list").out.startswith("WEBHOOK")


def test_a_test_says_what_came_of_it(hourhand, webhook: str) -> None:
    done = hourhand("webhooks", "test", webhook)
    assert done.code == 7, done.err
    assert done.out.startswith("not taken: connection refused by 127.0.0.1:9")
    [delivery] = hourhand("webhooks", "deliveries", webhook, "--json").json["data"]
    assert (delivery["type"], delivery["state"]) == ("webhook.test", "pending")
    assert delivery["event_id"] in hourhand("webhooks", "deliveries", webhook, "--state", "pending").out
    assert hourhand("webhooks", "deliveries", webhook, "--state", "delivered").err == "nothing was told yet\n"
    assert hourhand("webhooks", "redeliver", webhook, delivery["event_id"]).code == 0
    assert "state        failing" in hourhand("webhooks", "show", webhook).out


def test_one_is_changed_disabled_and_enabled(hourhand, webhook: str) -> None:
    edited = hourhand("webhooks", "edit", webhook, "--type", "run.failed", "--tag", "billing")
    assert edited.code == 0, edited.err
    shown = hourhand("webhooks", "show", webhook, "--json").json
    assert (shown["types"], shown["tags"], shown["description"]) == (["run.failed"], ["billing"], "chat")
    assert "state        disabled" in hourhand("webhooks", "disable", webhook).out
    assert hourhand("webhooks", "test", webhook).code == 5
    assert "state        enabled" in hourhand("webhooks", "enable", webhook).out
    assert hourhand("webhooks", "rotate", webhook, "--json").json["secret"].startswith("whsec_")


def test_one_is_deleted_when_that_is_meant(hourhand, webhook: str) -> None:
    unasked = hourhand("webhooks", "delete", webhook)
    assert (unasked.code, "Add -y" in unasked.err) == (2, True)
    assert hourhand("webhooks", "delete", webhook, "-y").code == 0
    assert hourhand("webhooks", "show", webhook).code == 3


def test_what_is_wrong_is_said(hourhand) -> None:
    wrong = hourhand("webhooks", "create", NOWHERE, "--type", "run.exploded")
    assert (wrong.code, "run.exploded" in wrong.err) == (2, True)
    assert hourhand("webhooks", "show", "W-0000000000000").code == 3
