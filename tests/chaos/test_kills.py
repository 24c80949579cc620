"""kill -9 again and again under load: no time lost, no effect doubled, nothing early, no phantoms.

The short one is part of every test run; the long one (`make chaos`) takes CHAOS_MINUTES (10). Both print
their seed; CHAOS_SEED repeats it. Phases: load and faults, heal, quiet, final read, verdict, tables.
"""

import faulthandler
import random
import signal
import threading

import pytest

from tests.chaos import tables
from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.checker import Evidence, Verdict, check
from tests.chaos.ledger import Every, Once, Seconds
from tests.chaos.load import KINDS, LEAD_US, Load
from tests.chaos.process import SinkProcess, Up, wait_for
from tests.chaos.storm import (
    assert_well,
    chaos_minutes,
    chaos_seed,
    endings_of_deleted,
    look_into,
    shown_endings,
)

WINDOW_US = 40 * SECOND_US  # restarts, repeated losses and retries on a busy machine; the grace is 60 s
CALM_US = 5 * SECOND_US


class Storm:
    """Lives of one command that end in a random way at a random moment, with a user who notices."""

    def __init__(self, seed: int, up: Up, sink: SinkProcess) -> None:
        self._rng = random.Random(seed)
        self._up = up
        self._sink = sink
        self._history: tables.History = {}
        self.load = Load(random.Random(seed + 1), [up.api], sink)
        self.disturbed: list[tuple[int, int]] = []
        self.kills = 0
        self._asking = threading.Event()  # a request is on its way
        self._struck_at = 0  # when the present life was first disturbed

    def begin(self) -> None:
        """A first life that nobody disturbs, in which each kind of job gets each kind of schedule."""
        self._up.environment["HOURHAND_SCHEDULER_LEAD"] = f"{LEAD_US // SECOND_US}s"
        self._up.start()
        rules = (Every(SECOND_US), Every(2 * SECOND_US), Seconds(frozenset(range(60))))
        for index, kind in enumerate(KINDS):
            self.load.create(kind, rules[index % 3])
            self.load.create(kind, Every(3 * SECOND_US) if index % 2 else Once(now() + index * SECOND_US))
        self.load.settle_all()

    def strike(self) -> None:
        """Use the command until it dies, then start it again."""
        assert self._up.process is not None
        deadly = threading.Thread(target=self._end_life, args=(self._rng.random(), self._rng.random()))
        deadly.start()
        while self._up.ended() is None:
            self._asking.set()
            self.load.act()
            self._asking.clear()
            self._pause(self._rng.uniform(0, 0.06))
        deadly.join()
        self._up.process = None
        self.kills += 1
        if self._rng.random() < 0.2:  # the target dies as well, and remembers
            self._sink.kill()
            self._sink.start()
        self._look_at_history()
        if self._rng.random() < 0.25:  # and once more while it starts
            self._up.spawn()
            self._pause(self._rng.uniform(0.1, 1.5))
            self._up.kill()
            self.kills += 1
        self._up.start()
        self.disturbed.append((self._struck_at, now()))

    def _end_life(self, choice: float, moment: float) -> None:
        process = self._up.process
        assert process is not None
        never = threading.Event()
        never.wait(1 + 2 * moment)
        self._struck_at = now()
        if choice < 0.15:  # told to drain, and not given the time
            process.send_signal(signal.SIGTERM)
            never.wait(moment / 2)
        elif choice < 0.3:  # held for a while first
            process.send_signal(signal.SIGSTOP)
            never.wait(moment * 2)
            if choice < 0.25:
                process.send_signal(signal.SIGCONT)
                never.wait(moment / 4)
        elif choice < 0.7:  # in the middle of a request
            self._asking.wait(1)
            never.wait(moment / 100)
            self._struck_at = now()
        process.kill()
        process.wait()

    def _pause(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def _look_at_history(self) -> None:
        after = tables.history(self._up.data)
        assert not tables.rewritten(self._history, after)
        self._history = after

    def finish(self) -> tuple[Verdict, list[str]]:
        """Heal, be quiet, read everything once more, stop, and judge."""
        healed_at = now()
        self.load.settle_all()
        quiet_at = now() + CALM_US + 4 * SECOND_US
        wait_for("quiet", lambda: now() > quiet_at, within_s=60)
        final_at = now() - 3 * SECOND_US
        shown = shown_endings(self.load.jobs, self._up.api)
        assert self._up.stop() == 0
        self._look_at_history()
        evidence = Evidence(
            jobs=self.load.jobs,
            calls=self._sink.log.calls(),
            endings=shown | endings_of_deleted(self.load.jobs, self._up.data),
            disturbed=self.disturbed,
            healed_at=healed_at,
            final_at=final_at,
            window_us=WINDOW_US,
            calm_us=CALM_US,
        )
        return check(evidence), look_into(self._up.data, evidence)


def run_storm(up: Up, sink: SinkProcess, *, kills: int = 0, minutes: float = 0) -> str:
    """Storm, heal, judge; answers the verdict in a line, or fails with it."""
    seed = chaos_seed()
    storm = Storm(seed, up, sink)
    end_at = now() + round(minutes * 60 * SECOND_US)
    storm.begin()
    while storm.kills < kills or now() < end_at:
        storm.strike()
    verdict, in_tables = storm.finish()
    line = f"seed {seed}: {storm.kills} kills, {storm.load}: {verdict}"
    print(line)
    assert_well(line, verdict, in_tables)
    return line


def test_nothing_is_lost_doubled_or_early_through_kills(up: Up, sink: SinkProcess) -> None:
    run_storm(up, sink, kills=8)


@pytest.mark.chaos
def test_minutes_of_kills(up: Up, sink: SinkProcess, capsys: pytest.CaptureFixture[str]) -> None:
    faulthandler.cancel_dump_traceback_later()  # it is meant to take long
    line = run_storm(up, sink, minutes=chaos_minutes())
    with capsys.disabled():
        print(f"\n{line}")
