"""What kill -9 interrupts goes on at once after the restart, and what was acknowledged is still there."""

from tests.chaos import tables
from tests.chaos.api import now
from tests.chaos.calls import SECOND_US, spelled
from tests.chaos.process import SinkProcess, Up, wait_for

AT_ONCE_US = 5 * SECOND_US  # on a busy machine; a lease would take 30 s to run out
FAR = "2099-01-01T00:00:00Z"


def run_now(up: Up, job: str) -> str:
    return str(up.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"])


def run_of(up: Up, run_id: str, status: str) -> dict[str, object]:
    """The run once it has a status."""

    def look() -> dict[str, object] | None:
        run: dict[str, object] = up.api.expect(200, "GET", f"/runs/{run_id}")
        return run if run["status"] == status else None

    return wait_for(f"{run_id} {status}", look)


def test_an_interrupted_call_goes_on_at_once_under_the_same_key(up: Up, sink: SinkProcess) -> None:
    up.start()
    job = up.api.create(at=FAR, callback_url=sink.url("once/hang"))
    run_id = run_now(up, job)
    wait_for("the call", lambda: sink.log.of(job))
    up.kill()  # after the effect, before the report
    up.start()
    ready_at = now()
    run = run_of(up, run_id, "SUCCEEDED")
    first, second = sink.log.of(job)
    assert (first.key, first.applied) == (run_id, True)
    assert (second.key, second.applied) == (run_id, False)
    assert second.attempt > first.attempt
    assert second.at < ready_at + AT_ONCE_US
    lost, done = run["attempts"]
    assert (lost["status"], lost["error"]) == ("RETRYING", "its worker was lost")
    assert done["status"] == "SUCCEEDED"
    assert up.stop() == 0
    assert not tables.problems(up.data, {run_id})


def test_at_most_once_is_never_called_again(up: Up, sink: SinkProcess) -> None:
    up.start()
    job = up.api.create(at=FAR, callback_url=sink.url("once/hang"), delivery="at_most_once")
    run_id = run_now(up, job)
    wait_for("the call", lambda: sink.log.of(job))
    up.kill()
    up.start()
    run = run_of(up, run_id, "FAILED")
    assert run["error"] == "its worker was lost"
    assert len(sink.log.of(job)) == 1
    letters = up.api.expect(200, "GET", f"/dead-letters?job_id={job}")["data"]
    assert [letter["run_id"] for letter in letters] == [run_id]
    up.api.expect(
        200, "POST", "/dead-letters/requeue", {"ids": [run_id]}
    )  # a person takes the responsibility
    run_of(up, run_id, "SUCCEEDED")
    assert [call.key for call in sink.log.of(job)] == [run_id, run_id]


def test_what_was_taken_ahead_and_not_begun_is_neither_early_nor_a_try(up: Up, sink: SinkProcess) -> None:
    up.environment["HOURHAND_SCHEDULER_LEAD"] = "30s"  # so that the restart comes before the time
    up.start()
    at = now() + 9 * SECOND_US
    job = up.api.create(at=spelled(at), callback_url=sink.url("ok"), retry={"max": 0})

    def is_held() -> bool:
        return bool(tables.read(up.data, "SELECT 1 FROM running WHERE phase = 1"))

    wait_for("taken ahead", is_held)
    up.kill()
    up.start()
    (call,) = wait_for("the call", lambda: sink.log.of(job))
    assert 0 <= call.at - at < AT_ONCE_US
    run = run_of(up, call.key, "SUCCEEDED")
    assert run["retry_count"] == 0


def test_an_acknowledged_job_survives_the_next_instant(up: Up, sink: SinkProcess) -> None:
    up.start()
    jobs = [up.api.create(every="1s", callback_url=sink.url("ok")) for _ in range(3)]
    up.kill()
    up.start()
    for job in jobs:
        assert up.api.expect(200, "GET", f"/jobs/{job}")["state"] == "active"
        wait_for("its first call", lambda job=job: sink.log.of(job))


def test_killed_in_its_first_moments_it_starts_all_the_same(up: Up, sink: SinkProcess) -> None:
    """The file is there, then its journal, then its tables: none of these moments leaves it unusable."""
    journal = up.data.with_name(up.data.name + "-wal")
    for moment in (up.data.exists, journal.exists, lambda: journal.stat().st_size > 0):
        up.spawn()
        wait_for("a moment of its first start", moment)
        up.kill()
    up.start()
    job = up.api.create(every="1s", callback_url=sink.url("ok"))
    wait_for("its first call", lambda: sink.log.of(job))
    assert up.stop() == 0
    assert not tables.problems(up.data, set())
