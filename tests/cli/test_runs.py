"""`jobs run --wait`, `runs` and `dlq` against a running server."""

import pytest

from tests.cli.recorder import HANG_UP, Recorder, recorder

__all__ = ["recorder"]
pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def make(hourhand, request: pytest.FixtureRequest):
    """Creates a job that calls a function of the server's module, and answers its id."""

    def make(function: str, *options: str) -> str:
        target = ["--python", f"functions_for_cli:{function}"]
        done = hourhand("jobs", "create", request.node.name, "--every", "1h", *target, *options, "-q")
        assert done.code == 0, done.err
        return done.out.strip()

    return make


def test_waiting_shows_the_attempt_and_ends_with_zero(hourhand, make) -> None:
    done = hourhand("jobs", "run", make("succeed"), "--wait")
    assert done.code == 0, done.err
    attempt, last = done.out.splitlines()
    assert attempt.startswith("attempt 1  SUCCEEDED  took ")
    assert last.endswith("SUCCEEDED")


def test_without_waiting_the_run_is_named(hourhand, make) -> None:
    job = make("succeed")
    done = hourhand("jobs", "run", job, "--json")
    run_id = done.json["run_id"]
    assert run_id.startswith(f"{job}@")
    assert hourhand("runs", "watch", run_id, "-q").out.strip() == run_id
    assert hourhand("runs", "show", run_id, "--json").json["response"]


def test_a_failure_shows_each_attempt_and_where_the_dead_letter_is(hourhand, make) -> None:
    job = make("fail", "--retries", "1", "--retry-first", "1ms")
    done = hourhand("jobs", "run", job, "--wait")
    assert done.code == 7
    first, second, last = done.out.splitlines()
    assert "it broke" in first
    assert second.startswith("attempt 2  FAILED")
    run_id = last.split()[0]
    assert f"dead letter: hourhand dlq show {run_id}" in done.err
    letter = hourhand("dlq", "show", run_id)
    assert "it broke" in letter.out
    assert letter.out.count("attempt ") == 2


def test_a_run_names_its_job(hourhand, make, request: pytest.FixtureRequest) -> None:
    job = make("succeed", "--key", "names-its-job")
    run_id = hourhand("jobs", "run", job, "-q").out.strip()
    assert f"job          {request.node.name} ({job})\n" in hourhand("runs", "show", run_id).out
    hourhand("jobs", "update", job, "--name", "")
    assert f"job          names-its-job ({job})\n" in hourhand("runs", "show", run_id).out
    listed = hourhand("jobs", "list", "--limit", "1").out.splitlines()
    assert listed[1].split()[:2] == [job, "names-its-job"]


def test_a_skip_is_no_success(hourhand, make) -> None:
    done = hourhand("jobs", "run", make("skip"), "--wait", "--json")
    assert (done.code, done.json["status"], done.json["reason"]) == (7, "SKIPPED", "holiday")


def test_waiting_ends_with_nine_and_the_run_s_id_when_it_takes_too_long(hourhand, make) -> None:
    done = hourhand("jobs", "run", make("hang"), "--wait", "--timeout", "50ms", "--json")
    assert done.code == 9
    assert done.problem["code"] == "wait_timed_out"
    run_id = done.problem["run_id"]
    assert run_id in done.problem["detail"]
    assert hourhand("runs", "cancel", run_id).code == 0
    job = make("hang")
    for form in ([], ["-q"], ["--jsonl"], ["--downstream"]):
        done = hourhand("jobs", "run", job, "--wait", "--timeout", "50ms", *form)
        assert (done.code, f"runs watch {job}@" in done.err) == (9, True), done.err


def test_a_running_run_is_cancelled(hourhand, make) -> None:
    job = make("hang")
    run_id = hourhand("jobs", "run", job, "-q").out.strip()
    assert hourhand("runs", "cancel", run_id, "--dry-run").code == 0
    assert hourhand("runs", "cancel", run_id).code == 0
    watched = hourhand("runs", "watch", run_id, "--timeout", "20s")
    assert (watched.code, watched.out.split()[-1]) == (7, "CANCELLED")
    assert hourhand("runs", "cancel", run_id).code == 5
    assert hourhand("runs", "show", run_id).out.splitlines()[1] == "status       CANCELLED"


