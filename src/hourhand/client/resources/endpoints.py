"""What all endpoints share: how a request is asked, a list read page by page, a thing watched until it is over."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hourhand.client.exchange import (
    LONGEST_PAUSE_S,
    Patience,
    document_in,
    document_in_line,
    exchange,
    stranger,
)
from hourhand.client.flow import (
    Answer,
    D,
    Document,
    Flow,
    Item,
    Line,
    Pause,
    Request,
    Resource,
    Stream,
    Trouble,
)
from hourhand.client.problems import Unreachable
from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US
from hourhand.errors import HourhandError

FIRST_LOOK_S = 0.1
LONGEST_LOOK_S = 1.0
SHORTEST_ANSWER_S = 0.5  # that a look is given, also where no more time is left

_KEYED = ("POST", "PATCH")  # may carry an idempotency key
_REPEATABLE = ("GET", "PUT")  # do no more when they are repeated, with or without one
_KEY = "Idempotency-Key"  # with it the server carries a request out once, however often it comes
_GUARD = "If-Match"  # with it and no key, a repeat would meet its own change and take it for another's
_ONCE = Patience(retries=0)  # of a look: whoever watches looks again anyway


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What all endpoints of a client share."""

    server: str
    patience: Patience
    clock: Clock
    new_key: Callable[[], str]


class Endpoints(Resource[D]):
    """What the endpoints of every noun are made of."""

    def __init__(self, driver: D, session: Session) -> None:
        super().__init__(driver)
        self._session = session

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: object = None,
        key: str | None = None,
        keyed: bool = True,
        repeatable: bool | None = None,
        wait_s: float = 0,
    ) -> Flow[Document]:
        """One request. A POST or PATCH that changes something carries `key`, or a new one, unless it has no use for it."""
        said = {name: value for name, value in (headers or {}).items() if value is not None}
        if method in _KEYED and keyed and not (query or {}).get("dry_run"):
            said[_KEY] = key or self._session.new_key()
        request = Request(
            method=method,
            path=path,
            query={name: _text(value) for name, value in (query or {}).items() if _is_told(value)},
            headers=said,
            body=body,
            repeatable=_may_be_repeated(method, said) if repeatable is None else repeatable,
            wait_s=wait_s,
        )
        answer = yield from exchange(request, self._session.patience, self._session.server)
        return document_in(answer, self._session.server)

    def _change(
        self, path: str, body: object, dry_run: bool = False, *, key: str | None = None, keyed: bool = True
    ) -> Flow[Document]:
        """A POST that does no more when it is repeated."""
        query = {"dry_run": dry_run}
        return self._ask("POST", path, body=body, query=query, key=key, keyed=keyed, repeatable=True)

    def _pages(self, path: str, query: Mapping[str, object]) -> Flow[None]:
        cursor = query.get("cursor")
        while True:
            page = yield from self._ask("GET", path, query={**query, "cursor": cursor})
            documents = page.get("data")
            if not isinstance(documents, list):
                raise stranger(self._session.server, "expected a list as `data`, got none")
            for document in documents:
                yield Item(document)
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def _lines(self, path: str, query: Mapping[str, object]) -> Flow[None]:
        """Everything in one answer, a document on each line. One that breaks off in the middle is no end."""
        server = self._session.server
        request = Request(
            method="GET",
            path=path,
            query={name: _text(value) for name, value in query.items() if _is_told(value)},
            headers={"Accept": "application/x-ndjson"},
            repeatable=True,
        )
        yield from exchange(Stream(request=request), self._session.patience, server)
        came = 0
        while isinstance(line := (yield Line()), str):
            yield Item(document_in_line(line, server))
            came += 1
        if isinstance(line, Trouble):
            raise Unreachable(f"{server} broke off after {came:,} of more: {line.words}; ask again for all")

    def _watch(
        self,
        path: str,
        timeout_s: float | None,
        *,
        is_over: Callable[[Document], bool],
        standing: Callable[[Document], str],
    ) -> Flow[None]:
        """What is there each time that it has changed, until it is over; TimeoutError says how it stands.

        A server that is away meanwhile is waited for, as long as there is time. Where none was said and nothing has been
        seen yet, it is tried as often as for any request.
        """
        patience, left = self._session.patience, _Left(self._session.clock, timeout_s)
        seen: Document | None = None
        look_s, failures = FIRST_LOOK_S, 0
        while True:
            answer = yield from self._look(path, left.seconds())
            if isinstance(answer, HourhandError):
                failures += 1
                if seen is None and timeout_s is None and failures > patience.retries:
                    raise answer
                pause_s = _asked_s(answer) or min(patience.pause_s(failures, None), LONGEST_LOOK_S)
            else:
                document = document_in(answer, self._session.server)
                if document != seen:
                    yield Item(document)
                    seen, look_s = document, FIRST_LOOK_S
                if is_over(document):
                    return
                pause_s, failures = look_s, 0
                look_s = min(look_s * 1.5, LONGEST_LOOK_S)
            if left.seconds() == 0:
                known = "nothing is known of it" if seen is None else standing(seen)
                why = f": {answer}" if isinstance(answer, HourhandError) else ""
                raise TimeoutError(f"{known} after {timeout_s:g} s{why}")
            yield Pause(seconds=min(pause_s, left.seconds()))

    def _look(self, path: str, left_s: float) -> Flow[Answer | HourhandError]:
        """What is there, or why it cannot be seen for now; raises what waiting does not mend."""
        most_s = max(left_s, SHORTEST_ANSWER_S)
        request = Request(method="GET", path=path, repeatable=True, most_s=most_s)
        try:
            return (yield from exchange(request, _ONCE, self._session.server))
        except HourhandError as error:
            if not error.retryable or _asked_s(error) > LONGEST_PAUSE_S:
                raise
            return error


class _Left:
    """How much is left of the time that a wait has; without end where none was said."""

    def __init__(self, clock: Clock, timeout_s: float | None) -> None:
        self._clock = clock
        self._ends_at = None if timeout_s is None else clock.now() + int(timeout_s * SECOND_US)

    def seconds(self) -> float:
        """From now on."""
        if self._ends_at is None:
            return math.inf
        return max(0, self._ends_at - self._clock.now()) / SECOND_US


def filtered(limit: int | None, cursor: str | None, filters: Mapping[str, object]) -> dict[str, object]:
    """The query of a list. A filter that is False is said, and `from_` is the API's `from`, which Python keeps."""
    said = {name.removesuffix("_"): "false" if value is False else value for name, value in filters.items()}
    return {"limit": limit, "cursor": cursor, **said}


def _may_be_repeated(method: str, headers: Mapping[str, str]) -> bool:
    return _KEY in headers or (method in _REPEATABLE and _GUARD not in headers)


def _asked_s(error: HourhandError) -> float:
    """For how long the server asked to be left alone."""
    asked_s: float = getattr(error, "retry_after_s", 0)
    return asked_s


def _is_told(value: object) -> bool:
    return value is not None and value is not False and value != []


def _text(value: object) -> str | list[str]:
    if isinstance(value, list | tuple):
        return [str(one) for one in value]
    return "true" if value is True else str(value)
