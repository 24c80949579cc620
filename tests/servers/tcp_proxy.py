"""A TCP proxy that fails as networks fail: resets, refuses, stalls, delays, loses exactly one reply.

`TcpProxy` runs on the caller's event loop, `ThreadedTcpProxy` on a loop of its own thread for tests without
one, and as a process it prints its port and takes the same faults as lines on its input:

    python -m tests.servers.tcp_proxy 127.0.0.1:5432
"""

import asyncio
import contextlib
import enum
import functools
import socket
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

_CHUNK = 65_536
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 seconds
_CALL_S = 10.0


class Direction(enum.StrEnum):
    """Which way bytes go."""

    TO_SERVER = "to_server"
    TO_CLIENT = "to_client"
    BOTH = "both"

    @property
    def ways(self) -> tuple["Direction", ...]:
        """One or both of the ways."""
        return (Direction.TO_SERVER, Direction.TO_CLIENT) if self is Direction.BOTH else (self,)


class _Moment(enum.Enum):
    BEFORE_SERVER = enum.auto()
    BEFORE_REPLY = enum.auto()
    AFTER_REPLY = enum.auto()


@dataclass(eq=False)
class Trap:
    """Waits for bytes of any client, then cuts that one connection, once."""

    pattern: bytes
    reply: bytes
    moment: _Moment
    caught: bool = False  # the pattern was seen
    sprung: bool = False  # the connection was cut


