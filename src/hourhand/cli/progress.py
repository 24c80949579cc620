"""How far long work is, on a terminal only, and gone when it is done."""

import sys
from types import TracebackType
from typing import Self


class Progress:
    """A line that is written over; `total` may be unknown."""

    def __init__(self, verb: str, total: int | None = None, *, wanted: bool = True) -> None:
        self._verb = verb
        self._total = total
        self._shows = wanted and sys.stderr.isatty()
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def add(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        if self._shows:
            of = f" of {self._total:,}" if self._total is not None else ""
            sys.stderr.write(f"\r\x1b[K{self._verb} {self._done:,}{of}")
            sys.stderr.flush()
