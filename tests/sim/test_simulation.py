"""Clusters through their bad days, from seeds; a failing one says how to repeat it. What must be counted is counted over all of them."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hourhand.core.lifecycle import TRANSITIONS
from tests.sim.__main__ import complaint
from tests.sim.coverage import name_of, pair_named, unmet
from tests.sim.script import Fault
from tests.sim.simulation import Report, run_seed

BLOCKS = 11
SEEDS_PER_BLOCK = 6
LEAST_TRANSITIONS = 300_000
LEAST_FAULTS = 10_000
SOAK_FACTOR = 100


@pytest.mark.parametrize("block", range(BLOCKS))
def test_clusters_survive_their_bad_days(block: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whichever block ends last looks at what they have seen together."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "sim"
    folder.mkdir(exist_ok=True)
    tally = _Tally()
    for seed in range(block * SEEDS_PER_BLOCK, (block + 1) * SEEDS_PER_BLOCK):
        tally.add(_held(seed))
    tally.save(folder / f"{block}.json")
    done = sorted(folder.glob("*.json"))
    if len(done) == BLOCKS:
        _check_figures([_Tally.load(path) for path in done])


def test_the_same_seed_is_the_same_trace_in_every_process() -> None:
    """Byte for byte, whatever order a process keeps its sets in."""
    program = "from tests.sim.simulation import run_seed; print(run_seed(5, size=0.3).trace)"
    root = Path(__file__).parents[2]
    traces = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root / 'src'}:{root}"},
            capture_output=True,
            check=True,
            cwd=root,
        ).stdout
        for seed in ("1", "2")
    ]
    assert traces[0] == traces[1]
    assert len(traces[0]) > 10_000


@pytest.mark.soak
@pytest.mark.parametrize("block", range(BLOCKS * SOAK_FACTOR))
def test_many_clusters_survive_their_bad_days(block: int) -> None:
    first = 100_000 + block * SEEDS_PER_BLOCK
    for seed in range(first, first + SEEDS_PER_BLOCK):
        _held(seed)


def _held(seed: int) -> Report:
    report = run_seed(seed)
    assert not report.violations, f"seed {seed} broke its promises\n{complaint(report)}"
    return report


def _check_figures(tallies: "list[_Tally]") -> None:
    transitions = sum((tally.transitions for tally in tallies), Counter[str]())
    faults = sum((tally.faults for tally in tallies), Counter[str]())
    pairs = sum((tally.pairs for tally in tallies), Counter[str]())
    assert transitions.total() >= LEAST_TRANSITIONS
    assert faults.total() >= LEAST_FAULTS
    assert not [f"{state} {event}" for state, event in TRANSITIONS if not transitions[f"{state} {event}"]]
    assert not [fault for fault in Fault if not faults[fault]]
    never = unmet(Counter({pair_named(name): count for name, count in pairs.items()}))
    assert not never, f"{len(never)} pairs have not met: {[name_of(pair) for pair in never]}"


class _Tally:
    """Counts of some seeds, as a file between processes."""

    def __init__(self) -> None:
        self.transitions: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.pairs: Counter[str] = Counter()

    def add(self, report: Report) -> None:
        self.transitions.update({f"{state} {event}": n for (state, event), n in report.transitions.items()})
        self.faults.update({fault.value: count for fault, count in report.faults.items()})
        self.pairs.update({name_of(pair): count for pair, count in report.pairs.items()})

    def save(self, path: Path) -> None:
        path.with_suffix(".part").write_text(json.dumps(vars(self)))
        path.with_suffix(".part").rename(path)

    @classmethod
    def load(cls, path: Path) -> "_Tally":
        tally = cls()
        for name, counts in json.loads(path.read_text()).items():
            getattr(tally, name).update(counts)
        return tally
