"""What all endpoints share: how a request is asked, a list read page by page, a thing watched until it is over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hourhand.client.exchange import Patience, document_in, document_in_line, exchange, stranger
from hourhand.client.flow import D, Document, Flow, Item, Line, Pause, Request, Resource, Stream, Trouble
from hourhand.client.problems import Unreachable
from hourhand.clock import Clock
from hourhand.core.instant import SECOND_US

FIRST_LOOK_S = 0.1
LONGEST_LOOK_S = 1.0

_KEYED = ("POST", "PATCH")  # may carry an idempotency key
_REPEATABLE = ("GET", "PUT")  # do no more when they are repeated, with or without one
_KEY = "Idempotency-Key"  # with it the server carries a request out once, however often it comes


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
            repeatable=_KEY in said or method in _REPEATABLE if repeatable is None else repeatable,
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
        """What is there each time that it has changed, until it is over; TimeoutError says how it stands."""
        clock = self._session.clock
        ends_at = None if timeout_s is None else clock.now() + int(timeout_s * SECOND_US)
        seen, look_s = None, FIRST_LOOK_S
        while True:
            document = yield from self._ask("GET", path)
            if document != seen:
                yield Item(document)
                seen, look_s = document, FIRST_LOOK_S
            if is_over(document):
                return
            if ends_at is not None and clock.now() >= ends_at:
                raise TimeoutError(f"{standing(document)} after {timeout_s:g} s")
            yield Pause(seconds=look_s)
            look_s = min(look_s * 1.5, LONGEST_LOOK_S)


def filtered(limit: int | None, cursor: str | None, filters: Mapping[str, object]) -> dict[str, object]:
    """The query of a list. A filter that is False is said, and `from_` is the API's `from`, which Python keeps."""
    said = {name.removesuffix("_"): "false" if value is False else value for name, value in filters.items()}
    return {"limit": limit, "cursor": cursor, **said}


def _is_told(value: object) -> bool:
    return value is not None and value is not False and value != []


def _text(value: object) -> str | list[str]:
    if isinstance(value, list | tuple):
        return [str(one) for one in value]
    return "true" if value is True else str(value)
