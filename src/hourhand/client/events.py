"""Follows the stream of events: reads its frames, and comes back after the last one when the stream breaks.

What is missed meanwhile comes too, as long as the server remembers it; a `reset` says that some is gone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec

from hourhand.client.exchange import Patience
from hourhand.client.flow import Answer, Document
from hourhand.client.problems import Unreachable, error_of, retry_after_s

SILENCE_S = 45.0  # three keep-alives that did not come: whoever sent them is gone
CONNECT_S = 5.0
_TURNED_AWAY = (429, 502, 503, 504)


@dataclass(slots=True)
class Frames:
    """Server-sent events line by line; `last_id` is where to go on. Pure."""

    last_id: str | None = None
    _kind: str = ""
    _data: list[str] = field(default_factory=list)

    def take(self, line: str) -> Document | None:
        """The event that a line completes, if it does."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "id" if "\0" not in value:
                    self.last_id = value
                case "event":
                    self._kind = value
                case "data":
                    self._data.append(value)
            return None
        text, kind = "\n".join(self._data), self._kind
        self._data, self._kind = [], ""
        if not text:
            return None
        try:
            body = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return None
        return {"type": kind, "id": self.last_id, **body} if isinstance(body, dict) else None


def follow(
    http: httpx2.Client,
    query: Mapping[str, str],
    after: str | None,
    *,
    server: str,
    patience: Patience,
    pause: Callable[[float], object],
    broken: Callable[[str], None],
) -> Iterator[Document]:
    """Events for ever. Raises where it cannot even begin, or is refused; later it waits and comes back, and tells `broken`."""
    frames = Frames(last_id=after)
    begun, failures = False, 0
    while True:
        asked_s: float | None = None
        try:
            for document in _events(http, query, frames):
                begun, failures = True, 0
                if document is not None:
                    yield document
            words = "the server ended the stream"
        except _Refused as refused:
            if not begun or refused.answer.status not in _TURNED_AWAY:
                raise error_of(refused.answer) from None
            words, asked_s = f"the server answered {refused.answer.status}", retry_after_s(refused.answer)
        except httpx2.TransportError as error:
            words = str(error) or type(error).__name__
            if not begun:
                raise Unreachable(f"no hourhand answers at {server}: {words}") from None
        failures += 1
        broken(words)
        pause(patience.pause_s(failures, asked_s))


class _Refused(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def _events(http: httpx2.Client, query: Mapping[str, str], frames: Frames) -> Iterator[Document | None]:
    """Each event of one connection, and None once it stands."""
    headers: dict[str, Any] = {"Accept": "text/event-stream"}
    if frames.last_id:
        headers["Last-Event-ID"] = frames.last_id
    timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
    with http.stream("GET", "/events", params=dict(query), headers=headers, timeout=timeout) as response:
        if response.status_code != 200:
            body = response.read()
            raise _Refused(Answer(status=response.status_code, headers=response.headers, body=body))
        yield None
        for line in response.iter_lines():
            document = frames.take(line)
            if document is not None:
                yield document
