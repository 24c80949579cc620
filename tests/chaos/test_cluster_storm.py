"""A real cluster in bad weather: no time lost, no effect doubled, nothing early, no phantoms.

Processes are killed, stopped and drained, servers restarted, crashed and frozen, connections cut, stalled
and slowed, clocks set wrong. The short storms are part of every test run, the long ones (`make chaos`) take
CHAOS_MINUTES each. Phases: load and faults, heal, quiet, final read, verdict, tables.
"""

import dataclasses
import faulthandler
import json
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.chaos import tables
from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.checker import Evidence, Verdict, check
from tests.chaos.cluster import Cluster
from tests.chaos.faults import WORKER_LEASE_US, Weather, pause
from tests.chaos.ledger import Every, Once, Seconds
from tests.chaos.load import KINDS, LEAD_US, Kind, Load
from tests.chaos.process import SinkProcess, wait_for
from tests.chaos.pulse import Pulse
from tests.chaos.storm import (
    assert_well,
    chaos_minutes,
    chaos_seed,
    endings_of_deleted,
    look_into,
    shown_endings,
)
from tests.servers.postgres import require_postgres

# A run may be lost with a worker several times, each for its lease; the grace must be longer than that.
WINDOW_US = 240 * SECOND_US
GRACE = "20m"
SWEEP_US = 2 * SECOND_US
CALM_US = 12 * SECOND_US  # a hundred runs that wait for one slot go one by one
MACHINE_S = 240.0  # how long others may keep the machine from being quick
LAG_BUDGET_US = WORKER_LEASE_US + SWEEP_US + CALM_US  # L: node timeout, sweep, takeover, queue, backoff
CALM_WINDOW_US = 3 * SECOND_US
MAIN_KINDS = (
    "kill worker",
    "stop scheduler",
    "unknown commit",
    "kill scheduler",
    "cut all",
    "clock an hour ahead",
    "partition",
    "kill api",
    "crash server",
    "stall",
    "clock an hour behind",
    "drain",
)
_QUEUES = ("queue", "wide")  # with their worker lost for a while, more wait than may


class ClusterStorm:
    """Faults on one cluster, and a user who notices."""

    def __init__(self, seed: int, cluster: Cluster, sink: SinkProcess) -> None:
        self._rng = random.Random(seed)
        self._cluster = cluster
        self._sink = sink
        self._history: tables.History = {}
        self.weather = Weather(cluster, random.Random(seed + 2))
        apis = [part.api for part in cluster.of("api")]
        self.load = Load(
            random.Random(seed + 1), apis, sink, kinds=[_patient(kind) for kind in KINDS], wary=True
        )

    def begin(self) -> None:
        """Undisturbed, each kind of job gets each kind of schedule."""
        rules = (Every(SECOND_US), Every(2 * SECOND_US), Seconds(frozenset(range(60))))
        for index, kind in enumerate(map(_patient, KINDS)):
            self.load.create(kind, rules[index % 3])
            fifth = Seconds(frozenset(range(0, 60, 5)))
            self.load.create(kind, fifth if index % 2 else Once(now() + index * SECOND_US))
        self.load.settle_all()

    def strike(self, kind: str | None = None) -> None:
        """Use the cluster for a moment, then let one more thing go wrong."""
        until_at = now() + round(self._rng.uniform(0.2, 2.5) * SECOND_US)
        while now() < until_at or (kind is not None and self.weather.draw(kind) is None):
            self.load.act()
            self.weather.clear()
            pause(self._rng.uniform(0, 0.1))
        if kind is None:
            self.weather.draw()

    def look_at_history(self) -> None:
        """Nothing in it may have changed since the last look."""
        after = tables.history(self._cluster.read)
        assert not tables.rewritten(self._history, after)
        self._history = after

    def finish(self, quiet_us: int) -> tuple[Evidence, Verdict, list[str]]:
        """Heal, be quiet, read everything once more, stop, and judge."""
        self.weather.clear(all_of_it=True)
        self._cluster.wait_ready()
        healed_at = now()
        self.load.settle_all()
        calm_at = max(healed_at + CALM_US, self.weather.last_loss_at + LAG_BUDGET_US)
        with Pulse(self._cluster.servers) as pulse:

            def is_quiet() -> bool:
                """Long enough after the last trouble, that of the machine included."""
                calm = max(calm_at, pulse.slow_at + CALM_US)
                return now() > max(calm + 6 * SECOND_US, healed_at + quiet_us)

            wait_for("quiet", is_quiet, within_s=quiet_us / SECOND_US + MACHINE_S)
        print(f"the machine's slowest commit while quiet: {pulse.worst_us / 1000:.0f} ms")
        calm_us = max(calm_at, pulse.slow_at + CALM_US) - healed_at
        final_at = now() - 4 * SECOND_US
        shown = shown_endings(self.load.jobs, self._cluster.api)
        for part in self._cluster.parts:
            assert part.stop() == 0, f"{part.name}: {part.output()[-1000:]}"
        self.look_at_history()
        evidence = Evidence(
            jobs=self.load.jobs,
            calls=self._sink.log.calls(),
            endings=shown | endings_of_deleted(self.load.jobs, self._cluster.read),
            disturbed=self.weather.disturbed,
            healed_at=healed_at,
            final_at=final_at,
            window_us=WINDOW_US,
            calm_us=calm_us,
            calm_window_us=CALM_WINDOW_US,
            paused=self.weather.paused,
        )
        return evidence, check(evidence), look_into(self._cluster.read, evidence)

    def keep(self) -> None:
        """Faults and ledger beside the logs, for whoever reads a failure."""
        folder = self._cluster.folder
        faults = [
            f"{fault.begun_at} {fault.over_at} {fault}"
            for fault in [*self.weather.over, *self.weather.now_wrong]
        ]
        (folder / "faults.txt").write_text("\n".join(faults))
        rows = [dataclasses.asdict(life) for life in self.load.jobs]
        (folder / "ledger.json").write_text(json.dumps(rows, default=sorted, indent=1))


