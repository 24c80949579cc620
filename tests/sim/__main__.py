"""Runs seeds by hand: `make sim SEED=7` tells one story in full, `make sim SEEDS=100` looks for trouble.

With ARGS=--broker runs go through a broker that does everything wrong.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tests.sim.coverage import Pair, unmet
from tests.sim.script import Script, write_script
from tests.sim.shrink import shrink
from tests.sim.simulation import Report, run_script


def main() -> int:
    """0 when every seed holds."""
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument("--seeds", type=int, default=20, help="how many, from 0 on")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument(
        "--size", type=float, default=1.0, help="how long a story is, 1 being the whole of it"
    )
    parser.add_argument("--broker", action="store_true", help="put a bad broker between the processes")
    parser.add_argument("--trace", type=Path, help="write every transition and fault to this file")
    parser.add_argument("--no-shrink", action="store_true", help="leave a failing story as long as it is")
    asked = parser.parse_args()
    seeds = [asked.seed] if asked.seed is not None else range(asked.first, asked.first + asked.seeds)
    failed = False
    told: Counter[str] = Counter()
    pairs: Counter[Pair] = Counter()
    for seed in seeds:
        script = write_script(seed, size=asked.size, brokered=asked.broker)
        begun_s = time.perf_counter()
        report = run_script(script)
        print(summary(report, time.perf_counter() - begun_s), flush=True)
        told.update(transitions=report.total, faults=report.faults.total())
        pairs.update(report.pairs)
        if asked.trace is not None:
            asked.trace.write_text(report.trace)
        if report.violations:
            failed = True
            print(complaint(report, asked.size, asked.broker))
            if not asked.no_shrink:
                tell_shrunk(script, report)
    if len(seeds) > 1:
        print(
            f"{len(seeds)} seeds: {told['transitions']:,} transitions, {told['faults']:,} faults,"
            f" {len(pairs):,} pairs of the two, the rarest {min(pairs.values(), default=0)} times;"
            f" {len(unmet(pairs)):,} pairs have not met"
        )
    return int(failed)


def summary(report: Report, took_s: float) -> str:
    """One line about a seed."""
    verdict = f"{len(report.violations)} violations" if report.violations else "holds"
    return (
        f"seed {report.seed}: {verdict}; {report.total:,} transitions, {report.faults.total():,} faults,"
        f" {report.simulated_s:.0f} s in {took_s:.1f} s, trace {report.digest[:12]}"
    )


def complaint(report: Report, size: float = 1.0, brokered: bool = False) -> str:
    """What was violated, and how to see it again."""
    lines = [f"  {violation}" for violation in report.violations[:10]]
    more = [*([f"--size {size:g}"] if size != 1.0 else []), *(["--broker"] if brokered else [])]
    arguments = f" ARGS='{' '.join(more)}'" if more else ""
    return "\n".join([*lines, f"  to repeat: make sim SEED={report.seed}{arguments}"])


def tell_shrunk(script: Script, report: Report) -> None:
    """The story made short."""
    print("  shrinking …", flush=True)
    shrunk = shrink(script, report)
    print(f"  {len(shrunk.script.items)} of {len(script.items)} items are enough ({shrunk.tries} tries):")
    for item in shrunk.script.items:
        print(f"    {item.at_us / 1e6:9.3f} s  {item.kind} {item.what} {item.args}")
    print("\n".join(f"  {violation}" for violation in shrunk.report.violations[:10]))


if __name__ == "__main__":
    sys.exit(main())
