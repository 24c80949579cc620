"""A bound on a whole request: the HTTP library bounds each read and each write, and an answer that drips is many.

`Deadline` is for who waits. On an event loop `asyncio.timeout` does it, and `Sending` tells what had happened by then.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from hourhand.clock import monotonic_us
from hourhand.core.instant import SECOND_US

_CONNECTED = (".connect_tcp.complete", ".start_tls.complete")
_PIECE = 64 * 1024  # bytes that are written at once: what is left is looked at in between


class Deadline(threading.local):
    """Until when the request under way may take; its connections wait for no longer. Each thread has its own.

    Outside of `within`, as for streams, connections wait as the library tells them.
    """

    _most_s = 0.0
    _ends_us: int | None = None

    @contextmanager
    def within(self, most_s: float) -> Iterator[None]:
        """A request that is over by then, one way or another."""
        self._most_s, self._ends_us = most_s, monotonic_us() + int(most_s * SECOND_US)
        try:
            yield
        finally:
            self._ends_us = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """For the library's extension `trace`: takes hold of each connection as soon as there is one."""
        if event.endswith(_CONNECTED):
            self._hold(info["return_value"])

    def _hold(self, stream: Any) -> None:
        read, write, start_tls = stream.read, stream.write, stream.start_tls

        def bounded_read(max_bytes: int, timeout: float | None = None) -> Any:
            return read(max_bytes, self._left_s(timeout))

        def bounded_write(buffer: bytes, timeout: float | None = None) -> None:
            for at in range(0, len(buffer), _PIECE):
                write(buffer[at : at + _PIECE], self._left_s(timeout))

        def bounded_start_tls(timeout: float | None = None, **how: Any) -> Any:
            return start_tls(timeout=self._left_s(timeout), **how)

        stream.read, stream.write, stream.start_tls = bounded_read, bounded_write, bounded_start_tls

    def _left_s(self, timeout_s: float | None) -> float | None:
        if self._ends_us is None:
            return timeout_s
        left_s = (self._ends_us - monotonic_us()) / SECOND_US
        if left_s <= 0:
            raise httpx2.ReadTimeout(too_slow(self._most_s))
        return left_s if timeout_s is None else min(left_s, timeout_s)


class Sending:
    """Whether a request was begun to be sent, so that the server may have got it."""

    begun = False

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """For the library's extension `trace`."""
        self.begun = self.begun or event.endswith(".send_request_headers.started")


def too_slow(most_s: float) -> str:
    """In words for people."""
    return f"no whole answer within {most_s:g} s"