def _patient(kind: Kind) -> Kind:
    """The same kind where a lost worker keeps a slot for as long as its lease."""
    tolerated = kind.tolerated | ({"SKIPPED overlap"} if kind.name in _QUEUES else set())
    return dataclasses.replace(kind, tolerated=tolerated)


def run_storm(
    cluster: Cluster, sink: SinkProcess, *, kinds: Iterable[str] = (), minutes: float = 0, quiet_us: int = 0
) -> str:
    """Storm, heal, judge; answers the verdict in lines, or fails with it."""
    seed = chaos_seed()
    storm = ClusterStorm(seed, cluster, sink)
    try:
        storm.begin()
        for kind in kinds:
            storm.strike(kind)
        end_at = now() + round(minutes * 60 * SECOND_US)
        look_at = now()
        while now() < end_at:
            storm.strike()
            if now() > look_at and not storm.weather.now_wrong:
                storm.look_at_history()
                look_at = now() + 30 * SECOND_US
        _, verdict, in_tables = storm.finish(quiet_us)
    finally:
        storm.keep()
    counts = storm.weather.counts
    told = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    line = f"seed {seed}: {counts.total()} faults ({told}), {storm.load}, {len(sink.log.calls())} calls: {verdict}"
    print(line)
    assert_well(line, verdict, in_tables)
    return line


def make_cluster(folder: Path, databases: int, **options: int) -> Cluster:
    """A cluster for storms: a long lead, so that more is in hand ahead of its time, and a long grace."""
    require_postgres()
    more = {
        "HOURHAND_SCHEDULER_LEAD": f"{LEAD_US // SECOND_US}s",
        "HOURHAND_SCHEDULER_MISFIRE_GRACE": GRACE,
        "HOURHAND_WORKER_DRAIN": "5s",
    }
    return Cluster(folder, databases=databases, more=more, **options)


def test_a_cluster_loses_and_doubles_nothing_in_a_short_storm(tmp_path: Path, sink: SinkProcess) -> None:
    with make_cluster(tmp_path, 1) as cluster:
        run_storm(cluster, sink, kinds=MAIN_KINDS)


@pytest.mark.chaos
@pytest.mark.parametrize("databases", [1, 2])
def test_minutes_of_bad_weather(
    tmp_path: Path, sink: SinkProcess, databases: int, capsys: pytest.CaptureFixture[str]
) -> None:
    faulthandler.cancel_dump_traceback_later()  # it is meant to take long
    with make_cluster(tmp_path, databases) as cluster:
        line = run_storm(cluster, sink, minutes=chaos_minutes(), quiet_us=2 * LAG_BUDGET_US)
    with capsys.disabled():
        print(f"\n{databases} databases, {line}")
