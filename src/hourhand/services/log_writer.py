"""Writes down what attempts say: texts of all attempts of a process, in batches, a few times a second.

Memory is bounded: what one attempt may say is capped (`core.log`), and what waits for a slow store too; the rest is
left out, and the log says how much. `write` may come from any thread. A batch that fails is sent again as it was.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from hourhand.clock import Clock
from hourhand.core.identity import shard_of
from hourhand.core.log import CHUNK_COST_BYTES, HeadAndTail, LogChunk, Stream, pieces
from hourhand.core.run import ClaimedRun
from hourhand.errors import Unavailable
from hourhand.ports.log import AttemptLog
from hourhand.ports.store import Store
from hourhand.telemetry import logger

PERIOD_US = 200_000
BATCH_BYTES = 1 << 20
PENDING_BYTES = 8 << 20  # that wait for the store, over all attempts of a process on one database

_log = logger("hourhand.log")

_Entry = tuple[int, Stream, str]  # when, where from, what


class LogWriter:
    """What the attempts of one node say, on its way to the store."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()  # around everything that `write` touches
        self._waiting: deque[_Attempt] = deque()  # attempts with something to write down, each once
        self._pending_bytes = 0
        self._batch: list[LogChunk] = []  # on its way
        self._batch_bytes = 0
        self._batch_of: list[_Attempt] = []
        self._next_at = 0
        self._hurried = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_text: Callable[[], None] = lambda: None

    def open(self, run: ClaimedRun) -> "_Attempt":
        """The log of this attempt."""
        return _Attempt(self, run)

    def wakes(self, wake: Callable[[], None]) -> None:
        """Call this, on the running loop, when there is something to write down."""
        self._loop = asyncio.get_running_loop()
        self._on_text = wake

    async def step(self, now_at: int) -> int | None:
        """Write down a batch, unless the last one was only just written; answers when to come again."""
        if not self._batch:
            if not self._waiting:
                return None
            if now_at < self._next_at <= now_at + PERIOD_US and not self._hurried and not self._is_much:
                return self._next_at
            self._hurried = False
            self._gather()
        try:
            await self._store.append_log(self._batch)
        except Unavailable:
            raise
        except Exception:  # a mistake of ours, which another try would only repeat
            _log.exception("a piece of a log could not be kept")
        self._next_at = now_at + PERIOD_US
        with self._lock:
            self._pending_bytes -= self._batch_bytes
            done, self._batch_of = self._batch_of, []
            self._batch, self._batch_bytes = [], 0
            more = bool(self._waiting)
        for attempt in done:
            attempt.written()
        if not more:
            return None
        return now_at if self._hurried or self._is_much else self._next_at

    async def flush(self) -> None:
        """Write everything down; raises what the store raises."""
        while self._waiting or self._batch:
            self._hurried = True
            await self.step(self._clock.now())

    @property
    def _is_much(self) -> bool:
        """Whether a whole batch waits, which then waits for nothing."""
        return self._pending_bytes >= BATCH_BYTES

    # --- for its attempts

    def _add(self, attempt: "_Attempt", stream: Stream, text: str) -> bool:
        """Take a text; False where there is no room. The lock is held."""
        size = len(text.encode()) + CHUNK_COST_BYTES
        if self._pending_bytes + size > PENDING_BYTES:
            return False
        was_much = self._is_much
        self._pending_bytes += size
        if not attempt.entries:
            self._waiting.append(attempt)
        attempt.entries.append((self._clock.now(), stream, text))
        if self._is_much and not was_much:
            self._wake()
        return True

    def _wake(self, *, hurried: bool = False) -> None:
        self._hurried |= hurried
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(self._on_text)

    def _gather(self) -> None:
        """Make a batch of what waits, oldest attempt first."""
        with self._lock:
            while self._waiting and self._batch_bytes < BATCH_BYTES:
                attempt = self._waiting[0]
                self._batch_bytes += attempt.put(self._batch, BATCH_BYTES - self._batch_bytes)
                self._batch_of.append(attempt)
                if not attempt.entries:
                    self._waiting.popleft()


