"""What `up` prints: a banner, then a line per run, or one per second when there are too many to read.

Gets simple values and decides nothing. Above the limit a run costs a few additions. Lines are written by
a thread of their own, since a terminal that is held (Ctrl-S) must not hold the scheduler.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TextIO

from hourhand.cli.text import clean, shortened
from hourhand.core.instant import MINUTE_US, SECOND_US
from hourhand.core.lifecycle import Event
from hourhand.core.url import masked_store_url

LINES_PER_SECOND = 20
NAME_WIDTH = 24
ERROR_WIDTH = 100
_PENDING_LINES = 1_000
_NEWS = {  # what has a line; the other events are steps on the way
    Event.SUCCEED: "succeeded",
    Event.RETRY: "failed and go on",
    Event.EXHAUST: "went to dead letters",
    Event.SKIP: "skipped",
    Event.CANCEL: "cancelled",
    Event.RELEASE: "wait for a worker that can run them",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The sign in front of a line."""

    good: str = "✓"
    bad: str = "✗"
    none: str = "–"


MARKS = Marks()
ASCII_MARKS = Marks(good="ok", bad="!!", none="--")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTry:
    """The retry that follows a failure."""

    number: int
    of: int
    delay_us: int


class Feed:
    """Turns what happens into lines. `zone` None is the machine's own."""

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        colour: bool = False,
        marks: Marks = MARKS,
        zone: tzinfo | None = None,
        lines_per_second: int = LINES_PER_SECOND,
    ) -> None:
        self._write = write
        self._colour = colour
        self._marks = marks
        self._zone = zone
        self._limit = lines_per_second
        self._second = 0
        self._room = lines_per_second
        self._width = 0
        self._shown = 0  # lines of the present second
        self._succeeded = 0  # its runs without a line; by far the most, so not looked up among the others
        self._others = dict.fromkeys(Event, 0)
        self._worst_lag_us = 0

    def banner(
        self,
        *,
        version: str,
        store: str,
        parts: Sequence[str],
        address: str,
        jobs: int,
        demo: Sequence[str],
        asks: bool = False,
    ) -> None:
        """Where everything is, and what to try next."""
        from hourhand.client.clients import DEFAULT_URL

        lines = [
            self._bold(f"hourhand {version}"),
            f"  store    {clean(masked_store_url(store))}",
            f"  running  {', '.join(parts)}",
            f"  address  {self._bold(address)}  (open it in a browser; API under /api/v1)",
            f"  jobs     {jobs:,}"
            + (f", among them for a start: {', '.join(map(clean, demo))}" if demo else ""),
            "Ctrl-C stops it after the running runs. In another terminal:",
            *([] if address == DEFAULT_URL else [f"  export HOURHAND_URL={address}"]),
            *(
                ["  export HOURHAND_TOKEN=…  # auth is on: commands and the page ask for a token"]
                if asks
                else []
            ),
            "  hourhand jobs list",
            '  hourhand jobs create ping --cron "*/5 * * * *" --url https://example.com/hook',
            "",
        ]
        self._write("\n".join(lines) + "\n")

    def settled(
        self,
        at: int,
        name: str,
        event: Event,
        lag_us: int = 0,
        took_us: int | None = None,
        *,
        error: str | None = None,
        reason: str | None = None,
        retry: NextTry | None = None,
        run_id: str | None = None,
    ) -> None:
        """An attempt ended, or a run without one. `at` is when, in microseconds."""
        second = at // SECOND_US
        if second != self._second:
            self._turn(second)
        if self._room <= 0:
            if lag_us > self._worst_lag_us:
                self._worst_lag_us = lag_us
            if event is Event.SUCCEED:
                self._succeeded += 1
            else:
                self._others[event] += 1
            return
        if event not in _NEWS:
            return
        self._room -= 1
        self._shown += 1
        self._line(at, name, event, self._words(event, lag_us, took_us, error, reason, retry, run_id))

    def tick(self, now_at: int) -> None:
        """Once a second: the summary of a second that had more runs than lines must not wait for another."""
        if now_at // SECOND_US != self._second:
            self._turn(now_at // SECOND_US)

    def say(self, words: str) -> None:
        """A line of its own, such as what a stop waits for."""
        self._write(f"{words}\n")

    def _turn(self, second: int) -> None:
        hidden = {event: self._others[event] for event in _NEWS} | {Event.SUCCEED: self._succeeded}
        count = sum(hidden.values())
        busy = self._shown + count > self._limit and second - self._second <= 1
        if count:
            self._summary(count, hidden)
            self._succeeded, self._others = 0, dict.fromkeys(Event, 0)
            self._worst_lag_us = 0
        self._shown = 0
        self._room = 0 if busy else self._limit
        self._second = second

    def _summary(self, count: int, hidden: dict[Event, int]) -> None:
        parts = [f"{hidden[event]:,} {words}" for event, words in _NEWS.items() if hidden[event]]
        runs = f"{count:,} {'more ' if self._shown else ''}run{'s' if count != 1 else ''}"
        clock = self._clock(self._second * SECOND_US)
        self._write(f"{clock} … {runs}: {', '.join(parts)}; worst {_length(self._worst_lag_us)} late\n")

    def _words(
        self,
        event: Event,
        lag_us: int,
        took_us: int | None,
        error: str | None,
        reason: str | None,
        retry: NextTry | None,
        run_id: str | None,
    ) -> str:
        match event:
            case Event.SUCCEED:
                took = "" if took_us is None else f", took {_length(took_us)}"
                return f"{_length(lag_us)} late{took}"
            case Event.RETRY:
                words = f"failed: {_brief(error)}"
                if retry is None:
                    return words
                return f"{words}; retry {retry.number}/{retry.of} in {_length(retry.delay_us)}"
            case Event.EXHAUST:
                where = f"; dead letter: hourhand dlq show {run_id}" if run_id else "; dead letter"
                return f"failed: {_brief(error)}{where}"
            case Event.RELEASE:
                why = f"; hourhand why {run_id}" if run_id else ""
                return f"waits: {_brief(error)}{why}"
            case Event.SKIP:
                return f"skipped: {_brief(reason)}"
            case _:
                return f"cancelled: {_brief(reason)}" if reason else "cancelled"

    def _line(self, at: int, name: str, event: Event, words: str) -> None:
        name = shortened(clean(name), NAME_WIDTH)
        self._width = max(self._width, len(name))
        mark, colour = self._marks.none, "33"
        if event is Event.SUCCEED:
            mark, colour = self._marks.good, "32"
        elif event in (Event.RETRY, Event.EXHAUST):
            mark, colour = self._marks.bad, "31"
        if self._colour:
            mark = f"\x1b[{colour}m{mark}\x1b[0m"
        self._write(f"{self._clock(at)} {mark} {name:<{self._width}}  {words}\n")

    def _clock(self, at: int) -> str:
        return f"{datetime.fromtimestamp(at // SECOND_US, UTC).astimezone(self._zone):%H:%M:%S}"

    def _bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._colour else text


class LineWriter:
    """Writes to a stream from a thread; drops lines while the stream takes none, goes quiet once it is closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(_PENDING_LINES)
        self._thread = threading.Thread(target=self._write_all, name="feed", daemon=True)
        self._thread.start()

    def __call__(self, text: str) -> None:
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(text)

    def close(self, timeout_s: float = 1.0) -> None:
        """Write what is left, unless nobody takes it."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)

    def _write_all(self) -> None:
        while (text := self._lines.get()) is not None:
            try:
                self._stream.write(text)
                if self._lines.empty():
                    self._stream.flush()
            except (OSError, ValueError):  # the reader is gone, or the stream is closed
                return


def feed_for(stream: TextIO, *, colour: bool) -> tuple[Feed, LineWriter]:
    """A feed to a stream, in signs that its encoding knows; close the writer at the end."""
    writer = LineWriter(stream)
    try:
        "✓✗–…".encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return Feed(lambda text: writer(text.replace("…", "...")), marks=ASCII_MARKS, colour=colour), writer
    return Feed(writer, colour=colour), writer


def _length(length_us: int) -> str:
    """A duration as people say it, with two or three digits."""
    if length_us < 1_000:
        return "0 ms" if length_us < 500 else "1 ms"
    if length_us < SECOND_US:
        return f"{round(length_us / 1_000)} ms"
    if length_us < MINUTE_US:
        return f"{length_us / SECOND_US:.3g} s"
    return f"{length_us // MINUTE_US} min {length_us % MINUTE_US // SECOND_US} s"


def _brief(text: str | None) -> str:
    return shortened(clean(text or "no reason given"), ERROR_WIDTH)
