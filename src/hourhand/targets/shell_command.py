"""One command: a process group of its own, its output as it comes, and its end.

The group is the unit: at the end of the command, or when it must end, whatever is left of it is killed while the
leader is still there to be waited for, so that its number cannot have been given to somebody else.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import IO

from hourhand.core.log import Stream, TextDecoder
from hourhand.core.model import ShellTarget
from hourhand.core.shell import SIGNALLED
from hourhand.ports.log import AttemptLog

_READ_BYTES = 64 * 1024
_LAST_WORDS_S = 0.25  # for output that is under way when the command has ended
_DEAD_S = 0.5  # for the kernel to end what was killed
_FLOOD_PAUSE_S = 0.001  # between two reads of output that is only counted, for each command that has so much


class Floods:
    """How many commands say more than is kept: they share what reading may cost."""

    def __init__(self) -> None:
        self.count = 0

    @property
    def pause_s(self) -> float:
        """Between two reads of one of them."""
        return self.count * _FLOOD_PAUSE_S


def stdin_of(payload: bytes) -> IO[bytes]:
    """A payload as a file, so that nobody has to feed it to the command."""
    if sys.platform == "linux":
        file: IO[bytes] = open(os.memfd_create("payload"), "w+b", buffering=0)  # noqa: SIM115 -- the caller closes it
    else:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    file.write(payload)
    file.seek(0)
    return file


class Command:
    """A running command. Started by `start`; everything else on the event loop."""

    def __init__(self, process: subprocess.Popen[bytes], log: AttemptLog, floods: Floods) -> None:
        self._process = process
        self._log = log
        self._floods = floods
        self._is_flood = False
        self._decoder = TextDecoder()
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._silent: asyncio.Future[None] = self._loop.create_future()  # nobody can say anything any more
        assert process.stdout is not None
        self._output = process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._read)
        self._watch()

    @classmethod
    def start(
        cls, target: ShellTarget, env: Mapping[str, str], payload: bytes, log: AttemptLog, floods: Floods
    ) -> "Command":
        """Start it; raises OSError or ValueError where that is not possible."""
        with stdin_of(payload) if payload else open(os.devnull, "rb") as stdin:
            process = subprocess.Popen(  # noqa: S603 -- what its operator allowed
                target.argv,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=env,
                cwd=target.cwd,
                start_new_session=True,
            )
        return cls(process, log, floods)

    @property
    def group(self) -> int:
        """Its process group."""
        return self._process.pid

    async def ended(self) -> None:
        """Until the command itself has ended; others of its group may not have."""
        await asyncio.wait({self._exited})

    async def terminate(self, grace_s: float) -> None:
        """Ask the group to end, and wait until it has, for a while; a second cancellation cuts that short."""
        self.signal(signal.SIGTERM)
        await asyncio.wait({self._exited, self._silent}, timeout=grace_s)

    async def finish(self) -> int:
        """Kill what is left of the group; the exit code, that of a signal as 128 and its number."""
        self.signal(signal.SIGKILL)
        with contextlib.suppress(asyncio.CancelledError):  # whoever hurries gets what there is
            await asyncio.wait({self._exited}, timeout=_DEAD_S)
            await asyncio.wait({self._silent}, timeout=_LAST_WORDS_S)
        self._stop_reading()
        code = self._process.poll()
        if code is None:  # it does not even die; nobody waits for it any more
            return SIGNALLED + signal.SIGKILL
        return SIGNALLED - code if code < 0 else code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    # --- its end

    def _watch(self) -> None:
        try:
            handle = os.pidfd_open(self._process.pid)  # type: ignore[attr-defined, unused-ignore]
        except (AttributeError, OSError):  # not on this system
            threading.Thread(target=self._wait_on_thread, name="hourhand-command", daemon=True).start()
            return
        self._loop.add_reader(handle, self._handle_ready, handle)

    def _wait_on_thread(self) -> None:
        if hasattr(os, "waitid"):  # leaves the process to be waited for, so that its number stays its own
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._has_exited)

    def _handle_ready(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        os.close(handle)
        self._has_exited()

    def _has_exited(self) -> None:
        if not self._exited.done():
            self._exited.set_result(None)

    # --- what it says

    def _read(self) -> None:
        try:
            data = os.read(self._output, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        self._log.write(Stream.OUTPUT, self._decoder.text(data, final=not data))
        if not data:
            self._loop.remove_reader(self._output)
            self._silent.set_result(None)
        elif self._log.is_full:
            self._wait_a_little()

    def _wait_a_little(self) -> None:
        """Output that is left out anyway must not keep the event loop busy; the command waits meanwhile."""
        if not self._is_flood:
            self._is_flood = True
            self._floods.count += 1
        self._loop.remove_reader(self._output)
        self._loop.call_later(self._floods.pause_s, self._read_on)

    def _read_on(self) -> None:
        if not self._silent.done():
            self._loop.add_reader(self._output, self._read)

    def _stop_reading(self) -> None:
        if self._is_flood:
            self._floods.count -= 1
        if not self._silent.done():
            self._loop.remove_reader(self._output)
            self._log.write(Stream.OUTPUT, self._decoder.text(b"", final=True))
            self._silent.set_result(None)
        assert self._process.stdout is not None
        self._process.stdout.close()
