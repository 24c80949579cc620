"""kill -9 while webhooks are sent: what was acknowledged or settled is told, under ids that do not change."""

import http.server
import json
import threading
from collections.abc import Iterator

import pytest

from hourhand import verify
from tests.chaos.process import SinkProcess, Up, wait_for

FAR = "2099-01-01T00:00:00Z"
JOBS = 40
KILLS = 4


class Endpoint:
    """Takes events slowly, so that a kill meets calls under way, and remembers those that were genuine."""

    def __init__(self) -> None:
        self.secret = ""
        self.told: list[tuple[str, str]] = []  # id and type, in order of the calls
        self.bodies: dict[str, set[bytes]] = {}
        self._never = threading.Event()
        self._lock = threading.Lock()
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                event_id = verify(dict(self.headers), body, endpoint.secret)
                endpoint.take(event_id, body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def take(self, event_id: str, body: bytes) -> None:
        with self._lock:
            self.told.append((event_id, json.loads(body)["type"]))
            self.bodies.setdefault(event_id, set()).add(body)
        self._never.wait(0.1)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_no_event_is_lost_to_kills(up: Up, sink: SinkProcess, endpoint: Endpoint) -> None:
    up.start()
    made = up.api.expect(201, "POST", "/webhooks", {"url": endpoint.url, "types": ["job.created", "run.*"]})
    endpoint.secret = made["secret"]
    jobs: list[str] = []
    runs: list[str] = []
    for _ in range(KILLS):
        for _ in range(JOBS // KILLS):
            job = up.api.create(at=FAR, callback_url=sink.url("ok"))
            jobs.append(job)
            runs.append(str(up.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"]))
        seen = len(endpoint.told)
        wait_for("some calls", lambda: len(endpoint.told) > seen)  # noqa: B023
        up.kill()
        up.start()
    wanted = {f"{job}.v1" for job in jobs}

    def all_told() -> bool:
        heard = {event_id for event_id, _ in endpoint.told}
        ended = {event_id.rpartition(".")[0] for event_id, kind in endpoint.told if kind == "run.succeeded"}
        return wanted <= heard and set(runs) <= ended

    wait_for("everything that was acknowledged", all_told, within_s=90)
    assert all(len(bodies) == 1 for bodies in endpoint.bodies.values())
    webhook = up.api.expect(200, "GET", f"/webhooks/{made['webhook_id']}")
    assert (webhook["enabled"], webhook["dropped"]) == (True, 0)
    assert up.stop() == 0
