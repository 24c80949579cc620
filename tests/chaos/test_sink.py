"""The sink is a witness that can be trusted: it forgets nothing when it is killed, and behaves as told."""

import http.client
import json

from tests.chaos.process import SinkProcess


def call(sink: SinkProcess, path: str, key: str, attempt: int = 1) -> int | None:
    """The status of a call as the command would make it; None without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", sink.port, timeout=5)
    headers = {
        "Idempotency-Key": key,
        "Hourhand-Job": key.partition("@")[0],
        "Hourhand-Scheduled-At": "2026-11-16T08:00:00Z",
        "Hourhand-Attempt": str(attempt),
    }
    try:
        connection.request("POST", path, b"null", headers)
        return connection.getresponse().status
    except (http.client.HTTPException, OSError):
        return None
    finally:
        connection.close()


def test_an_effect_happens_once_per_key_through_a_kill(sink: SinkProcess) -> None:
    assert call(sink, "/ok", "J-1@20261116T080000Z") == 200
    sink.kill()
    with sink.path.open("a") as file:
        file.write(json.dumps({"key": "torn"})[:-4])
    sink.start()
    assert call(sink, "/ok", "J-1@20261116T080000Z", attempt=2) == 200
    assert call(sink, "/ok", "J-2@20261116T080000Z") == 200
    seen = [(one.job, one.attempt, one.applied) for one in sink.log.calls()]
    assert seen == [("J-1", 1, True), ("J-1", 2, False), ("J-2", 1, True)]


def test_behaviours_are_told_by_the_path(sink: SinkProcess) -> None:
    assert call(sink, "/fail", "J-1@20261116T080000Z") == 500
    assert call(sink, "/slow/10", "J-2@20261116T080000Z") == 200
    assert call(sink, "/drop", "J-3@20261116T080000Z") is None
    assert call(sink, "/garbage", "J-4@20261116T080000Z") is None
    assert call(sink, "/once/fail", "J-5@20261116T080000Z") == 500
    assert call(sink, "/once/fail", "J-5@20261116T080000Z", attempt=2) == 200
    assert [one.applied for one in sink.log.calls()] == [True] * 5 + [False]
