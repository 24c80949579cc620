"""What an attempt wrote: chunks of text in order, capped so that its beginning and its end stay.

Pure, but for what a cap and a decoder remember. Who writes them down and when is `services.log_writer`'s matter.
"""

import codecs
from collections import deque
from enum import StrEnum

import msgspec

CHUNK_BYTES = 16 * 1024  # of one chunk, at most
HEAD_BYTES = 960 * 1024  # that are kept of an attempt from its beginning
TAIL_BYTES = 64 * 1024  # and from its end
CHUNK_COST_BYTES = 64  # what a chunk costs beside its text, so that many small ones are capped too


class Stream(StrEnum):
    """Where a chunk came from."""

    OUTPUT = "output"  # stdout and stderr of a command, in the order in which they were written
    LOG = "log"  # `ctx.log` of a function
    SYSTEM = "system"  # what hourhand has to say about it


STREAMS = tuple(Stream)
STREAM_CODES = {stream: code for code, stream in enumerate(STREAMS)}


class LogChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A piece of what one attempt wrote; `seq` counts from 1 within the attempt."""

    job_id: int
    scheduled_at: int
    attempt: int
    seq: int
    at: int
    stream: Stream
    text: str


class LogPlace(msgspec.Struct, frozen=True, order=True):
    """Where in a run's log somebody is: behind this chunk of this attempt."""

    attempt: int = 0
    seq: int = 0


class TextDecoder:
    """Bytes as they come, to text that every store takes: what is no UTF-8 is replaced, and so is NUL."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def text(self, data: bytes, *, final: bool = False) -> str:
        """The text of the bytes so far; a character that is cut in two waits for its rest."""
        return self._decoder.decode(data, final).replace("\x00", "\ufffd")


def storable(text: str) -> str:
    """Text that every store takes."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\ufffd")


class HeadAndTail:
    """Passes text on until there is enough, then keeps only the last of it."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._room_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._tail: deque[tuple[Stream, str]] = deque()
        self._kept_bytes = 0  # in the tail
        self.left_out_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether only the end of what comes now is kept."""
        return self._room_bytes <= 0

    def take(self, stream: Stream, text: str) -> str:
        """What of it is passed on now; the rest may be in the tail."""
        if self._room_bytes > 0:
            cost = len(text.encode()) + CHUNK_COST_BYTES
            if cost <= self._room_bytes:
                self._room_bytes -= cost
                return text
            head = text.encode()[: max(0, self._room_bytes - CHUNK_COST_BYTES)].decode(errors="ignore")
            self._room_bytes = 0
            self._keep(stream, text[len(head) :])
            return head
        self._keep(stream, text)
        return ""

    def tail(self) -> list[tuple[Stream, str]]:
        """The end of what was not passed on, once nothing comes any more."""
        return list(self._tail)

    def _keep(self, stream: Stream, text: str) -> None:
        self._tail.append((stream, text))
        self._kept_bytes += len(text.encode()) + CHUNK_COST_BYTES
        while (over := self._kept_bytes - self._tail_bytes - CHUNK_COST_BYTES) > 0:
            stream, oldest = self._tail.popleft()
            data = oldest.encode()
            rest = data[over:].decode(errors="ignore")
            gone = len(data) - len(rest.encode())
            self.left_out_bytes += gone
            self._kept_bytes -= gone
            if rest:
                self._tail.appendleft((stream, rest))
                return
            self._kept_bytes -= CHUNK_COST_BYTES


def pieces(text: str, size_bytes: int = CHUNK_BYTES) -> list[str]:
    """A text in pieces of at most so many bytes, none of them cutting a character."""
    data = text.encode()
    if len(data) <= size_bytes:
        return [text] if text else []
    found, start = [], 0
    while start < len(data):
        end = min(start + size_bytes, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:  # in the middle of a character
            end -= 1
        found.append(data[start:end].decode())
        start = end
    return found
