"""What a command of a shell target may be, and what its exit code means.

Pure. Values of the environment and arguments may be secret, so no fault ever shows one.
"""

import re
from enum import Enum

from hourhand.core.fault import Fault
from hourhand.core.model import ShellTarget

MAX_ARGUMENTS = 256
MAX_VARIABLES = 128
MAX_COMMAND_BYTES = 64 * 1024  # of arguments and environment together; a document has little more
MAX_PATH = 4_096
MAX_CODES = 64
RESERVED_PREFIX = "HOURHAND_"
RUN_VARIABLES = frozenset(  # what a command is told about its run
    f"HOURHAND_{name}"
    for name in ("RUN_ID", "IDEMPOTENCY_KEY", "JOB", "SCHEDULED_AT", "ATTEMPT", "DEADLINE", "PAYLOAD")
)
SIGNALLED = 128  # a command that a signal ended counts as 128 + its number, as shells have it

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_UNUSABLE = re.compile(r"[\x00\ud800-\udfff]")


class Meaning(Enum):
    """What an exit code says about the run."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    FAILED_FOR_GOOD = "failed for good"


def meaning_of(code: int, target: ShellTarget) -> Meaning:
    """What a command that ended with this code did; a signal's is 128 and its number."""
    if code in target.success_codes:
        return Meaning.SUCCEEDED
    return Meaning.FAILED_FOR_GOOD if code in target.no_retry_codes else Meaning.FAILED


def shell_faults(target: ShellTarget, pointer: str = "/target") -> list[Fault]:
    """Everything that is wrong with a command; an empty list is good."""
    faults = _argument_faults(target.argv, f"{pointer}/argv")
    faults += _environment_faults(target.env, f"{pointer}/env")
    size_bytes = sum(map(_size, (*target.argv, *target.env, *target.env.values())))
    if size_bytes > MAX_COMMAND_BYTES:
        expected = f"at most {MAX_COMMAND_BYTES:,} bytes of arguments and environment"
        faults.append(Fault(pointer=pointer, expected=expected, got=f"{size_bytes:,} bytes"))
    if target.cwd is not None and not _is_path(target.cwd):
        expected = f"an absolute path of at most {MAX_PATH:,} characters"
        faults.append(Fault(pointer=f"{pointer}/cwd", expected=expected))
    for name in ("success_codes", "no_retry_codes"):
        faults += _code_faults(getattr(target, name), f"{pointer}/{name}")
    return faults


def _argument_faults(argv: tuple[str, ...], pointer: str) -> list[Fault]:
    if not argv or not argv[0]:
        return [Fault(pointer=pointer, expected="a command and its arguments", got="none")]
    if len(argv) > MAX_ARGUMENTS:
        expected = f"at most {MAX_ARGUMENTS} arguments"
        return [Fault(pointer=pointer, expected=expected, got=str(len(argv)))]
    return [
        Fault(pointer=f"{pointer}/{place}", expected="a text without NUL, in UTF-8")
        for place, argument in enumerate(argv)
        if _UNUSABLE.search(argument)
    ]


def _environment_faults(env: dict[str, str], pointer: str) -> list[Fault]:
    if len(env) > MAX_VARIABLES:
        return [Fault(pointer=pointer, expected=f"at most {MAX_VARIABLES} variables", got=str(len(env)))]
    faults = []
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name):
            expected = "names of letters, digits and _ that do not begin with a digit"
            faults.append(Fault(pointer=pointer, expected=expected, got=repr(name[:40])))
        elif name.startswith(RESERVED_PREFIX):
            expected = f"names that do not begin with {RESERVED_PREFIX}, which are hourhand's own"
            faults.append(Fault(pointer=f"{pointer}/{name}", expected=expected, got=name))
        elif _UNUSABLE.search(value):
            faults.append(Fault(pointer=f"{pointer}/{name}", expected="a text without NUL, in UTF-8"))
    return faults


def _code_faults(codes: tuple[int, ...], pointer: str) -> list[Fault]:
    if len(codes) > MAX_CODES:
        return [Fault(pointer=pointer, expected=f"at most {MAX_CODES} exit codes", got=str(len(codes)))]
    expected = "exit codes from 0 to 255"
    return [
        Fault(pointer=f"{pointer}/{place}", expected=expected, got=str(code)[:20])
        for place, code in enumerate(codes)
        if not 0 <= code <= 255
    ]


def _is_path(text: str) -> bool:
    return text.startswith("/") and len(text) <= MAX_PATH and not _UNUSABLE.search(text)


def _size(text: str) -> int:
    return len(text.encode(errors="replace")) + 1