def test_watching_outlasts_a_server_that_is_away(
    hourhand, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.client.exchange.FIRST_PAUSE_S", 0.001)
    runs = [(200, {"run_id": "r", "status": state}, {}) for state in ("RUNNING", "SUCCEEDED")]
    recorder.replies = [runs[0], *[HANG_UP] * 8, runs[1]]
    done = hourhand("--server", recorder.url, "runs", "watch", "r", "-q")
    assert (done.code, done.out) == (0, "r\n"), done.err


def test_finished_runs_are_listed_by_state_and_job(hourhand, make) -> None:
    job = make("give_up")
    hourhand("jobs", "run", job, "--wait")
    failed = hourhand("runs", "list", "--job", job, "--state", "failed", "--state", "skipped", "--jsonl")
    assert failed.out.count("\n") == 1
    assert "bad data" in failed.out
    none = hourhand("runs", "list", "--job", job, "--state", "SUCCEEDED")
    assert (none.out, none.code) == ("", 0)
    assert "--since" in none.err
    assert hourhand("runs", "list", "--state", "WRONG").code == 2
    assert hourhand("runs", "list", "--since", "soon").code == 2


def test_a_run_that_is_not_there(hourhand) -> None:
    assert hourhand("runs", "show", "nonsense").code == 3
    assert hourhand("dlq", "show", "J-0000000000000@20261116T080000Z").code == 3


def test_dead_letters_by_filter_are_requeued_and_discarded(hourhand, make) -> None:
    job = make("give_up")
    runs = {hourhand("jobs", "run", job, "--wait", "-q").out.strip() for _ in range(3)}
    listed = hourhand("dlq", "list", "--filter", f"job={job}", "-q")
    assert set(listed.out.split()) == runs
    trial = hourhand("dlq", "requeue", "--filter", f"job={job}", "--dry-run")
    assert trial.out == "would requeue 3 dead letters\n"
    refused = hourhand("dlq", "requeue", "--filter", f"job={job}")
    assert refused.code == 2
    assert "Requeue 3 dead letters?" in refused.err
    sent = hourhand("dlq", "requeue", "--filter", f"job={job}", "-y", "--json")
    assert set(sent.json["run_ids"]) == runs
    for run in runs:
        assert hourhand("runs", "watch", run, "--timeout", "20s", "-q").code == 7
    gone = hourhand("dlq", "discard", *runs, "-y")
    assert gone.out == "discarded 3 dead letters\n"
    again = hourhand("dlq", "discard", min(runs), "-y")
    assert again.out == "discarded 0 dead letters\n"
    assert f"not a dead letter: {min(runs)}" in again.err


def test_dead_letters_are_counted_by_cause(hourhand, make) -> None:
    run_id = hourhand("jobs", "run", make("give_up"), "--wait", "-q").out.strip()
    fingerprint = hourhand("dlq", "show", run_id, "--json").json["fingerprint"]
    groups = hourhand("dlq", "list", "--group-by", "error", "--json").json["data"]
    assert fingerprint in {group["value"] for group in groups}
    assert "bad data" in hourhand("dlq", "list", "--group-by", "job").out
    assert run_id in hourhand("dlq", "list", "--filter", f"error={fingerprint}", "-q").out


@pytest.mark.parametrize(
    "arguments",
    [[], ["J-0000000000000@20261116T080000Z", "--all"], ["--filter", "colour=red"], ["--filter", "job"]],
)
def test_which_dead_letters_must_be_said(hourhand, arguments: list[str]) -> None:
    assert hourhand("dlq", "discard", "-y", *arguments).code == 2


@pytest.mark.parametrize("verb", ["requeue", "discard"])
def test_what_is_no_dead_letter_is_not_found(hourhand, make, verb: str) -> None:
    run_id = hourhand("jobs", "run", make("succeed"), "--wait", "-q").out.strip()
    done = hourhand("dlq", verb, run_id)
    assert (done.code, f"not a dead letter: {run_id}" in done.err) == (3, True)
