"""An hour without the process: each misfire policy does what it says, for times that were planned and not."""

import signal
from pathlib import Path

import pytest

from tests.chaos.api import Api
from tests.chaos.calls import SECOND_US, Call, spelled
from tests.chaos.jumping_clock import Dial
from tests.chaos.process import SinkProcess, Up, wait_for

MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
POLICIES = ("run_once", "skip", "catch_up")


class Outage:
    """Jobs with every policy before an hour's outage, and what came of them after it."""

    def __init__(self, up: Up, sink: SinkProcess, dial: Dial) -> None:
        self._sink = sink
        self.api: Api = up.api
        self.begun_at = dial.now()
        url = sink.url("ok")
        # Planned before the outage, and once only; behind the horizon, and six times; one-time.
        self.planned_at = self.begun_at + 20 * SECOND_US
        self.first_at = self.begun_at + 5 * MINUTE_US
        self.once_at = self.begun_at + 10 * MINUTE_US
        self.jobs = {}
        for policy in POLICIES:
            misfire = {"policy": policy, "limit": 4}
            common = {"callback_url": url, "misfire": misfire}
            self.jobs["planned", policy] = self.api.create(
                every="2h", phase=spelled(self.planned_at), **common
            )
            self.jobs["many", policy] = self.api.create(every="10m", phase=spelled(self.first_at), **common)
            self.jobs["once", policy] = self.api.create(at=spelled(self.once_at), **common)
            self.jobs["steady", policy] = self.api.create(every="1s", concurrency="unlimited", **common)

    def calls(self, sort: str, policy: str) -> list[Call]:
        return self._sink.log.of(self.jobs[sort, policy])

    def endings(self, sort: str, policy: str) -> list[tuple[str, str | None]]:
        rows = self.api.history(self.jobs[sort, policy])
        return [(row["status"], row["reason"]) for row in rows if row["status"] != "PENDING"]


@pytest.fixture
def outage(up: Up, sink: SinkProcess, tmp_path: Path) -> Outage:
    dial = Dial(tmp_path / "clock")
    up.launcher = dial.launcher
    up.start()
    outage = Outage(up, sink, dial)
    wait_for("steady calls", lambda: all(outage.calls("steady", policy) for policy in POLICIES))
    up.kill()
    dial.turn(HOUR_US)
    up.start()
    back_at = dial.now()
    wait_for(
        "steady calls again",
        lambda: all(
            any(call.nominal_at > back_at + SECOND_US for call in outage.calls("steady", policy))
            for policy in POLICIES
        ),
    )
    wait_for("the backlog", lambda: len(outage.calls("many", "catch_up")) >= 4)
    return outage


def test_each_policy_after_an_hour_without_the_process(outage: Outage, up: Up) -> None:
    many = [outage.first_at + number * 10 * MINUTE_US for number in range(6)]
    assert [call.nominal_at for call in outage.calls("many", "run_once")] == many[-1:]
    assert outage.calls("many", "skip") == []
    assert [call.nominal_at for call in outage.calls("many", "catch_up")] == many[-4:]  # oldest first

    assert [call.nominal_at for call in outage.calls("planned", "run_once")] == [outage.planned_at]
    assert outage.calls("planned", "skip") == []
    assert outage.endings("planned", "skip") == [("SKIPPED", "misfire")]
    assert [call.nominal_at for call in outage.calls("planned", "catch_up")] == [outage.planned_at]

    assert [call.nominal_at for call in outage.calls("once", "run_once")] == [outage.once_at]
    assert outage.endings("once", "skip") == [("SKIPPED", "misfire")]
    assert [call.nominal_at for call in outage.calls("once", "catch_up")] == [outage.once_at]

    for policy in POLICIES:
        # a call that was under way when the process was killed is repeated under its key
        nominals = [call.nominal_at for call in outage.calls("steady", policy) if call.applied]
        assert len(nominals) == len(set(nominals))
        after = sorted(at for at in nominals if at > outage.begun_at + MINUTE_US)
        assert after == list(range(after[0], after[-1] + 1, SECOND_US)), f"{policy}: a gap after the outage"
    assert up.stop(signal.SIGINT) == 0
