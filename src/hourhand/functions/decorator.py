"""`Hourhand().job`: declares a function as a job, and leaves it an ordinary function.

What is written beside the function is kept as a job document, in the words of the API; whether it is a
good job is checked where all documents are, when it is applied.
"""

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, cast

from hourhand.clock import SystemClock
from hourhand.core.instant import format_duration, format_instant, parse_duration
from hourhand.functions.registry import REGISTRY, RegisteredFunction, Registry

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
Duration = str | float | timedelta
Instant = str | datetime


_WHEN = ("cron", "every", "at", "after")
_OF_A_SCHEDULE = frozenset(
    {
        "cron",
        "every",
        "at",
        "after",
        "wait",
        "tz",
        "dst",
        "phase",
        "starts_at",
        "ends_at",
        "max_runs",
        "key",
    }
)


class JobFunction(Protocol[P, R_co]):
    """A decorated function: itself, and the job it was declared as."""

    function_name: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call it, as if it were not decorated."""
        ...

    def document(self) -> dict[str, Any] | None:
        """The job document that was declared; None without a schedule."""
        ...

    def at(self, when: "Instant", **arguments: Any) -> dict[str, Any]:
        """Ask the server for a run at a time, with these arguments over the declared ones; gives the one-time job."""
        ...

    def run_now(self, **arguments: Any) -> dict[str, Any]:
        """Ask the server for a run now; gives the one-time job."""
        ...

    async def at_async(self, when: "Instant", **arguments: Any) -> dict[str, Any]:
        """The same as `at` on an event loop, where nobody else may be held up."""
        ...

    async def run_now_async(self, **arguments: Any) -> dict[str, Any]:
        """The same as `run_now` on an event loop."""
        ...


class Retry:
    """How a failed run is tried again: `Retry(3, first="1s", max="10m")`."""

    def __init__(
        self, times: int = 3, *, first: Duration = "1s", factor: float = 2, max: Duration = "10m"
    ) -> None:
        self.times = times
        self.first = first
        self.factor = factor
        self.max = max

    def document(self) -> dict[str, Any]:
        """As it stands in a job document."""
        return {
            "max": self.times,
            "first": _duration(self.first),
            "factor": self.factor,
            "max_delay": _duration(self.max),
        }


Parent = str | JobFunction[..., Any]  # the id or the key of a job, or a function that is declared as one


class JobFields(TypedDict, total=False):
    """What may stand beside a function: the fields of a job document, in Python's types."""

    cron: str
    every: Duration
    at: Instant
    after: Parent | Sequence[Parent]
    wait: Duration
    tz: str
    dst: Mapping[str, str]
    phase: Instant
    starts_at: Instant
    ends_at: Instant
    max_runs: int
    name: str
    key: str
    tags: Sequence[str]
    payload: Mapping[str, Any]
    priority: str
    durability: str
    pool: str
    timeout: Duration
    delivery: str
    retry: Retry | int | Mapping[str, Any]
    concurrency: int | None
    overlap: str
    misfire: str | Mapping[str, Any]
    jitter: Duration
    note: str


