"""Frees the event loop from an async function that does not yield.

Such a function stops everything in its process: other runs, the API, even Ctrl-C. A thread watches the
loop's pulse; when it fails, a signal makes the interpreter look up in the main thread, and if it is
inside a job's function there, that call ends with `LoopHeld`. Anything else that is slow is left alone.
"""

import asyncio
import contextlib
import signal
import threading
from types import CodeType, FrameType

HOLD_MAX_S = 5.0
_PULSE_S = 0.25
_SIGNAL = signal.SIGUSR2


class LoopHeld(BaseException):
    """Raised inside a function that held the event loop for too long."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"held the event loop for {seconds:g} s")
        self.seconds = seconds


class LoopWatch:
    """Watches one loop, which must run in the main thread; `guarded` are the frames that call functions."""

    def __init__(self, guarded: CodeType, *, hold_max_s: float = HOLD_MAX_S) -> None:
        self._guarded = guarded
        self._hold_max_s = hold_max_s
        self._loop = asyncio.get_running_loop()
        self._pulse = threading.Event()
        self._stopped = threading.Event()
        self._main = threading.get_ident()
        self._before = signal.signal(_SIGNAL, self._look_up)
        self._beat()
        self._thread = threading.Thread(target=self._watch, name="hourhand-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()
        self._pulse.set()
        signal.signal(_SIGNAL, self._before)

    def _beat(self) -> None:
        if not self._stopped.is_set():
            self._pulse.set()
            self._loop.call_later(_PULSE_S, self._beat)

    def _watch(self) -> None:
        missed = 0
        while not self._stopped.is_set():
            if self._pulse.wait(self._hold_max_s / 2):
                missed = 0
                self._pulse.clear()
                self._stopped.wait(_PULSE_S)
                continue
            missed += 1
            if missed > 1:  # once may be a process that was stopped and goes on
                with contextlib.suppress(OSError):
                    signal.pthread_kill(self._main, _SIGNAL)

    def _look_up(self, number: int, frame: FrameType | None) -> None:
        """In the main thread, at whatever it is doing; the loop's own code is never interrupted."""
        inside = frame
        while inside is not None:
            if inside.f_code is self._guarded:
                if inside is not frame:
                    raise LoopHeld(self._hold_max_s)
                return
            inside = inside.f_back
