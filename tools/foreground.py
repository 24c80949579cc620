"""Run a command so that Ctrl-C reaches it and not `make`, and end with the command's own status.

At Ctrl-C the terminal signals its whole foreground process group. GNU make, once signalled, always ends as
interrupted, even if the command drained and exited 0. So on a terminal the command gets a process group of its
own, and the terminal with it, as a shell would do; this process waits, passes on signals and Ctrl-Z, and takes
the terminal back. Without a terminal the command simply replaces this process. Standard library only.
"""

import contextlib
import os
import signal
import sys
from types import FrameType

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def main(command: list[str]) -> int:
    if not command:
        sys.stderr.write("usage: foreground.py COMMAND [ARGUMENT...]\n")
        return 2
    terminal = foreground_terminal()
    if terminal is None:
        os.execvp(command[0], command)
    return run_in_own_group(command, terminal)


def foreground_terminal() -> int | None:
    """The controlling terminal, if there is one and this process group has it now."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    if os.tcgetpgrp(terminal) == os.getpgrp():
        return terminal
    os.close(terminal)
    return None


def run_in_own_group(command: list[str], terminal: int) -> int:
    # A process outside the foreground group that hands the terminal over is stopped, unless it ignores this.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        become(command, terminal)
    enter_own_group(child)
    os.tcsetpgrp(terminal, child)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        os.killpg(child, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    try:
        return wait(child, terminal)
    finally:
        os.tcsetpgrp(terminal, os.getpgrp())


def become(command: list[str], terminal: int) -> None:
    """In the child: take group and terminal (whichever of parent and child is first), then be the command."""
    try:
        enter_own_group(0)
        os.tcsetpgrp(terminal, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
    finally:
        os._exit(127)


def enter_own_group(process: int) -> None:
    # Refused if the other side was first and the command already runs, or is already gone.
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(process, process)


def wait(child: int, terminal: int) -> int:
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        # Ctrl-Z: stop our whole group, make included, so that the shell notices; go on when it continues us.
        os.tcsetpgrp(terminal, os.getpgrp())
        os.killpg(0, signal.SIGTSTP)
        if os.tcgetpgrp(terminal) == os.getpgrp():
            os.tcsetpgrp(terminal, child)
        os.killpg(child, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
