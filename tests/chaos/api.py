"""The API as a stranger sees it: one plain request at a time, and honesty about requests without an answer.

`NotSent` means that it did not happen; `Unanswered` that it may have. Uses nothing of the product.
"""

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "/api/v1"
TIMEOUT_S = 20.0


class NotSent(Exception):
    """Nobody was there to take the request."""


class Unanswered(Exception):
    """The request went out and no whole answer came back: it happened fully or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, with when it was asked for and when it was there."""

    status: int
    body: Any
    headers: Mapping[str, str]
    sent_at: int
    answered_at: int


class Api:
    """Requests to one address; a fresh connection for each, so that none hides another's end."""

    def __init__(self, port: int, timeout_s: float = TIMEOUT_S) -> None:
        self._port = port
        self._timeout_s = timeout_s

    def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request under the API's prefix, or beside it for paths that begin with `//`."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout_s)
        try:
            connection.connect()
        except OSError as error:
            raise NotSent(str(error)) from error
        sent_at = now()
        try:
            text = None if body is None else json.dumps(body)
            place = path[1:] if path.startswith("//") else PREFIX + path
            connection.request(
                method, place, text, {"Content-Type": "application/json", **dict(headers or {})}
            )
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        return Answer(
            status=answer.status,
            body=_decoded(data),
            headers={name.lower(): value for name, value in answer.getheaders()},
            sent_at=sent_at,
            answered_at=now(),
        )

    def expect(self, status: int, method: str, path: str, body: object = None, **headers: str) -> Any:
        """The body of an answer that must have this status."""
        answer = self.call(
            method, path, body, {name.replace("_", "-"): text for name, text in headers.items()}
        )
        assert answer.status == status, f"{method} {path}: {answer.status} {answer.body}"
        return answer.body

    def create(self, **document: object) -> str:
        """A job's id."""
        return str(self.expect(201, "POST", "/jobs", document)["job_id"])

    def history(self, job: str) -> list[dict[str, Any]]:
        """All runs of a job that the API shows, newest first."""
        rows: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = self.expect(200, "GET", f"/jobs/{job}/history?limit=1000{cursor}")
            rows += page["data"]
            if not page.get("next_cursor"):
                return rows
            cursor = f"&cursor={page['next_cursor']}"


def now() -> int:
    """Microseconds since the epoch by this machine's clock, which the sink reads too."""
    return time.time_ns() // 1000


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode("latin-1")
