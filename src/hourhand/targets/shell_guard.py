"""The worker's side of `shell_watch`: one watching process, started with the first command.

A worker that is killed leaves its commands behind, and their next attempts would meet them. The kernel's own way
(PR_SET_PDEATHSIG) needs code between fork and exec, and reaches neither grandchildren nor other systems.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from hourhand.telemetry import logger

_PROGRAM = Path(__file__).with_name("shell_watch.py")
_END_S = 1.0
_MOST_STARTS = 10  # of a watcher that somebody ends again and again
_NEEDED = ("LD_LIBRARY_PATH",)

_log = logger("hourhand.shell")


class Guard:
    """Tells the watcher which process groups live; starts another where it is gone."""

    def __init__(self) -> None:
        self._watcher: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()
        self._starts = 0

    def begin(self, group: int) -> None:
        """A command was started."""
        self._groups.add(group)
        if self._watcher is None:
            self._start()
        else:
            self._tell(f"+{group}\n")

    def end(self, group: int) -> None:
        """A command's whole group has ended."""
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """No more commands; what still lives is killed."""
        watcher, self._watcher = self._watcher, None
        if watcher is None or watcher.stdin is None:
            return
        watcher.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            watcher.wait(_END_S)

    def _start(self) -> None:
        self._watcher = None
        self._starts += 1
        if self._starts > _MOST_STARTS:
            return
        try:
            watcher = subprocess.Popen(  # noqa: S603 -- our own program
                [sys.executable, "-I", "-S", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={name: os.environ[name] for name in _NEEDED if name in os.environ},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("commands would outlive this worker if it were killed: no watcher", why=str(error))
            return
        assert watcher.stdin is not None
        os.set_blocking(watcher.stdin.fileno(), False)
        self._watcher = watcher
        self._tell("".join(f"+{group}\n" for group in self._groups))

    def _tell(self, text: str) -> None:
        watcher = self._watcher
        if watcher is None or watcher.stdin is None:
            return
        try:
            watcher.stdin.write(text.encode())
        except BlockingIOError:
            _log.warning("the watcher of commands does not listen")
        except OSError:  # it is gone
            watcher.stdin.close()
            watcher.wait()
            _log.warning("the watcher of commands was ended; starting another", starts=self._starts)
            self._start()
