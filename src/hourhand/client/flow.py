"""Requests without I/O: generators that say what to send and when to pause, driven by any client.

A `Flow` yields steps and returns its result. `endpoint` and `listing` turn a flow into a method that
blocks, or is awaited, after the driver of the resource it is called on.
"""

import math
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

T = TypeVar("T")
P = ParamSpec("P")

Document = dict[str, Any]
"""A JSON object of the API, as it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request. `repeatable`: sending it twice does no more than sending it once.

    `wait_s`: how long the server is asked to wait, on top of the client's timeout. `most_s`: how long whoever asks has
    at most, should that be less.
    """

    method: str
    path: str
    query: Mapping[str, str | list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    repeatable: bool = False
    wait_s: float = 0
    most_s: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Nothing came back. `sent`: the server may have got the request."""

    words: str
    sent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A request whose answer is read line by line; one at a time, and the one before is let go of.

    `silence_s`: after so long without a byte whoever sends them is taken to be gone; None: after the client's timeout.
    """

    request: Request
    silence_s: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """The next line of the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait before the next step."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Item:
    """One element of a listing, for the caller."""

    value: Any


Step = Request | Stream | Line | Pause | Item
Flow = Generator[Step, Any, T]
"""Gets an Answer or a Trouble for a Request or a Stream, whose Answer has no body where it is 2xx; for a Line the
line, None at the end, or a Trouble; and None for the others."""


class Blocking(Protocol):
    """Drives flows while the caller waits."""

    def run(self, flow: Flow[T]) -> T:
        """To its end."""
        ...

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Item by item."""
        ...


class Awaiting(Protocol):
    """Drives flows on an event loop."""

    async def run_async(self, flow: Flow[T]) -> T:
        """To its end."""
        ...

    def iterate_async(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Item by item."""
        ...


D = TypeVar("D", bound=Blocking | Awaiting)


class Resource(Generic[D]):
    """A group of endpoints of one client."""

    def __init__(self, driver: D) -> None:
        self._driver = driver


class endpoint(Generic[P, T]):  # noqa: N801 -- a decorator
    """A method that gives one result."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self._flow = flow
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, resource: "Resource[Blocking]", owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, resource: "Resource[Awaiting]", owner: object = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: "Resource[Any]", owner: object = None) -> Callable[P, Any]:
        driver = resource._driver
        run = driver.run if hasattr(driver, "run") else driver.run_async

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return run(self._flow(resource, *args, **kwargs))

        return update_wrapper(call, self._flow)


class listing(Generic[P]):  # noqa: N801 -- a decorator
    """A method that gives documents one by one, asking for more as they are used up."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[None]]) -> None:
        self._flow = flow
        self.__doc__ = flow.__doc__

    @overload
    def __get__(
        self, resource: "Resource[Blocking]", owner: object = None
    ) -> Callable[P, Iterator[Document]]: ...
    @overload
    def __get__(
        self, resource: "Resource[Awaiting]", owner: object = None
    ) -> Callable[P, AsyncIterator[Document]]: ...
    def __get__(self, resource: "Resource[Any]", owner: object = None) -> Callable[P, Any]:
        driver = resource._driver
        iterate = driver.iterate if hasattr(driver, "iterate") else driver.iterate_async

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return iterate(self._flow(resource, *args, **kwargs))

        return update_wrapper(call, self._flow)
