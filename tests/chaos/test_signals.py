"""Ends that are asked for: a run in progress finishes, the rest is given back, and the exit code is 0."""

import signal

import pytest

from tests.chaos import tables
from tests.chaos.api import now
from tests.chaos.calls import SECOND_US, nominal_of
from tests.chaos.process import SinkProcess, Up, wait_for

FAR = "2099-01-01T00:00:00Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_in_progress_finishes_before_the_end(up: Up, sink: SinkProcess, number: signal.Signals) -> None:
    up.start()
    job = up.api.create(at=FAR, callback_url=sink.url("slow/1500"))
    steady = up.api.create(every="1s", callback_url=sink.url("ok"), concurrency="unlimited", retry={"max": 0})
    wait_for("steady calls", lambda: sink.log.of(steady))
    run_id = up.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"]
    wait_for("the call", lambda: sink.log.of(job))
    asked_at = now()
    assert up.stop(number) == 0
    assert now() - asked_at < 10 * SECOND_US
    assert "stopped" in up.output()
    assert tables.endings(up.data)[job, nominal_of(run_id)] == "SUCCEEDED"
    assert not tables.read(up.data, "SELECT 1 FROM running WHERE phase = 1")
    assert len(sink.log.of(job)) == 1
    up.start()  # what was given back costs nobody a try, and no time is lost
    began_at = now()
    wait_for("steady calls", lambda: sink.log.of(steady)[-1].nominal_at > began_at)
    nominals = sorted(call.nominal_at for call in sink.log.of(steady))
    assert nominals == list(range(nominals[0], nominals[-1] + 1, SECOND_US))


def test_patience_ends(up: Up, sink: SinkProcess) -> None:
    """A target that never answers cannot keep the process; its run goes on in the next life."""
    up.environment["HOURHAND_WORKER_DRAIN"] = "1s"
    up.start()
    job = up.api.create(at=FAR, callback_url=sink.url("once/hang"))
    run_id = up.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"]
    wait_for("the call", lambda: sink.log.of(job))
    asked_at = now()
    assert up.stop() == 0
    assert now() - asked_at < 10 * SECOND_US
    up.start()
    wait_for("the call again", lambda: len(sink.log.of(job)) == 2)
    assert [call.key for call in sink.log.of(job)] == [run_id, run_id]


def test_stopped_for_a_while_and_continued_it_goes_on(up: Up, sink: SinkProcess) -> None:
    up.start()
    job = up.api.create(every="1s", callback_url=sink.url("ok"), concurrency="unlimited")
    wait_for("calls", lambda: sink.log.of(job))
    up.send(signal.SIGSTOP)
    stopped_at = now()
    wait_for("three seconds", lambda: now() > stopped_at + 3 * SECOND_US)
    up.send(signal.SIGCONT)
    continued_at = now()
    wait_for("calls", lambda: sink.log.of(job)[-1].nominal_at > continued_at + SECOND_US)
    nominals = sorted(call.nominal_at for call in sink.log.of(job))
    assert nominals == list(range(nominals[0], nominals[-1] + 1, SECOND_US))
    assert len(set(nominals)) == len(nominals)
    assert up.stop() == 0


@pytest.mark.chaos
def test_stopped_for_longer_than_its_lease_it_starts_anew(up: Up, sink: SinkProcess) -> None:
    up.start()
    job = up.api.create(every="1s", callback_url=sink.url("ok"), concurrency="unlimited")
    slow = up.api.create(at=FAR, callback_url=sink.url("slow/3000"))
    wait_for("calls", lambda: sink.log.of(job))
    up.api.expect(202, "POST", f"/jobs/{slow}/run")
    wait_for("the slow call", lambda: sink.log.of(slow))
    up.send(signal.SIGSTOP)
    stopped_at = now()
    wait_for("the lease's end", lambda: now() > stopped_at + 33 * SECOND_US, 60)
    up.send(signal.SIGCONT)
    continued_at = now()
    wait_for("calls", lambda: sink.log.of(job)[-1].nominal_at > continued_at + 2 * SECOND_US)
    nominals = sorted(call.nominal_at for call in sink.log.of(job) if call.applied)
    assert nominals == list(range(nominals[0], nominals[-1] + 1, SECOND_US))
    assert min(call.at - call.nominal_at for call in sink.log.of(job)) >= 0
    assert up.stop() == 0
    called = {call.key for call in sink.log.calls()}
    assert not tables.problems(up.data, called)
