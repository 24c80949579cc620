"""A server that answers as it is told and keeps what it was asked, and either client to ask it."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hourhand.client import AsyncClient, Client

SHORT_S = 0.3
HANG_UP = "hang up"
Reply = tuple[int, Any, dict[str, str]] | str


@dataclass
class Recorder:
    """A server that gives prepared replies in order, the last again and again, and keeps what it was asked."""

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    timeout_s: float = 30.0  # of whoever asks
    delay_s: float = 0
    never: threading.Event = field(default_factory=threading.Event)

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            recorder.requests.append((self.command, self.path, dict(self.headers), body))
            reply = recorder.next_reply()
            recorder.never.wait(recorder.delay_s)
            if reply == HANG_UP:
                self.close_connection = True
                return
            status, document, headers = reply
            text = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 -- names of the base class

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client may hang up at any moment, and what is told of that here would be taken for its own words."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    server = Server(("127.0.0.1", 0), Handler)
    recorder.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield recorder
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hourhand.client.exchange.FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr("hourhand.client.exchange.LONGEST_PAUSE_S", 0.002)
    monkeypatch.setattr("hourhand.client.resources.endpoints.FIRST_LOOK_S", 0.001)


Ask = Callable[[str, str, tuple[Any, ...], dict[str, Any]], Any]


@pytest.fixture(params=["blocking", "awaiting"])
async def ask(request: pytest.FixtureRequest, recorder: Recorder):
    """Calls `client.resource.method(…)` on either client; listings become lists."""

    async def ask(call: str, *args: Any, **kwargs: Any) -> Any:
        resource, method = call.split(".")
        if request.param == "blocking":
            with Client(recorder.url, retries=2, timeout_s=recorder.timeout_s) as client:
                answer = getattr(getattr(client, resource), method)(*args, **kwargs)
                return answer if isinstance(answer, dict) else list(answer)
        async with AsyncClient(recorder.url, retries=2, timeout_s=recorder.timeout_s) as client:
            answer = getattr(getattr(client, resource), method)(*args, **kwargs)
            if hasattr(answer, "__aiter__"):
                return [one async for one in answer]
            return await answer

    return ask


def problem(status: int, code: str, **more: Any) -> Reply:
    return status, {"title": "t", "status": status, "code": code, "detail": "words", **more}, {}


OK: Reply = (200, {"job_id": "J-1"}, {})
BUSY: Reply = (503, {"title": "t", "code": "unavailable", "detail": "down"}, {"Retry-After": "0"})
LIMITED: Reply = (429, {"title": "t", "code": "overloaded", "detail": "slow down"}, {"Retry-After": "0"})
IN_FLIGHT: Reply = (409, {"title": "t", "code": "in_flight", "detail": "wait"}, {"Retry-After": "0"})
FOR_LONG: Reply = (429, {"title": "t", "code": "overloaded", "detail": "not today"}, {"Retry-After": "3600"})