class _Attempt:
    """What one attempt says."""

    def __init__(self, writer: LogWriter, run: ClaimedRun) -> None:
        self._writer = writer
        self._run = run
        self._cap = HeadAndTail()
        self._seq = 0
        self._dropped_bytes = 0  # for want of room, since the last that was kept
        self._told_full = False
        self._settled: asyncio.Future[None] | None = None
        self.entries: deque[_Entry] = deque()

    @property
    def is_full(self) -> bool:
        """Whether only the end of what comes now is kept."""
        return self._cap.is_full

    def write(self, stream: Stream, text: str) -> None:
        """Add a text; see `ports.log`."""
        if not text:
            return
        with self._writer._lock:
            kept = self._cap.take(stream, text)
            first = not self.entries
            self._pass_on(stream, kept)
            if self._cap.is_full and not self._told_full:
                self._told_full = True
                self._pass_on(Stream.SYSTEM, "[from here on only the end is kept]\n")
            wake = first and bool(self.entries)
        if wake:
            self._writer._wake()

    async def close(self, patience_s: float) -> None:
        """Add the end of what was left out, and wait until all is durable, for a while."""
        with self._writer._lock:
            tail = self._cap.tail()
            if tail and self._cap.left_out_bytes:
                self._pass_on(Stream.SYSTEM, f"[{self._cap.left_out_bytes:,} bytes left out]\n")
            for stream, text in tail:
                self._pass_on(stream, text)
            if self._dropped_bytes:
                self._tell_dropped()
            if not self.entries and self not in self._writer._batch_of:
                return
            self._settled = asyncio.get_running_loop().create_future()
        self._writer._wake(hurried=True)
        await asyncio.wait(
            {self._settled}, timeout=patience_s
        )  # else it is written down when the store answers

    def put(self, batch: list[LogChunk], room_bytes: int) -> int:
        """Move what fits to a batch; says how many bytes that was. The writer's lock is held."""
        taken = 0
        while self.entries and taken < room_bytes:
            at, stream, text = self.entries.popleft()
            taken += len(text.encode()) + CHUNK_COST_BYTES
            texts = [text]
            while self.entries and self.entries[0][1] is stream and taken < room_bytes:  # what came together
                more = self.entries.popleft()[2]
                taken += len(more.encode()) + CHUNK_COST_BYTES
                texts.append(more)
            for piece in pieces("".join(texts)):
                batch.append(self._chunk(at, stream, piece))
        return taken

    def written(self) -> None:
        """A batch with something of it is durable."""
        if self._settled is not None and not self.entries and not self._settled.done():
            self._settled.set_result(None)

    def _pass_on(self, stream: Stream, text: str) -> None:
        if not text:
            return
        if (self._dropped_bytes and not self._tell_dropped()) or not self._writer._add(self, stream, text):
            self._dropped_bytes += len(text.encode())

    def _tell_dropped(self) -> bool:
        words = f"[{self._dropped_bytes:,} bytes left out: the store was slow]\n"
        if not self._writer._add(self, Stream.SYSTEM, words):
            return False
        self._dropped_bytes = 0
        return True

    def _chunk(self, at: int, stream: Stream, text: str) -> LogChunk:
        self._seq += 1
        return LogChunk(
            job_id=self._run.job_id,
            scheduled_at=self._run.scheduled_at,
            attempt=self._run.fence,
            seq=self._seq,
            at=at,
            stream=stream,
            text=text,
        )


class LogRouter:
    """The logs of a process with several databases: each attempt's goes where its job is."""

    def __init__(self) -> None:
        self._writers: dict[int, LogWriter] = {}

    def add(self, writer: LogWriter, shard: int = 0) -> None:
        """One more database."""
        self._writers[shard] = writer

    def open(self, run: ClaimedRun) -> AttemptLog:
        """The log of this attempt, in its job's database."""
        writers = self._writers
        return (writers[shard_of(run.job_id)] if len(writers) > 1 else next(iter(writers.values()))).open(run)
