"""Commands: what is refused before anything is stored, and what exit codes mean."""

from typing import Any

import pytest

from hourhand.core.model import NO_RETRY_CODES, ShellTarget
from hourhand.core.shell import (
    MAX_ARGUMENTS,
    MAX_CODES,
    MAX_COMMAND_BYTES,
    MAX_VARIABLES,
    Meaning,
    meaning_of,
    shell_faults,
)


def target(*argv: str, **fields: Any) -> ShellTarget:
    return ShellTarget(argv=argv or ("true",), **fields)


@pytest.mark.parametrize(
    "good",
    [
        target("echo", "", "a b", "ü", "line\nline", "-x"),
        target(env={"A": "", "_b1": "x=y", "PATH": "/bin"}),
        target(cwd="/"),
        target(success_codes=(0, 255), no_retry_codes=()),
    ],
)
def test_good_commands(good: ShellTarget) -> None:
    assert shell_faults(good) == []


@pytest.mark.parametrize(
    ("bad", "pointer"),
    [
        (ShellTarget(argv=()), "/target/argv"),
        (target(""), "/target/argv"),
        (target("a", "b\0c"), "/target/argv/1"),
        (target("a", "\ud800"), "/target/argv/1"),
        (target(*["a"] * (MAX_ARGUMENTS + 1)), "/target/argv"),
        (target("a" * MAX_COMMAND_BYTES), "/target"),
        (target(env={"A": "x" * MAX_COMMAND_BYTES}), "/target"),
        (target(env={f"A{n}": "" for n in range(MAX_VARIABLES + 1)}), "/target/env"),
        (target(env={"1A": ""}), "/target/env"),
        (target(env={"": ""}), "/target/env"),
        (target(env={"A=B": ""}), "/target/env"),
        (target(env={"A\n": ""}), "/target/env"),
        (target(env={"HOURHAND_RUN_ID": "x"}), "/target/env/HOURHAND_RUN_ID"),
        (target(env={"A": "x\0"}), "/target/env/A"),
        (target(cwd="relative"), "/target/cwd"),
        (target(cwd=""), "/target/cwd"),
        (target(cwd="/a\0"), "/target/cwd"),
        (target(cwd="/" + "a" * 5_000), "/target/cwd"),
        (target(success_codes=(256,)), "/target/success_codes/0"),
        (target(no_retry_codes=(1, -1)), "/target/no_retry_codes/1"),
        (target(no_retry_codes=(1,) * (MAX_CODES + 1)), "/target/no_retry_codes"),
    ],
)
def test_bad_commands(bad: ShellTarget, pointer: str) -> None:
    assert [fault.pointer for fault in shell_faults(bad)] == [pointer]


def test_faults_show_no_values() -> None:
    bad = target("run", "canary\0", env={"A": "canary\0"}, cwd="canary")
    assert "canary" not in repr(shell_faults(bad))


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (0, Meaning.SUCCEEDED),
        (1, Meaning.FAILED),
        (2, Meaning.FAILED),
        (75, Meaning.FAILED),  # "try again later", by its own name
        (137, Meaning.FAILED),  # killed
        *((code, Meaning.FAILED_FOR_GOOD) for code in NO_RETRY_CODES),
    ],
)
def test_what_codes_mean_unless_told_otherwise(code: int, meaning: Meaning) -> None:
    assert meaning_of(code, target()) is meaning


def test_what_codes_mean_is_the_jobs_to_say() -> None:
    told = target(success_codes=(0, 1), no_retry_codes=(1, 2, 137))
    assert [meaning_of(code, told) for code in (0, 1, 2, 127, 137)] == [
        Meaning.SUCCEEDED,
        Meaning.SUCCEEDED,
        Meaning.FAILED_FOR_GOOD,
        Meaning.FAILED,
        Meaning.FAILED_FOR_GOOD,
    ]
