"""`operations` against a running server: counted first, asked, watched, cancelled."""

import pytest

pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def tag(hourhand, request: pytest.FixtureRequest) -> str:
    word = request.node.name
    for number in range(3):
        made = ["--cron", "0 * * * *", "--python", "functions_for_cli:succeed", "--tag", word, "-q"]
        done = hourhand("jobs", "create", f"{word}-{number}", *made)
        assert done.code == 0, done.err
    return word


def test_one_is_counted_asked_for_and_waited_for(hourhand, tag: str) -> None:
    chosen = ["--filter", f"tag={tag}"]
    tried = hourhand("operations", "create", "pause", *chosen, "--dry-run")
    assert (tried.code, tried.out) == (0, "would pause 3 jobs\n")
    unasked = hourhand("operations", "create", "pause", *chosen)
    assert (unasked.code, "Pause 3 jobs?" in unasked.err) == (2, True)
    done = hourhand("operations", "create", "pause", *chosen, "-y", "--wait", "--timeout", "60s", "--json")
    assert done.code == 0, done.err
    assert (done.json["state"], done.json["done"]) == ("done", 3)
    states = [job["state"] for job in hourhand("jobs", "list", "--tag", tag, "--json").json["data"]]
    assert states == ["paused"] * 3
    shown = hourhand("operations", "show", done.json["operation_id"]).out
    assert f"filter       tag={tag}" in shown
    assert "done         3 of 3" in shown
    assert done.json["operation_id"] in hourhand("operations", "list", "-q").out.split()
    assert hourhand("operations", "cancel", done.json["operation_id"]).code == 5


def test_one_that_takes_long_is_cancelled(hourhand, tag: str) -> None:
    made = hourhand("operations", "create", "run", "--filter", f"tag={tag}", "--rate", "1/h", "-y", "-q")
    assert made.code == 0, made.err
    ended = hourhand("operations", "cancel", made.out.strip())
    assert "state        cancelled" in ended.out


def test_what_is_wrong_is_said(hourhand, tag: str) -> None:
    assert hourhand("operations", "create", "pause", "-y").code == 2
    assert hourhand("operations", "create", "pause", "--filter", "tag", "-y").code == 2
    assert hourhand("operations", "create", "explode", "--all", "-y").code == 2
    grown = hourhand("operations", "create", "delete", "--filter", f"tag={tag}", "--expect", "2", "-y")
    assert (grown.code, "more match than the 2" in grown.err) == (5, True)
    assert hourhand("operations", "show", "O-0000000000001").code == 3


def test_dead_letters_go_back_at_a_rate(hourhand, tag: str) -> None:
    target = ("--cron", "0 0 1 1 *", "--python", "functions_for_cli:give_up")
    created = hourhand("jobs", "create", f"{tag}-dead", *target, "-q").out.strip()
    assert hourhand("jobs", "run", created, "--wait").code == 7
    chosen = ("--filter", f"job={created}", "--rate", "50/s")
    assert hourhand("dlq", "requeue", *chosen, "--dry-run").out == "would requeue 1 dead letter\n"
    assert hourhand("dlq", "requeue", created, "--rate", "1/s").code == 2
    assert hourhand("dlq", "requeue", "--all", "--rate", "1/s", "--downstream").code == 2
    done = hourhand("dlq", "discard", *chosen, "-y", "--wait", "--timeout", "60s", "--json")
    assert (done.code, done.json["done"], done.json["rate"]) == (0, 1, "50/s")
    assert hourhand("dlq", "list", "--filter", f"job={created}", "-q").out == ""
