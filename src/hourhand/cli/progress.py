"""How far long work is, on a terminal only, and gone when it is done."""

import sys
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self, TypeVar

BAR_WIDTH = 24
_STEPS = 200  # how often a bar is drawn, at most
_STRIDE = 50  # and how seldom, where nobody knows the end


T = TypeVar("T")


class Progress:
    """A bar that is written over; without a bar where `total` is unknown."""

    def __init__(self, verb: str, total: int | None = None, *, wanted: bool = True) -> None:
        self._verb = verb
        self._total = total
        self._shows = wanted and sys.stderr.isatty()
        self._done = 0
        self._stride = max(1, total // _STEPS) if total else _STRIDE
        self._drawn = 0

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
        if not self._shows or (self._done - self._drawn < self._stride and self._done != self._total):
            return
        self._drawn = self._done
        sys.stderr.write(f"\r\x1b[K{self._line()}")
        sys.stderr.flush()

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items, one more done with each."""
        for item in items:
            yield item
            self.add(1)

    @property
    def shows(self) -> bool:
        """Whether anybody sees it."""
        return self._shows

    def _line(self) -> str:
        if not self._total:
            return f"{self._verb} {self._done:,}"
        share = min(1.0, self._done / self._total)
        bar = "#" * int(share * BAR_WIDTH)
        return f"{self._verb} [{bar:.<{BAR_WIDTH}}] {share:4.0%}  {self._done:,} of {self._total:,}"
