"""A FastAPI application that stores nothing, on the same server with the same options as ours.

What it reaches is the most that an application on this framework could reach on this machine.
"""

import asyncio
import socket

import msgspec
import uvicorn
import uvloop
from fastapi import FastAPI, Request, Response

from benchmarks._process import free_port

app = FastAPI(openapi_url=None)


@app.post("/api/v1/jobs")
async def create(request: Request) -> Response:
    """Reads a document and answers as the real route does."""
    document = msgspec.json.decode(await request.body())
    answer = {"job_id": document["name"], "next_fire_time": "2027-01-01T09:00:00Z"}
    return Response(msgspec.json.encode(answer), 201, media_type="application/json")


@app.get("/api/v1/jobs/{job_id}/status")
async def status(job_id: str) -> Response:
    """Answers as the real route does."""
    answer = {"job_id": job_id, "status": "SUCCEEDED", "last_run": None, "next_run": None, "retry_count": 0}
    return Response(msgspec.json.encode(answer), media_type="application/json")


async def main() -> None:
    """Serve until stopped."""
    listener = socket.create_server(("127.0.0.1", free_port()), backlog=2048)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        ws="none",
    )
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
