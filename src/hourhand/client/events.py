"""Follows the stream of events: reads its frames, and comes back after the last one when the stream breaks.

What is missed meanwhile comes too, as long as the server remembers it; a `reset` says that some is gone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from hourhand.client.exchange import Patience, stranger
from hourhand.client.flow import Answer, Document, Flow, Item, Line, Pause, Request, Stream, Trouble
from hourhand.client.problems import Unreachable, error_of, retry_after_s

SILENCE_S = 45.0  # three keep-alives that did not come: whoever sent them is gone
_STREAM = "text/event-stream"
_TURNED_AWAY = (429, 502, 503, 504)


@dataclass(slots=True)
class Frames:
    """Server-sent events line by line; `last_id` is where to go on: behind the last that came whole. Pure."""

    last_id: str | None = None
    _id: str | None = None
    _kind: str = ""
    _data: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Another stream: what the last one did not end will not be ended."""
        self._id, self._kind, self._data = None, "", []

    def take(self, line: str) -> Document | None:
        """The event that a line completes, if it does."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "id" if "\0" not in value:
                    self._id = value
                case "event":
                    self._kind = value
                case "data":
                    self._data.append(value)
            return None
        text, kind = "\n".join(self._data), self._kind
        self.last_id = self.last_id if self._id is None else self._id
        self.begin()
        if not text:
            return None
        try:
            body = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return None
        return {"type": kind, "id": self.last_id, **body} if isinstance(body, dict) else None


def follow(
    query: Mapping[str, str],
    after: str | None,
    *,
    server: str,
    patience: Patience,
    broken: Callable[[str], None],
) -> Flow[None]:
    """Events for ever. Raises where it cannot even begin, or is refused; later it waits and comes back, and tells `broken`."""
    frames = Frames(last_id=after)
    begun, failures = False, 0
    while True:
        asked_s: float | None = None
        opened: Answer | Trouble = yield Stream(request=_request(query, frames.last_id), silence_s=SILENCE_S)
        if isinstance(opened, Trouble):
            words = opened.words
            if not begun:
                raise Unreachable(f"no hourhand answers at {server}: {words}")
        elif opened.status != 200:
            if not begun or opened.status not in _TURNED_AWAY:
                raise error_of(opened)
            words, asked_s = f"the server answered {opened.status}", retry_after_s(opened)
        elif not _is_stream(opened):
            words = "what answered is no stream of events"
            if not begun:
                raise stranger(server, "its answer is no stream of events")
        else:
            begun = True
            frames.begin()
            while isinstance(line := (yield Line()), str):
                document = frames.take(line)
                if document is not None or line.startswith(":"):  # it told something, or has lasted
                    failures = 0
                if document is not None:
                    yield Item(document)
            words = line.words if isinstance(line, Trouble) else "the server ended the stream"
        failures += 1
        broken(words)
        yield Pause(seconds=patience.pause_s(failures, asked_s))


def _is_stream(opened: Answer) -> bool:
    return opened.headers.get("content-type", "").partition(";")[0].strip().lower() == _STREAM


def _request(query: Mapping[str, str], last_id: str | None) -> Request:
    headers = {"Accept": _STREAM}
    if last_id:
        headers["Last-Event-ID"] = last_id
    return Request(method="GET", path="/events", query=query, headers=headers)
