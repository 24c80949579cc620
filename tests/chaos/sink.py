"""A target in a process of its own: records every call durably, and applies its effect once per key.

Started as a script, so that it shares nothing with what it judges. What a caller gets is told by the
path: `/ok`, `/accept` (202), `/slow/300` (ms), `/fail`, `/hang`, `/drop`, `/garbage`, `/endless`, `/trickle`, `/silent`;
`/once/fail` (or hang, drop …) behaves so for the first call of each key and answers well afterwards.
A call is on the disk before anything is answered. `process` starts it, `calls` reads its log.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

_TRICKLE_S = 1.0
_CHUNK = b"x" * 65_536


class Sink:
    """The log and the set of keys whose effect has happened, rebuilt from the log at a start."""

    def __init__(self, path: Path) -> None:
        self._log = path.open("ab", buffering=0)
        whole, _, _ = path.read_bytes().rpartition(b"\n")  # a torn last line was never answered
        self._log.truncate(len(whole) + 1 if whole else 0)
        self._applied = {json.loads(line)["key"] for line in whole.splitlines()}
        self._written = self._durable = 0  # calls
        self._syncing = asyncio.Lock()

    async def record(self, headers: dict[str, str], path: str, at: int) -> bool:
        """Write a call down; True when it is the first with its key, so that its effect happened now."""
        key = headers.get("idempotency-key", "")
        first = key not in self._applied
        row = {
            "key": key,
            "job": headers.get("hourhand-job", ""),
            "scheduled_at": headers.get("hourhand-scheduled-at", ""),
            "attempt": int(headers.get("hourhand-attempt", "0")),
            "at": at,
            "applied": first,
            "path": path,
            "report": [headers.get(f"hourhand-report-{name}", "") for name in ("url", "token")],
        }
        self._log.write(json.dumps(row).encode() + b"\n")
        self._applied.add(key)
        self._written += 1
        await self._synced(self._written)
        return first

    async def _synced(self, count: int) -> None:
        """Return once this many calls are on the disk; those that come meanwhile go together."""
        async with self._syncing:
            if self._durable < count:
                written = self._written
                await asyncio.to_thread(os.fsync, self._log.fileno())
                self._durable = written

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request, until somebody hangs up."""
        try:
            while (request := await _request(reader)) is not None:
                path, headers = request
                first = await self.record(headers, path, time.time_ns() // 1000)
                behaviour, _, argument = path.strip("/").partition("/")
                if behaviour == "once":
                    behaviour, argument = (argument, "") if first else ("ok", "")
                if not await _behave(behaviour, argument, writer):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]] | None:
    """Path and headers of the next whole request; None when there is none."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    headers = {}
    for line in head[1:-2]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    await reader.readexactly(int(headers.get("content-length", "0")))
    return head[0].split(" ")[1], headers


async def _behave(behaviour: str, argument: str, writer: asyncio.StreamWriter) -> bool:
    """Answer as told; False when the connection is to be closed."""
    match behaviour:
        case "ok":
            return await _send(writer, _answer(200, b"done"))
        case "accept":
            return await _send(writer, _answer(202, b"later"))
        case "slow":
            await asyncio.sleep(int(argument) / 1000)
            return await _send(writer, _answer(200, b"done, slowly"))
        case "fail":
            return await _send(writer, _answer(500, b"out of order"))
        case "drop":  # the effect has happened, the caller does not learn of it
            return False
        case "garbage":
            await _send(writer, b"\x00\xff\x13 this is no HTTP \r\n\r\n\x80\x81")
            return False
        case "endless":
            await _send(writer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                await _send(writer, b"%x\r\n%s\r\n" % (len(_CHUNK), _CHUNK))
        case "trickle":
            for byte in _answer(200, b"y" * 1_000_000):
                await _send(writer, bytes([byte]))
                await asyncio.sleep(_TRICKLE_S)
            return True
        case _:  # hang, silent: take the call and never answer
            await asyncio.Event().wait()
            return False


def _answer(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _send(writer: asyncio.StreamWriter, data: bytes) -> bool:
    writer.write(data)
    await writer.drain()
    return True


async def main(path: Path, port: int) -> None:
    """Serve on loopback until killed; says its port once it listens."""
    sink = Sink(path)
    server = await asyncio.start_server(sink.serve, "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
