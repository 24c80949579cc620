"""The two clients: how steps are carried out, while the caller waits or on an event loop.

Where the server is and who asks comes from arguments or `HOURHAND_URL`, `HOURHAND_TOKEN` and
`HOURHAND_TENANT`. What is asked is in `resources`, what is tried again in `exchange`.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack
from urllib.parse import urlsplit

import httpx2

from hourhand.client.bodies import encoded
from hourhand.client.deadlines import Deadline, Sending, too_slow
from hourhand.client.exchange import Patience
from hourhand.client.flow import (
    Answer,
    Awaiting,
    Blocking,
    Flow,
    Item,
    Line,
    Pause,
    Request,
    Step,
    Stream,
    Trouble,
)
from hourhand.client.headers import checked, given, headers_of
from hourhand.client.resources.audits import Audits
from hourhand.client.resources.backfills import Backfills
from hourhand.client.resources.dead_letters import DeadLetters
from hourhand.client.resources.deeds import Deeds
from hourhand.client.resources.endpoints import Session
from hourhand.client.resources.jobs import Jobs
from hourhand.client.resources.operations import Operations
from hourhand.client.resources.runs import Runs
from hourhand.client.resources.schedules import Schedules
from hourhand.client.resources.system import System
from hourhand.client.resources.tokens import Tokens
from hourhand.client.resources.webhooks import Webhooks
from hourhand.client.streams import AsyncLineStream, LineStream, trouble
from hourhand.clock import SystemClock
from hourhand.config.kinds import is_loopback
from hourhand.core.url import masked_url, url_faults
from hourhand.errors import Invalid
from hourhand.ids import IdSource

DEFAULT_URL = "http://127.0.0.1:7070"
PREFIX = "/api/v1"
CONNECT_TIMEOUT_S = 5.0
_DOTS = {".", ".."}  # the HTTP library resolves them, and proxies do so even where they are escaped

T = TypeVar("T")
Trace = Callable[[str, Any], Any]  # what the HTTP library tells of a request as it goes


class Options(TypedDict, total=False):
    """What a client may be told beside the address."""

    token: str | None  # HOURHAND_TOKEN
    tenant: str | None  # HOURHAND_TENANT
    timeout_s: (
        float  # of one request as a whole, and of silence in an export; connecting takes at most 5 s of it
    )
    retries: int  # of a request that may be repeated, after its first try


class _Connection:
    """Where the server is, and what every request carries."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        tenant: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 3,
    ) -> None:
        if timeout_s <= 0 or retries < 0:
            raise Invalid(f"timeout_s is over 0 and retries at least 0, got {timeout_s:g} and {retries}")
        self.timeout_s = timeout_s
        self.url = _address(url or os.environ.get("HOURHAND_URL") or DEFAULT_URL)
        token = given(token, os.environ.get("HOURHAND_TOKEN"))
        tenant = given(tenant, os.environ.get("HOURHAND_TENANT"))
        self._options: dict[str, Any] = {
            "base_url": self.url + PREFIX,
            "headers": headers_of(token, tenant),
            "verify": self.url.startswith(
                "https:"
            ),  # a context with all certificates is dear, and unused by http
            # A proxy from the environment cannot reach this machine's own loopback.
            "trust_env": not is_loopback(urlsplit(self.url).hostname or ""),
        }
        ids = IdSource(SystemClock())
        self._session = Session(
            server=masked_url(self.url),
            patience=Patience(retries=retries, salt=ids.node_id()),
            clock=SystemClock(),
            new_key=lambda: f"{ids.node_id():016x}",
        )


