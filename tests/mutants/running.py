"""Runs what is to notice against a copy of the source with one safeguard switched off, and says whether it did.

The copy goes first on the import path of a process of its own. Noticing means that a seed broke the mutant's invariant,
or that a test failed with the words that the table expects; a process that could not even begin, or took too long, has
shown nothing. Nor has a seed that breaks an invariant on the source as it is.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import Mutant
from tests.mutants.simulated import BROKEN

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
LIMIT_S = 300
SEEDS = (2, 4, 0, 6, 8, 5, 1, 7, 9, 12)  # that are tried, after the one that noticed last time
_FAILED = 1  # pytest's exit code where tests ran and some failed
_TAIL = 12
_LONGEST = 200
_HERE = re.compile(
    rf"({re.escape(str(ROOT))}|{re.escape(tempfile.gettempdir())})[^'\" ]*"
)  # nobody's matter elsewhere


class Finding(NamedTuple):
    """What became of one mutant."""

    mutant: Mutant
    noticed: bool
    took_s: float
    why: str = ""  # what was said, or why that does not count
    seed: int | None = None


class CannotApply(Exception):
    """The text that a mutant replaces is not in the source exactly once."""


def mutated(mutant: Mutant, text: str) -> str:
    """The text of its file with the safeguard switched off."""
    count = text.count(mutant.old)
    if count != 1:
        raise CannotApply(f"{mutant.name}: its text occurs {count} times in {mutant.file}, not once")
    return text.replace(mutant.old, mutant.new)


def try_out(
    mutant: Mutant, *, first_seed: int | None = None, server_url: str | None = None, limit_s: float = LIMIT_S
) -> Finding:
    """Switch one safeguard off, and see whether what is to notice does."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hourhand-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "hourhand" / mutant.file
        path.write_text(mutated(mutant, path.read_text("utf-8")), "utf-8")
        try:
            if mutant.is_simulated:
                finding = _simulate(mutant, source, first_seed, limit_s)
            else:
                finding = _test(mutant, source, server_url, limit_s)
        except subprocess.TimeoutExpired:
            finding = Finding(mutant, False, 0, f"no answer within {limit_s:g} s")
    return finding._replace(took_s=time.monotonic() - began_s)


def run_tests(
    tests: Sequence[str], source: Path, *, server_url: str | None, limit_s: float
) -> tuple[int, str]:
    """The exit code and last words of some tests with this source."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=short"]
    command += ["-m", ""]  # those of `make soak` too
    command += ["-o", "faulthandler_timeout=0", *tests]
    return _run(command, source, limit_s, {"HOURHAND_TEST_POSTGRES_URL": server_url})


def run_seeds(
    how: str, invariant: str, seeds: Sequence[int], source: Path, limit_s: float
) -> tuple[int, str]:
    """The exit code and words of the simulation with this source."""
    command = [sys.executable, "-m", "tests.mutants.simulated", how, invariant, *map(str, seeds)]
    return _run(command, source, limit_s, {})


def shortened(text: str) -> str:
    """The last lines of an output."""
    return "\n".join(text.splitlines()[-_TAIL:])


def _simulate(mutant: Mutant, source: Path, first_seed: int | None, limit_s: float) -> Finding:
    seeds = [seed for seed in SEEDS if seed != first_seed]
    seeds = seeds if first_seed is None else [first_seed, *seeds]
    code, output = run_seeds(mutant.caught_by, mutant.invariant, seeds, source, limit_s)
    if code != BROKEN or not output[:1].isdigit():
        return Finding(mutant, False, 0, f"exit code {code}: no seed broke {mutant.invariant}\n{output}")
    seed, _, said = output.splitlines()[0].partition(" ")
    code, output = run_seeds(mutant.caught_by, "-", [int(seed)], SOURCE, limit_s)
    if code != 0:
        return Finding(mutant, False, 0, f"seed {seed} breaks something on the source as it is\n{output}")
    return Finding(mutant, True, 0, said[:_LONGEST], int(seed))


def _test(mutant: Mutant, source: Path, server_url: str | None, limit_s: float) -> Finding:
    code, output = run_tests([mutant.caught_by], source, server_url=server_url, limit_s=limit_s)
    if code != _FAILED:
        return Finding(mutant, False, 0, f"exit code {code}\n{output}")
    if mutant.says not in output:
        return Finding(mutant, False, 0, f"failed without saying {mutant.says!r}\n{output}")
    return Finding(mutant, True, 0, _complaint(output)[:_LONGEST])


def _run(
    command: Sequence[str], source: Path, limit_s: float, more: dict[str, str | None]
) -> tuple[int, str]:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        **{name: value for name, value in more.items() if value is not None},
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
    )
    said = done.stdout[-20_000:]
    return done.returncode, said if said.strip() else done.stderr[-5_000:]


def _complaint(output: str) -> str:
    """What the first test that failed said."""
    said = [line[1:].strip() for line in output.splitlines() if line.startswith("E  ")]
    return _HERE.sub("…", said[0]) if said else ""
