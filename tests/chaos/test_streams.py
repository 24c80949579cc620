"""A client that follows the events of the real command sees its runs, and does not keep it from ending."""

import http.client
import json
import threading

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.process import SinkProcess, Up, wait_for

STREAM_S = 30.0
FAR = "2099-01-01T00:00:00Z"


class Follower:
    """Reads the stream on a thread of its own."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=STREAM_S)
        self._connection.request("GET", "/api/v1/events?types=run.*", headers={"Accept": "text/event-stream"})
        self._response = self._connection.getresponse()
        assert self._response.status == 200
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def run_ids(self) -> list[str]:
        told = [
            json.loads(line.removeprefix("data: ")) for line in list(self.lines) if line.startswith("data: ")
        ]
        return [one["run_id"] for one in told]

    def close(self) -> None:
        self._thread.join(STREAM_S)
        self._connection.close()

    def _read(self) -> None:
        while line := self._response.readline():
            self.lines.append(line.decode().rstrip("\n"))


def test_a_stream_tells_of_runs_and_ends_with_the_process(up: Up, sink: SinkProcess) -> None:
    up.start()
    follower = Follower(up.port)
    job = up.api.create(at=FAR, callback_url=sink.url("ok"))
    run_id = up.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"]
    wait_for("the run's event", lambda: run_id in follower.run_ids())
    asked_at = now()
    assert up.stop() == 0
    assert now() - asked_at < 4 * SECOND_US  # the server's patience with requests is 5 s
    wait_for("the stream's end", lambda: follower.ended)
    follower.close()