class Client(_Connection, Blocking):
    """Asks and waits. Not for several threads at once."""

    def __init__(self, url: str | None = None, **options: Unpack[Options]) -> None:
        super().__init__(url, **options)
        self._http = httpx2.Client(**self._options)
        self._waiting = threading.Event()
        self._deadline = Deadline()
        self.jobs: Jobs[Blocking] = Jobs(self, self._session)
        self.runs: Runs[Blocking] = Runs(self, self._session)
        self.backfills: Backfills[Blocking] = Backfills(self, self._session)
        self.dead_letters: DeadLetters[Blocking] = DeadLetters(self, self._session)
        self.operations: Operations[Blocking] = Operations(self, self._session)
        self.schedules: Schedules[Blocking] = Schedules(self, self._session)
        self.system: System[Blocking] = System(self, self._session)
        self.audits: Audits[Blocking] = Audits(self, self._session)
        self.tokens: Tokens[Blocking] = Tokens(self, self._session)
        self.whoami = self.system.whoami
        self.events = self.system.events
        self.webhooks: Webhooks[Blocking] = Webhooks(self, self._session)
        self.deeds: Deeds[Blocking] = Deeds(self, self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def run(self, flow: Flow[T]) -> T:
        """Drive a flow to its end."""
        reply = None
        while True:
            try:
                step = flow.send(reply)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            reply = self._carry_out(step)

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Drive a flow item by item."""
        reply: Answer | Trouble | str | None = None
        stream = LineStream(self._http)
        try:
            while True:
                try:
                    step = flow.send(reply)
                except StopIteration:
                    return
                match step:
                    case Item(value=value):
                        yield value
                        reply = None
                    case Stream():
                        # It has no deadline, but its connection may be one that requests use later.
                        reply = stream.open(_stream_arguments(step, self.timeout_s, self._deadline.trace))
                    case Line():
                        reply = stream.line()
                    case _:
                        reply = self._carry_out(step)
        finally:
            stream.close()

    def _carry_out(self, step: Step) -> Answer | Trouble | None:
        match step:
            case Request():
                arguments = _arguments(step, self.timeout_s, self._deadline.trace)
                try:
                    with self._deadline.within(_most_s(step, self.timeout_s)):
                        return _answer(self._http.request(**arguments))
                except httpx2.RequestError as error:
                    return trouble(error)
            case Pause(seconds=seconds):
                self._waiting.wait(seconds)  # never set: a sleep that Ctrl-C ends
        return None


class AsyncClient(_Connection, Awaiting):
    """Asks on the running event loop."""

    def __init__(self, url: str | None = None, **options: Unpack[Options]) -> None:
        super().__init__(url, **options)
        self._http = httpx2.AsyncClient(**self._options)
        self.jobs: Jobs[Awaiting] = Jobs(self, self._session)
        self.runs: Runs[Awaiting] = Runs(self, self._session)
        self.backfills: Backfills[Awaiting] = Backfills(self, self._session)
        self.dead_letters: DeadLetters[Awaiting] = DeadLetters(self, self._session)
        self.operations: Operations[Awaiting] = Operations(self, self._session)
        self.schedules: Schedules[Awaiting] = Schedules(self, self._session)
        self.system: System[Awaiting] = System(self, self._session)
        self.audits: Audits[Awaiting] = Audits(self, self._session)
        self.tokens: Tokens[Awaiting] = Tokens(self, self._session)
        self.whoami = self.system.whoami
        self.events = self.system.events
        self.webhooks: Webhooks[Awaiting] = Webhooks(self, self._session)
        self.deeds: Deeds[Awaiting] = Deeds(self, self._session)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()

    async def run_async(self, flow: Flow[T]) -> T:
        """Drive a flow to its end."""
        reply = None
        while True:
            try:
                step = flow.send(reply)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            reply = await self._carry_out(step)

    async def iterate_async(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Drive a flow item by item."""
        reply: Answer | Trouble | str | None = None
        stream = AsyncLineStream(self._http)
        try:
            while True:
                try:
                    step = flow.send(reply)
                except StopIteration:
                    return
                match step:
                    case Item(value=value):
                        yield value
                        reply = None
                    case Stream():
                        reply = await stream.open(_stream_arguments(step, self.timeout_s))
                    case Line():
                        reply = await stream.line()
                    case _:
                        reply = await self._carry_out(step)
        finally:
            await stream.close()

    async def _carry_out(self, step: Step) -> Answer | Trouble | None:
        match step:
            case Request():
                sending, most_s = Sending(), _most_s(step, self.timeout_s)
                arguments = _arguments(step, self.timeout_s, sending.trace)
                try:
                    async with asyncio.timeout(most_s):
                        return _answer(await self._http.request(**arguments))
                except TimeoutError:
                    return Trouble(words=too_slow(most_s), sent=sending.begun)
                except httpx2.RequestError as error:
                    return trouble(error)
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds)
        return None


def _address(url: str) -> str:
    """Where a server answers, to put a path behind; Invalid where that would mean something else."""
    if "?" in url or "#" in url:  # not shown: what stands there may be secret
        raise Invalid(f"the server's URL must look like {DEFAULT_URL}, got one with ? or # in it")
    try:
        faults: object = url_faults(url)
        httpx2.URL(url)
    except httpx2.InvalidURL as error:
        faults = error
    if faults:
        raise Invalid(f"the server's URL must look like {DEFAULT_URL}, got {masked_url(url)!r}")
    return url.rstrip("/")


def _arguments(request: Request, timeout_s: float, trace: Trace | None) -> dict[str, Any]:
    if not _DOTS.isdisjoint(request.path.split("/")):
        raise Invalid('an id or key has no part "." or ".."; in a path it would mean something else')
    headers = checked(request.headers)
    content = None
    if request.body is not None:
        content = encoded(request.body)
        headers = {"Content-Type": "application/json", **headers}
    most_s = _most_s(request, timeout_s)
    return {
        "method": request.method,
        "url": request.path,
        "params": dict(request.query),
        "headers": headers,
        "content": content,
        "timeout": httpx2.Timeout(most_s, connect=min(most_s, CONNECT_TIMEOUT_S)),
        "extensions": {} if trace is None else {"trace": trace},
    }


def _most_s(request: Request, timeout_s: float) -> float:
    """How long it may take as a whole."""
    return min(timeout_s + request.wait_s, request.most_s)


def _stream_arguments(stream: Stream, timeout_s: float, trace: Trace | None = None) -> dict[str, Any]:
    silence_s = timeout_s if stream.silence_s is None else stream.silence_s
    timeout = httpx2.Timeout(silence_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))
    return {**_arguments(stream.request, timeout_s, trace), "timeout": timeout}


def _answer(response: httpx2.Response) -> Answer:
    return Answer(status=response.status_code, headers=response.headers, body=response.content)
