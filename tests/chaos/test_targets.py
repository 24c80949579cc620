"""Targets that answer garbage, without end, a byte a second, or never: recorded failures, and all else goes on."""

import pytest

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.process import SinkProcess, Up, wait_for

FAR = "2099-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("behaviour", "word"),
    [
        ("fail", "500"),
        ("drop", "closed the connection"),
        ("garbage", ""),
        ("silent", "within 1s"),
        ("trickle", ""),
        ("refuse", "connect"),
    ],
)
def test_bad_answers_are_recorded_failures(
    shared_up: Up, shared_sink: SinkProcess, behaviour: str, word: str
) -> None:
    api = shared_up.api
    url = "http://127.0.0.1:9/" if behaviour == "refuse" else shared_sink.url(behaviour)
    target = {"type": "http", "url": url, "timeout": "1s"}
    steady = api.create(every="1s", callback_url=shared_sink.url("ok"))
    job = api.create(at=FAR, target=target, retry={"max": 1, "first": "100ms"})
    asked_at = now()
    run_id = api.expect(202, "POST", f"/jobs/{job}/run")["run_id"]

    def failed() -> dict[str, object] | None:
        run: dict[str, object] = api.expect(200, "GET", f"/runs/{run_id}")
        return run if run["status"] == "FAILED" else None

    run = wait_for("the failure", failed, 15)
    assert len(run["attempts"]) == 2
    for attempt in run["attempts"]:
        assert attempt["error"]
        assert word in attempt["error"], attempt["error"]
    letters = api.expect(200, "GET", f"/dead-letters?job_id={job}")["data"]
    assert [letter["run_id"] for letter in letters] == [run_id]
    assert_on_time(shared_sink, steady, asked_at)
    api.expect(200, "DELETE", f"/jobs/{steady}")


def test_an_endless_answer_is_cut_off(shared_up: Up, shared_sink: SinkProcess) -> None:
    """More than is kept is not read on: the status counts, or the timeout, and memory stays what it was."""
    api = shared_up.api
    steady = api.create(every="1s", callback_url=shared_sink.url("ok"))
    target = {"type": "http", "url": shared_sink.url("endless"), "timeout": "2s"}
    before_kib = resident_kib(shared_up)
    asked_at = now()
    jobs = [api.create(at=FAR, target=target, retry={"max": 0}) for _ in range(5)]
    runs = [api.expect(202, "POST", f"/jobs/{job}/run")["run_id"] for job in jobs]

    def ended() -> bool:
        return all(
            api.expect(200, "GET", f"/runs/{run}")["status"] in ("SUCCEEDED", "FAILED") for run in runs
        )

    wait_for("all ends", ended, 15)
    for run in runs:
        shown = api.expect(200, "GET", f"/runs/{run}")
        assert len(str(shown)) < 200_000
    assert resident_kib(shared_up) - before_kib < 64 * 1024
    assert_on_time(shared_sink, steady, asked_at)
    api.expect(200, "DELETE", f"/jobs/{steady}")


def assert_on_time(sink: SinkProcess, job: str, from_at: int) -> None:
    """The neighbour was called every second meanwhile, and on time."""
    seen = len(sink.log.of(job))
    wait_for("two more calls of the neighbour", lambda: len(sink.log.of(job)) >= max(seen + 1, 2))
    calls = sink.log.of(job)
    nominals = [call.nominal_at for call in calls]
    assert nominals == list(range(nominals[0], nominals[-1] + 1, SECOND_US))
    assert nominals[0] <= from_at + 3 * SECOND_US
    assert max(call.at - call.nominal_at for call in calls) < 2 * SECOND_US


def resident_kib(up: Up) -> int:
    assert up.process is not None
    with open(f"/proc/{up.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
