"""Runs a test against a copy of the source with one safeguard switched off, and says whether it noticed.

The copy goes first on the import path of a process of its own. Noticing means that a test failed, with the words
that the table expects; a process that could not even begin, or took too long, has shown nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.mutants.table import Mutant

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
LIMIT_S = 240
_FAILED = 1  # pytest's exit code where tests ran and some failed
_TAIL = 12


class Finding(NamedTuple):
    """What became of one mutant."""

    mutant: Mutant
    noticed: bool
    took_s: float
    why: str = ""


class CannotApply(Exception):
    """The text that a mutant replaces is not in the source exactly once."""


def mutated(mutant: Mutant, text: str) -> str:
    """The text of its file with the safeguard switched off."""
    count = text.count(mutant.old)
    if count != 1:
        raise CannotApply(f"{mutant.name}: its text occurs {count} times in {mutant.file}, not once")
    return text.replace(mutant.old, mutant.new)


def try_out(mutant: Mutant, *, server_url: str | None = None, limit_s: float = LIMIT_S) -> Finding:
    """Switch one safeguard off and run the test that is to notice."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hourhand-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "hourhand" / mutant.file
        path.write_text(mutated(mutant, path.read_text("utf-8")), "utf-8")
        try:
            code, output = run_tests([mutant.caught_by], source, server_url=server_url, limit_s=limit_s)
        except subprocess.TimeoutExpired:
            return Finding(mutant, False, time.monotonic() - began_s, f"no answer within {limit_s:g} s")
    took_s = time.monotonic() - began_s
    if code != _FAILED:
        return Finding(mutant, False, took_s, f"exit code {code}\n{output}")
    if mutant.says not in output:
        return Finding(mutant, False, took_s, f"failed without saying {mutant.says!r}\n{output}")
    return Finding(mutant, True, took_s, _complaint(output))


def run_tests(tests: list[str], source: Path, *, server_url: str | None, limit_s: float) -> tuple[int, str]:
    """The exit code and last words of some tests with this source."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if server_url is not None:
        environment["HOURHAND_TEST_POSTGRES_URL"] = server_url
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=short"]
    command += ["-m", ""]  # those of `make soak` too
    done = subprocess.run(
        [*command, "-o", "faulthandler_timeout=0", *tests],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    return done.returncode, done.stdout[-20_000:]


def _complaint(output: str) -> str:
    """What the first test that failed said."""
    said = [line[1:].strip() for line in output.splitlines() if line.startswith("E  ")]
    return said[0] if said else ""


def shortened(text: str) -> str:
    """The last lines of an output."""
    return "\n".join(text.splitlines()[-_TAIL:])
