"""How benchmarks speak: their options, medians beside goals, and the file that keeps the last whole run.

`--quick` shrinks every size to what finishes in seconds: it shows that a benchmark works and says nothing
about speed, so its results are printed and not kept.
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
_BUSY_LOAD = 0.5
_SYNCS = 50
_NO_SIZES = ("quick", "keep")


@dataclass(frozen=True, slots=True)
class Size:
    """An option of a benchmark: its value in a whole run, and in a quick one."""

    name: str
    full: float
    quick: float
    help: str


Adding = Callable[[argparse.ArgumentParser], None]


def options_of(doc: str, *sizes: Size, also: Adding = lambda parser: None) -> argparse.Namespace:
    """The command line; sizes that are not named follow `--quick`; `also` adds options that are no sizes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    also(parser)
    every = (*sizes, Size("rounds", 3, 1, "how often; the median counts"))
    for size in every:
        told = f"{size.help} ({size.full:,}; quick {size.quick:,})"
        parser.add_argument(f"--{size.name.replace('_', '-')}", type=type(size.full), help=told)
    options = parser.parse_args()
    for size in every:
        if getattr(options, size.name) is None:
            setattr(options, size.name, size.quick if options.quick else size.full)
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a figure should reach."""

    bound: float
    at_most: bool

    def __str__(self) -> str:
        return f"{'<' if self.at_most else '>='} {shown(self.bound)}"

    def met_by(self, value: float) -> bool:
        """Whether it does."""
        return value < self.bound if self.at_most else value >= self.bound


def below(bound: float) -> Goal:
    """Less is better."""
    return Goal(bound=bound, at_most=True)


def at_least(bound: float) -> Goal:
    """More is better."""
    return Goal(bound=bound, at_most=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One answer: the median of its rounds."""

    name: str
    unit: str
    median: float
    rounds: list[float]
    goal: str | None
    met: bool | None


@dataclass(slots=True)
class Report:
    """Prints figures as they come and keeps them."""

    name: str
    options: argparse.Namespace
    machine: dict[str, str | float] = field(default_factory=lambda: machine())
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    variant: str = ""  # keeps a run with other sizes beside the usual one

    def __post_init__(self) -> None:
        self.say(
            "{cpu}, {cores} cores, {memory_gb} GB; Python {python}, SQLite {sqlite}".format(**self.machine)
        )
        self.say(
            "load {load} before the first round; a write reaches the disk in {sync_ms} ms".format(
                **self.machine
            )
        )
        if float(self.machine["load"]) > _BUSY_LOAD:
            self.say("something else is using this machine: figures below are worse than they should be")

    def say(self, text: str) -> None:
        """A line about a round."""
        print(text, flush=True)

    def note(self, text: str) -> None:
        """A line that is kept with the figures, such as why something was left out."""
        self.notes.append(text)
        self.say(text)

    def figure(self, name: str, unit: str, rounds: Sequence[float], goal: Goal | None = None) -> float:
        """The median of some rounds, beside its goal."""
        median = statistics.median(rounds)
        met = None if goal is None else goal.met_by(median)
        verdict = "" if self.options.quick else f": {'met' if met else 'NOT met'}"
        told = "" if goal is None else f"  (goal {goal}{verdict})"
        self.say(f"{name}: {shown(median)} {unit}{told}")
        kept = [round(value, 3) for value in rounds]
        self.figures.append(
            Figure(
                name=name,
                unit=unit,
                median=round(median, 3),
                rounds=kept,
                goal=None if goal is None else str(goal),
                met=met,
            )
        )
        return median

    def save(self) -> None:
        """Keep a whole run in results/NAME.json."""
        if self.options.quick:
            self.say("quick: nothing kept")
            return
        RESULTS.mkdir(exist_ok=True)
        document = {
            "benchmark": f"{self.name}{self.variant}",
            "command": " ".join(["python -m", f"benchmarks.{self.name}", *_without_places(sys.argv[1:])]),
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": self.machine,
            "sizes": {name: value for name, value in vars(self.options).items() if name not in _NO_SIZES},
            "figures": [asdict(figure) for figure in self.figures],
            "notes": self.notes,
        }
        text = json.dumps(document, indent=1, ensure_ascii=False)
        (RESULTS / f"{self.name}{self.variant}.json").write_text(text + "\n", encoding="utf-8")


def _without_places(arguments: Sequence[str]) -> list[str]:
    """A command line as others would type it: where this machine keeps its data is nobody's matter."""
    shown: list[str] = []
    for word in arguments:
        before = shown[-1] if shown else ""
        shown.append("DIR" if before == "--keep" else "--keep=DIR" if word.startswith("--keep=") else word)
    return shown


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of an ordered list lies."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def shown(value: float) -> str:
    """A figure with as many digits as it is worth."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"


def machine() -> dict[str, str | float]:
    """What figures depend on."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(memory_bytes / 2**30),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sync_ms": round(_sync_ms(), 2),
        "load": round(os.getloadavg()[0], 2),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _sync_ms() -> float:
    """How long a small durable write takes: the least that an acknowledged change can."""
    taken = []
    with tempfile.NamedTemporaryFile(prefix="bench-", dir=Path.cwd(), buffering=0) as file:
        for _ in range(_SYNCS):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000
