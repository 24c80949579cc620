"""Runs the real command with a wall clock that the test can set: `jumping_clock.py FILE up …`.

FILE holds how far the clock is off, in microseconds, and may be rewritten while the command runs. The
monotonic clock goes on undisturbed, as it does when somebody sets a machine's time. `Dial` is the test's end.
"""

import mmap
import struct
import sys
import time
from pathlib import Path

_OFFSET = struct.Struct("<q")


class Dial:
    """Sets the clock of commands that were started with its file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset_us = 0
        self.path.write_bytes(_OFFSET.pack(0))

    @property
    def launcher(self) -> list[str]:
        """What to start instead of the command itself."""
        return [sys.executable, str(Path(__file__).resolve()), str(self.path)]

    def turn(self, by_us: int) -> None:
        """Set the clock forward, or back."""
        self.offset_us += by_us
        with self.path.open("r+b") as file:
            file.write(_OFFSET.pack(self.offset_us))

    def now(self) -> int:
        """What time it is for the command."""
        return time.time_ns() // 1000 + self.offset_us


def shift_time(path: Path) -> None:
    """From now on this process reads the wall clock through the file."""
    with path.open("rb") as file:
        shared = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    real_ns = time.time_ns

    def time_ns() -> int:
        return real_ns() + int(_OFFSET.unpack_from(shared)[0]) * 1000

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


if __name__ == "__main__":
    shift_time(Path(sys.argv[1]))
    from hourhand.__main__ import main

    del sys.argv[1]
    main()
