"""Clients that follow the events of a server: a line once all are there, what each got when told to stop.

python -m benchmarks._event_readers PORT CLIENTS
"""

import asyncio
import json
import signal
import sys

_REQUEST = b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n\r\n"
_CHUNK = 1 << 16


async def follow(port: int, got: list[int], place: int, connected: asyncio.Queue[int]) -> None:
    """Read for ever, and count the bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_REQUEST % port)
    status = await reader.readline()
    if b" 200 " not in status:
        raise SystemExit(f"a client was answered {status!r}")
    connected.put_nowait(place)
    while data := await reader.read(_CHUNK):
        got[place] += len(data)
    raise SystemExit("the server ended a stream")


async def main() -> None:
    port, clients = int(sys.argv[1]), int(sys.argv[2])
    got, connected, stopped = [0] * clients, asyncio.Queue[int](), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    tasks = [asyncio.create_task(follow(port, got, place, connected)) for place in range(clients)]
    for _ in range(clients):
        await connected.get()
    print("connected", flush=True)
    ends = asyncio.create_task(stopped.wait())
    done, _ = await asyncio.wait([ends, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    print(json.dumps(got), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