@dataclass(eq=False)
class _Link:
    """A client's connection and ours to the server in its stead."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    pumps: list["asyncio.Task[None]"] = field(default_factory=list)
    trap: Trap | None = None
    # The ends of what went by, since what is looked for may come in two pieces.
    tail_to_server: bytes = b""
    tail_to_client: bytes = b""

    def reset(self) -> None:
        """End both sides with RST: nothing on its way arrives."""
        for writer in (self.client, self.server):
            if writer is not None and not writer.transport.is_closing():
                with contextlib.suppress(OSError):
                    raw = writer.get_extra_info("socket")
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
                writer.transport.abort()
        for pump in self.pumps:
            pump.cancel()


class TcpProxy:
    """Forwards 127.0.0.1:`port` to a server, until told to fail. All but `start` and `stop` is immediate."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._links: set[_Link] = set()
        self._flows = {way: asyncio.Event() for way in Direction.BOTH.ways}
        self._delay_s = 0.0
        self._traps: list[Trap] = []
        self._listener: asyncio.Server | None = None
        self._refusing = False
        # Bound and not listening: it keeps the port ours while connections are refused.
        self._claim = _bound(0)
        self.port: int = self._claim.getsockname()[1]
        for flow in self._flows.values():
            flow.set()

    @classmethod
    def to_url(cls, url: str) -> Self:
        """In front of the server that a URL names."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        return cls(parts.hostname, parts.port or 5432)

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._links)

    def url_of(self, url: str) -> str:
        """The same address through the proxy."""
        parts = urlsplit(url)
        account, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{account}{at}127.0.0.1:{self.port}"))

    async def start(self) -> Self:
        """Listen."""
        self._refusing = False
        await self._listen()
        return self

    async def stop(self) -> None:
        """Cut everything and give the port back."""
        await self.refuse()
        pumps = [pump for link in self._links for pump in link.pumps]
        self.cut()
        await asyncio.gather(*pumps, return_exceptions=True)
        self._claim.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def cut(self) -> int:
        """Reset every connection there is, and say how many; new ones are welcome."""
        links = list(self._links)
        for link in links:
            link.reset()
        return len(links)

    async def refuse(self) -> None:
        """Refuse new connections as a dead server's machine would; those that are stay."""
        self._refusing = True
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            await asyncio.sleep(0)  # the listening socket is closed by the loop's next turn

    def stall(self, direction: Direction | str = Direction.BOTH) -> None:
        """Accept and read, and forward nothing that way: a partition that nobody is told of."""
        for way in Direction(direction).ways:
            self._flows[way].clear()

    def delay(self, delay_ms: float) -> None:
        """Hold each chunk back, in both directions."""
        self._delay_s = delay_ms / 1000

    async def heal(self) -> None:
        """Forward, accept and hurry again, and forget traps. What was held back goes on its way."""
        self._delay_s = 0.0
        self._traps.clear()
        for flow in self._flows.values():
            flow.set()
        if self._refusing:
            await self.start()

    def cut_before(self, pattern: bytes) -> Trap:
        """Cut the first connection whose client sends these bytes; the server never gets that chunk."""
        return self._set(Trap(pattern, b"", _Moment.BEFORE_SERVER))

    def cut_after(self, pattern: bytes, *, before_reply: bool = True, reply: bytes = b"") -> Trap:
        """Cut the first connection whose client sends these bytes, once the server has answered them.

        The client does not get the answer, unless `before_reply` is false. `reply` are bytes by which the
        answer is known; without them any chunk will do, which is right unless requests are pipelined or
        prepared first. `cut_after(b"COMMIT", reply=b"COMMIT")` leaves a commit whose outcome the client
        cannot know and the server has surely made.
        """
        moment = _Moment.BEFORE_REPLY if before_reply else _Moment.AFTER_REPLY
        return self._set(Trap(pattern, reply, moment))

    def _set(self, trap: Trap) -> Trap:
        self._traps.append(trap)
        return trap

    async def _listen(self) -> None:
        if self._listener is None:
            listening = _bound(self.port)
            self._listener = await asyncio.start_server(self._serve, sock=listening, limit=_CHUNK)

    async def _serve(self, from_client: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        link = _Link(client)
        self._links.add(link)
        try:
            from_server, link.server = await asyncio.open_connection(*self._target, limit=_CHUNK)
            if client.transport.is_closing():  # cut meanwhile
                return
            link.pumps = [
                asyncio.create_task(self._pump(link, Direction.TO_SERVER, from_client, link.server)),
                asyncio.create_task(self._pump(link, Direction.TO_CLIENT, from_server, client)),
            ]
            await asyncio.wait(link.pumps)
        except OSError:
            pass  # there is no server: the client is told by the reset
        finally:
            link.reset()
            self._links.discard(link)

    async def _pump(
        self, link: _Link, way: Direction, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        look = self._look_at_request if way is Direction.TO_SERVER else self._look_at_reply
        try:
            while chunk := await source.read(_CHUNK):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._flows[way].wait()
                if not look(link, chunk):
                    continue
                sink.write(chunk)
                await sink.drain()
                if way is Direction.TO_CLIENT and link.trap is not None and link.trap.sprung:
                    await self._close_answered(link)
            await self._flows[way].wait()
            if sink.can_write_eof():
                sink.write_eof()
        except OSError:
            link.reset()

    def _look_at_request(self, link: _Link, chunk: bytes) -> bool:
        """Whether to forward a chunk of the client; it may walk into a trap."""
        seen = link.tail_to_server + chunk
        for trap in self._traps:
            if link.trap is None and trap.pattern in seen:
                self._traps.remove(trap)
                link.trap, trap.caught, link.tail_to_client = trap, True, b""
                break
        longest = max((len(trap.pattern) for trap in self._traps), default=1)
        link.tail_to_server = seen[-(longest - 1) :] if longest > 1 else b""
        if link.trap is not None and link.trap.moment is _Moment.BEFORE_SERVER:
            self._spring(link)
            return False
        return True

    def _look_at_reply(self, link: _Link, chunk: bytes) -> bool:
        """Whether to forward a chunk of the server: answers to what came before the trap still are."""
        trap = link.trap
        if trap is None:
            return True
        seen = link.tail_to_client + chunk
        link.tail_to_client = seen[-len(trap.reply) :] if trap.reply else b""
        answered = trap.reply in seen
        if trap.moment is _Moment.AFTER_REPLY:
            trap.sprung = trap.sprung or answered
            return True
        if answered:
            self._spring(link)
            return False
        return True

    def _spring(self, link: _Link) -> None:
        assert link.trap is not None
        link.trap.sprung = True
        link.reset()

    async def _close_answered(self, link: _Link) -> None:
        """End the connection behind an answer that shall arrive: a reset could overtake it."""
        link.client.close()
        with contextlib.suppress(OSError):
            await link.client.wait_closed()
        link.reset()


class ThreadedTcpProxy:
    """The same on a thread of its own, for callers without a loop; every call waits until it is done."""

    def __init__(self, host: str, port: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)
        self._thread.start()
        self._proxy: TcpProxy = self._do(functools.partial(TcpProxy, host, port))
        self.port = self._proxy.port
        self.url_of = self._proxy.url_of

    @classmethod
    def to_url(cls, url: str) -> Self:
        """In front of the server that a URL names."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        return cls(parts.hostname, parts.port or 5432)

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return self._do(lambda: self._proxy.connections)

    def start(self) -> Self:
        """See TcpProxy, as for all that follow."""
        self._do(self._proxy.start)
        return self

    def stop(self) -> None:
        self._do(self._proxy.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_S)
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def cut(self) -> int:
        return self._do(self._proxy.cut)

    def refuse(self) -> None:
        self._do(self._proxy.refuse)

    def stall(self, direction: Direction | str = Direction.BOTH) -> None:
        self._do(lambda: self._proxy.stall(direction))

    def delay(self, delay_ms: float) -> None:
        self._do(lambda: self._proxy.delay(delay_ms))

    def heal(self) -> None:
        self._do(self._proxy.heal)

    def cut_before(self, pattern: bytes) -> Trap:
        return self._do(lambda: self._proxy.cut_before(pattern))

    def cut_after(self, pattern: bytes, *, before_reply: bool = True, reply: bytes = b"") -> Trap:
        return self._do(lambda: self._proxy.cut_after(pattern, before_reply=before_reply, reply=reply))

    def _do(self, call: Callable[[], Any]) -> Any:
        async def on_loop() -> Any:
            answer = call()
            return await answer if asyncio.iscoroutine(answer) else answer

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result(_CALL_S)


def main(target: str) -> None:
    """Serve until the input ends; lines are `cut`, `refuse`, `stall [way]`, `delay MS`, `heal`, `cut_after TEXT`."""
    host, _, port = target.rpartition(":")
    with ThreadedTcpProxy(host, int(port)) as proxy:
        print(proxy.port, flush=True)
        for line in sys.stdin:
            verb, _, argument = line.strip().partition(" ")
            match verb:
                case "cut" | "refuse" | "heal":
                    getattr(proxy, verb)()
                case "stall":
                    proxy.stall(argument or Direction.BOTH)
                case "delay":
                    proxy.delay(float(argument))
                case "cut_before" | "cut_after":
                    getattr(proxy, verb)(argument.encode())
                case _:
                    print(f"unknown: {line.strip()}", flush=True)
                    continue
            print("done", flush=True)


def _bound(port: int) -> socket.socket:
    """A socket on a port that it shares with others of ours."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    return made


if __name__ == "__main__":
    main(sys.argv[1])
