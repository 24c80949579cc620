"""A wall clock that jumps an hour either way: nothing runs twice, nothing runs early, and all goes on by itself."""

from pathlib import Path

import pytest

from tests.chaos import tables
from tests.chaos.calls import SECOND_US, Call, spelled
from tests.chaos.jumping_clock import Dial
from tests.chaos.process import SinkProcess, Up, wait_for

HOUR_US = 3600 * SECOND_US
FAR = "2099-01-01T00:00:00Z"


@pytest.fixture
def dial(up: Up, tmp_path: Path) -> Dial:
    dial = Dial(tmp_path / "clock")
    up.launcher = dial.launcher
    return dial


def lateness(call: Call, dial: Dial) -> int:
    """How long after its time a call came, by the command's clock as it stands now."""
    return call.at + dial.offset_us - call.nominal_at


def test_an_hour_forward(up: Up, sink: SinkProcess, dial: Dial) -> None:
    up.start()
    steady = up.api.create(every="1s", callback_url=sink.url("ok"))
    hourly = up.api.create(every="1h", phase=spelled(dial.now() + HOUR_US // 2), callback_url=sink.url("ok"))
    skipping = up.api.create(
        every="1h",
        phase=spelled(dial.now() + HOUR_US // 2),
        misfire={"policy": "skip"},
        callback_url=sink.url("ok"),
    )
    slow = up.api.create(at=FAR, callback_url=sink.url("slow/3000"))
    wait_for("steady calls", lambda: sink.log.of(steady))
    slow_run = up.api.expect(202, "POST", f"/jobs/{slow}/run")["run_id"]
    wait_for("the slow call", lambda: sink.log.of(slow))

    dial.turn(HOUR_US)
    jumped_at = dial.now()
    wait_for("steady calls in the new time", lambda: after(sink, steady, jumped_at + 2 * SECOND_US))
    (missed,) = wait_for("the hour's missed run", lambda: sink.log.of(hourly))
    assert lateness(missed, dial) > HOUR_US // 3  # run once, late
    assert sink.log.of(skipping) == []
    wait_for("the slow run's end", lambda: status(up, slow_run) == "SUCCEEDED")
    run_now(up, sink, up.api.create(at=FAR, callback_url=sink.url("ok")))
    new = up.api.create(every="1s", callback_url=sink.url("ok"))
    wait_for("a new job's calls", lambda: len(sink.log.of(new)) > 1)
    assert min(lateness(call, dial) for call in after(sink, steady, jumped_at)) >= 0
    assert min(lateness(call, dial) for call in sink.log.of(new)) >= 0
    finish(up, sink)


def test_an_hour_back(up: Up, sink: SinkProcess, dial: Dial) -> None:
    up.start()
    # One slot would be held by the next run, which was taken ahead and is now an hour off.
    steady = up.api.create(every="1s", callback_url=sink.url("ok"), concurrency="unlimited")
    slow = up.api.create(at=FAR, callback_url=sink.url("slow/3000"))
    wait_for("steady calls", lambda: len(sink.log.of(steady)) > 1)
    slow_run = up.api.expect(202, "POST", f"/jobs/{slow}/run")["run_id"]
    wait_for("the slow call", lambda: sink.log.of(slow))

    before = sink.log.of(steady)[-1].nominal_at
    dial.turn(-HOUR_US)
    jumped_at = dial.now()
    wait_for("the slow run's end", lambda: status(up, slow_run) == "SUCCEEDED")
    new = up.api.create(every="1s", callback_url=sink.url("ok"))
    flaky = up.api.create(
        every="1s", callback_url=sink.url("once/fail"), retry={"first": "1500ms"}, concurrency="unlimited"
    )
    wait_for("a new job's calls", lambda: len(sink.log.of(new)) > 3)
    wait_for("a new job's retries", lambda: sum(not call.applied for call in sink.log.of(flaky)) > 2)
    run_now(up, sink, steady)
    for job in (new, flaky):
        calls = sink.log.of(job)
        assert min(lateness(call, dial) for call in calls) >= 0, "early"
        nominals = sorted({call.nominal_at for call in calls})
        assert nominals == list(range(nominals[0], nominals[-1] + 1, SECOND_US))
        assert nominals[0] > jumped_at
    for first in sink.log.of(flaky):
        again = [call for call in sink.log.of(flaky) if call.key == first.key and not call.applied]
        assert all(call.at - first.at > SECOND_US for call in again if first.applied), "retried too soon"
    # Its times of this hour have been: they are not run a second time, and it goes on when they are over.
    nominals = [call.nominal_at for call in sink.log.of(steady) if call.nominal_at % SECOND_US == 0]
    assert len(nominals) == len(set(nominals))
    up.kill()
    up.start()
    again_at = dial.now()
    wait_for("calls after a restart", lambda: after(sink, new, again_at + SECOND_US))

    dial.turn(HOUR_US)  # and right again
    back_at = dial.now()
    wait_for("steady calls", lambda: after(sink, steady, max(before, back_at) + SECOND_US))
    finish(up, sink)


def after(sink: SinkProcess, job: str, at: int) -> list[Call]:
    return [call for call in sink.log.of(job) if call.nominal_at > at]


def status(up: Up, run_id: str) -> str:
    return str(up.api.expect(200, "GET", f"/runs/{run_id}")["status"])


def run_now(up: Up, sink: SinkProcess, job: str) -> None:
    run_id = up.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"]
    wait_for("a run asked for now", lambda: any(call.key == run_id for call in sink.log.of(job)))
    wait_for("its end", lambda: status(up, run_id) == "SUCCEEDED")


def finish(up: Up, sink: SinkProcess) -> None:
    assert up.stop() == 0
    calls = sink.log.calls()
    applied = [call.key for call in calls if call.applied]
    assert len(applied) == len(set(applied))
    assert not tables.problems(up.data, {call.key for call in calls})
