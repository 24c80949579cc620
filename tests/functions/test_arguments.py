"""Payloads against signatures: names, types, conversion, and annotations that cannot be checked."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from hourhand import Run
from hourhand.functions.arguments import Arguments, WrongArguments, check_signature

if TYPE_CHECKING:
    from decimal import Decimal


class Size(Enum):
    SMALL = "small"


@dataclass
class Window:
    start: datetime
    days: int = 1


class Connection:
    pass


def bind(function: Callable[..., Any], payload: Any) -> dict[str, Any]:
    return Arguments(function).bind(msgspec.Raw(msgspec.json.encode(payload)))


def nothing() -> None: ...
def plain(a, b=2): ...  # type: ignore[no-untyped-def]
def typed(count: int, name: str = "x", *, ratio: float = 0.5, tags: list[str] | None = None) -> None: ...
def converted(when: datetime, size: Size, window: Window) -> None: ...
def opaque(connection: Connection, path: Path, anything: Any = None, n: int = 0) -> None: ...
def partly(a, n: int): ...  # type: ignore[no-untyped-def]
def open_ended(a: int, **rest: Any) -> None: ...
def starred(*args: Any, a: int = 0) -> None: ...
def unresolved(price: "Decimal", n: int) -> None: ...
def misspelled(ctx: "Rnu", n: int) -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("function", "payload", "given"),
    [
        (nothing, None, {}),
        (nothing, {}, {}),
        (plain, {"a": [1]}, {"a": [1]}),
        (plain, {"a": 1, "b": None}, {"a": 1, "b": None}),
        (typed, {"count": 1}, {"count": 1}),
        (typed, {"count": 1, "ratio": 2, "tags": ["a"]}, {"count": 1, "ratio": 2.0, "tags": ["a"]}),
        (
            converted,
            {"when": "2026-11-16T00:00:00Z", "size": "small", "window": {"start": "2026-11-16T00:00:00Z"}},
            {
                "when": datetime(2026, 11, 16, tzinfo=UTC),
                "size": Size.SMALL,
                "window": Window(datetime(2026, 11, 16, tzinfo=UTC)),
            },
        ),
        (partly, {"a": "x", "n": 1}, {"a": "x", "n": 1}),
        (opaque, {"connection": 1, "path": "/x", "n": 3}, {"connection": 1, "path": "/x", "n": 3}),
        (open_ended, {"a": 1, "z": [2]}, {"a": 1, "z": [2]}),
        (starred, {"a": 1}, {"a": 1}),
        (unresolved, {"price": "1.5", "n": 1}, {"price": "1.5", "n": 1}),
        (misspelled, {"n": 1}, {"n": 1}),
    ],
)
def test_what_fits(function: Callable[..., Any], payload: Any, given: dict[str, Any]) -> None:
    assert bind(function, payload) == given


@pytest.mark.parametrize(
    ("function", "payload", "words"),
    [
        (nothing, {"a": 1}, "the payload does not fit: unexpected 'a'; it takes no arguments"),
        (plain, None, "the payload does not fit: missing 'a'; it takes a, b (optional)"),
        (plain, {"c": 1}, "the payload does not fit: missing 'a', unexpected 'c'; it takes a, b (optional)"),
        (plain, "text", "the payload is a string, expected an object of arguments; it takes a, b (optional)"),
        (plain, 1, "the payload is a number, expected an object of arguments; it takes a, b (optional)"),
        (plain, True, "the payload is a boolean, expected an object of arguments; it takes a, b (optional)"),
        (typed, {"count": "1"}, "argument 'count': expected int, got str"),
        (typed, {"count": True}, "argument 'count': expected int, got bool"),
        (typed, {"count": 1.5}, "argument 'count': expected int, got float"),
        (typed, {"count": 1, "tags": ["a", 2]}, "argument 'tags[1]': expected str, got int"),
        (open_ended, {"a": "x"}, "argument 'a': expected int, got str"),
    ],
)
def test_what_does_not_is_named(function: Callable[..., Any], payload: Any, words: str) -> None:
    with pytest.raises(WrongArguments) as refusal:
        bind(function, payload)
    assert str(refusal.value) == words


def takes_ctx(ctx): ...  # type: ignore[no-untyped-def]
def takes_run(anything: Run, /) -> None: ...
def takes_spelled(anything: "Run") -> None: ...
def second(a: int, ctx: Run) -> None: ...
def keyword(*, ctx: int = 1) -> None: ...


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (takes_ctx, True),
        (takes_run, True),
        (takes_spelled, True),
        (second, False),
        (keyword, False),
        (nothing, False),
    ],
)
def test_who_gets_the_context(function: Callable[..., Any], takes: bool) -> None:
    assert Arguments(function).takes_context is takes


def test_functions_no_payload_could_be_given_to_are_refused_at_once() -> None:
    def generator() -> Any:
        yield 1

    async def async_generator() -> Any:
        yield 1

    def positional(ctx: Run, a: int, /) -> None: ...

    for function, words in [(generator, "generator"), (async_generator, "generator"), (positional, "'a'")]:
        with pytest.raises(TypeError, match=words):
            check_signature(function)
    check_signature(takes_run)