class Hourhand:
    """Declares jobs: `hh = Hourhand()` at the top of a module, then `@hh.job(…)` on its functions."""

    def __init__(
        self,
        registry: Registry = REGISTRY,
        *,
        client: Callable[[], AbstractContextManager[Any]] | None = None,
        async_client: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
    ) -> None:
        self.registry = registry
        self._client = client or _client
        self._async_client = async_client or _async_client

    def function(self, function: Callable[P, R_co]) -> JobFunction[P, R_co]:
        """Registers a function without a schedule: jobs made elsewhere may call it by its name."""
        return self._register(function, {})

    def job(self, **fields: Unpack[JobFields]) -> Callable[[Callable[P, R_co]], JobFunction[P, R_co]]:
        """Registers a function together with its schedule and policies.

        Exactly one of `cron`, `every`, `at` and `after` says when; with no field at all it is `function`. Durations
        are `"1h30m"`, seconds or timedeltas, instants RFC 3339 or aware datetimes; `after` names jobs by id or key, or is
        functions that are jobs themselves.
        """
        written = _in_words_of_the_api(fields)

        def declare(function: Callable[P, R_co]) -> JobFunction[P, R_co]:
            return self._register(function, written)

        return declare

    def _register(self, function: Callable[P, R_co], written: dict[str, Any]) -> JobFunction[P, R_co]:
        if hasattr(function, "function_name"):
            raise ValueError(f"{function.function_name} is declared already; a second job needs a document")
        registered = RegisteredFunction(function, written or None)
        self.registry.add(registered)
        decorated = cast(JobFunction[P, R_co], function)
        decorated.function_name = registered.name
        decorated.document = registered.document  # type: ignore[method-assign]

        def at(when: Instant, **arguments: Any) -> dict[str, Any]:
            return self._ask(registered, _instant(when), arguments)

        def run_now(**arguments: Any) -> dict[str, Any]:
            return self._ask(registered, format_instant(SystemClock().now()), arguments)

        async def at_async(when: Instant, **arguments: Any) -> dict[str, Any]:
            return await self._ask_async(registered, _instant(when), arguments)

        async def run_now_async(**arguments: Any) -> dict[str, Any]:
            return await self._ask_async(registered, format_instant(SystemClock().now()), arguments)

        decorated.at = at  # type: ignore[method-assign]
        decorated.run_now = run_now  # type: ignore[method-assign]
        decorated.at_async = at_async  # type: ignore[method-assign]
        decorated.run_now_async = run_now_async  # type: ignore[method-assign]
        return decorated

    def _ask(self, registered: RegisteredFunction, at: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Make a one-time job with the declared policies; waits for the server's answer."""
        if _is_on_an_event_loop():  # the server may be on the very same one, and could not answer
            name = registered.function.__name__
            raise RuntimeError(
                f"an event loop waits for nobody: await {name}.run_now_async(…) or {name}.at_async(…)"
            )
        with self._client() as client:
            made: dict[str, Any] = client.jobs.create(_one_time(registered, at, arguments))
        return made

    async def _ask_async(
        self, registered: RegisteredFunction, at: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The same, while others go on."""
        async with self._async_client() as client:
            made: dict[str, Any] = await client.jobs.create(_one_time(registered, at, arguments))
        return made


def _one_time(registered: RegisteredFunction, at: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a job that runs a function once, with what was declared for it but the schedule."""
    declared = registered.document() or {"name": registered.function.__name__}
    document = {field: value for field, value in declared.items() if field not in _OF_A_SCHEDULE}
    payload = {**declared.get("payload", {}), **arguments}
    target = {"type": "python", "function": registered.name}
    return {**document, "at": at, "target": target, "payload": payload}


def _is_on_an_event_loop() -> bool:
    asyncio = sys.modules.get("asyncio")  # whoever has not imported it has no loop
    try:
        return asyncio is not None and asyncio.get_running_loop() is not None
    except RuntimeError:
        return False


def _client() -> AbstractContextManager[Any]:
    """Found by its public name when it is first needed: workers, who import these modules, ask nobody."""
    import hourhand

    made: AbstractContextManager[Any] = hourhand.Client()
    return made


def _async_client() -> AbstractAsyncContextManager[Any]:
    import hourhand

    made: AbstractAsyncContextManager[Any] = hourhand.AsyncClient()
    return made


def _in_words_of_the_api(fields: JobFields) -> dict[str, Any]:
    unknown = sorted(fields.keys() - JobFields.__annotations__.keys())
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], JobFields.__annotations__, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise TypeError(f"a job has no field {unknown[0]!r}{hint}")
    if fields and sum(field in fields for field in _WHEN) != 1:
        raise ValueError("a job has exactly one of cron, every, at and after")
    return {
        field: _CONVERTERS[field](value) if field in _CONVERTERS else value for field, value in fields.items()
    }


def _duration(value: Duration) -> str:
    return format_duration(parse_duration(value.total_seconds() if isinstance(value, timedelta) else value))


def _instant(value: Instant) -> str:
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ValueError(f"{value.isoformat()} has no zone, such as datetime(2026, 11, 16, tzinfo=UTC)")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _parents(value: Parent | Sequence[Parent]) -> list[str]:
    """Ids and keys as they are, and the keys of functions."""
    return [
        _parent(one)
        for one in (value if isinstance(value, Sequence) and not isinstance(value, str) else [value])
    ]


def _parent(value: Parent) -> str:
    if isinstance(value, str):
        return value
    if not hasattr(value, "function_name"):
        raise TypeError(f"after: expected ids, keys or declared functions, got {value!r}")
    document = value.document()
    if document is None:
        raise ValueError(f"after: {value.function_name} is no job; give it a schedule, with @hh.job(…)")
    return str(document["key"])


def _retry(value: Retry | int | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(value, Retry):
        return value.document()
    return {"max": value} if isinstance(value, int) else dict(value)


def _misfire(value: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"policy": value} if isinstance(value, str) else dict(value)


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "every": _duration,
    "at": _instant,
    "after": _parents,
    "wait": _duration,
    "phase": _instant,
    "starts_at": _instant,
    "ends_at": _instant,
    "tags": list,
    "priority": str.upper,
    "timeout": _duration,
    "retry": _retry,
    "misfire": _misfire,
    "jitter": _duration,
}
