"""Claimed runs and a server of the tests' own, shared by the tests of all targets."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from hourhand.core.model import Delivery, EveryTiming, HttpTarget, JobSpec, PythonTarget, Target
from hourhand.core.run import ClaimedRun

SCHEDULED_AT = 1_794_816_000_000_000  # 2026-11-16T08:00:00Z
DEADLINE_AT = SCHEDULED_AT + 300_000_000
WAIT_S = 5.0  # no test waits this long unless it fails


def claimed(
    target: Target, payload: Any = None, *, fence: int = 1, delivery: Delivery = Delivery.AT_LEAST_ONCE
) -> ClaimedRun:
    spec = JobSpec(
        timing=EveryTiming(interval_us=60_000_000, phase_at=0),
        target=target,
        payload=msgspec.Raw(msgspec.json.encode(payload)),
        delivery=delivery,
    )
    return ClaimedRun(
        job_id=77,
        slot=0,
        scheduled_at=SCHEDULED_AT,
        due_at=SCHEDULED_AT,
        fence=fence,
        tries=0,
        trigger_code=0,
        deadline_at=DEADLINE_AT,
        version=1,
        tenant="default",
        spec=spec,
    )


def http_run(url: str, payload: Any = None, *, timeout_ms: int = 5_000, **fields: Any) -> ClaimedRun:
    delivery = fields.pop("delivery", Delivery.AT_LEAST_ONCE)
    target = HttpTarget(url=url, timeout_us=timeout_ms * 1000, **fields)
    return claimed(target, payload, delivery=delivery)


def python_run(function: Any, payload: Any = None, **fields: Any) -> ClaimedRun:
    name = function if isinstance(function, str) else function.function_name
    return claimed(PythonTarget(function=name), payload, **fields)


class LocalServer:
    """Hands each connection to a handler, and counts them."""

    def __init__(
        self, handler: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    ) -> None:
        self._handler = handler
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.connections = 0
        self.port = 0
        self.hung_up = asyncio.Event()  # the other side closed a connection

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._handler(reader, writer)
            while await reader.read(65_536):
                pass
            self.hung_up.set()
        except (ConnectionError, asyncio.CancelledError):
            self.hung_up.set()
        finally:
            writer.close()
            self._tasks.discard(task)


class Request:
    """A request as it came over the wire."""

    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        self.method, self.path, _ = first.split(" ")
        self.pairs = [tuple(line.split(": ", 1)) for line in lines]
        self.headers = {name.lower(): value for name, value in self.pairs}
        self.body = body


async def read_request(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    length = Request(head, b"").headers.get("content-length", "0")
    return Request(head, await reader.readexactly(int(length)))


def answer(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
