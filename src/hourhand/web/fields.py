"""The kinds of values in documents: durations, instants, words of a list. Each says what it expects.

A value that does not fit raises `misfit`, which carries words for people; `faults` reads them back out.
Only kinds are here; which fields there are is `schema`'s, and what they mean together is `documents`'.
"""

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from hourhand.core.access import Role
from hourhand.core.backfill import MAX_RATE, Order, parse_rate
from hourhand.core.instant import GIVEN_YEARS, OutOfYears, parse_duration, parse_given_instant
from hourhand.core.model import (
    MAX_CONCURRENCY,
    Delivery,
    Durability,
    JobState,
    MisfirePolicy,
    Overlap,
    Priority,
)
from hourhand.core.operation import Action
from hourhand.core.schedule import Fold, Gap
from hourhand.web.json_text import json_kind

UNLIMITED = "unlimited"
MAX_CONDITION = 200  # characters of a text in a filter, in queries and documents
HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_DURATION_EXPECTED = 'a duration such as "1h30m", "250ms" or a number of seconds'
_RATE_EXPECTED = f"a rate such as 50/s, 10/m or 100/h, at most {MAX_RATE:,}/s"
_INSTANT_EXPECTED = "an RFC 3339 time with its offset, such as 2026-11-16T08:00:00Z"
_CONCURRENCY_EXPECTED = f'a whole number from 1 to {MAX_CONCURRENCY:,}, or "{UNLIMITED}"'

Member = TypeVar("Member", bound=StrEnum | IntEnum)


def misfit(expected: str, got: str | None = None, hint: str | None = None) -> PydanticCustomError:
    """The error of a value that is not what a field expects."""
    return PydanticCustomError(
        "misfit", "expected {expected}", {"expected": expected, "got": got, "hint": hint}
    )


def shown(value: object) -> str:
    """A value as it may stand in an error: short, and never a whole object."""
    match value:
        case bool():
            return json_kind(value)
        case int() | float():
            return str(value)[:40]
        case str():
            text = repr(value)
            return text if len(text) <= 60 else f"{text[:57]}..."
        case _:
            return json_kind(value)


def one_of(kind: type[Member]) -> PlainValidator:
    """Validates a member's name or value, in whatever case it is written."""
    spellings = {(one.name if isinstance(one, IntEnum) else str(one.value)).lower(): one for one in kind}
    allowed = ", ".join(_spelling(one) for one in kind)

    def validate(value: object) -> Any:
        found = spellings.get(value.lower()) if isinstance(value, str) else None
        if found is None:
            raise misfit(f"one of {allowed}", shown(value))
        return found

    return PlainValidator(validate)


def _spelling(one: StrEnum | IntEnum) -> str:
    return one.name if isinstance(one, IntEnum) else str(one.value)


def words(kind: type[Member]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": [_spelling(one) for one in kind]})


def _duration(value: object) -> int:
    if isinstance(value, str | int | float):
        try:
            return parse_duration(value)
        except ValueError:
            pass
    raise misfit(_DURATION_EXPECTED, shown(value))


def _instant(value: object) -> int:
    if not isinstance(value, str):
        raise misfit(_INSTANT_EXPECTED, shown(value))
    try:
        return parse_given_instant(value)
    except OutOfYears:
        raise misfit(_INSTANT_EXPECTED, shown(value), f"within {GIVEN_YEARS}") from None
    except ValueError as error:
        missing_offset = "has no offset" in str(error)
        raise misfit(
            _INSTANT_EXPECTED, shown(value), "end it with Z or an offset" if missing_offset else None
        ) from None


def _rate(value: object) -> int:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return parse_rate(str(value))
        except ValueError:
            pass
    raise misfit(_RATE_EXPECTED, shown(value))


def _concurrency(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool):
        return value  # its range is checked with the other limits
    if isinstance(value, str) and value.lower() == UNLIMITED:
        return UNLIMITED
    raise misfit(_CONCURRENCY_EXPECTED, shown(value))


def _method(value: object) -> str:
    if isinstance(value, str) and value.upper() in HTTP_METHODS:
        return value.upper()
    raise misfit(f"one of {', '.join(HTTP_METHODS)}", shown(value))


def _condition(value: object) -> object:
    if value is None or value == "":
        got = "null" if value is None else "an empty text"
        raise misfit("something to match", got, "leave the condition out where it does not matter")
    if isinstance(value, str) and len(value) > MAX_CONDITION:
        raise misfit(f"at most {MAX_CONDITION} characters", f"{len(value):,} characters")
    return value


def _checked(
    validate: Callable[[object], Any], schema: dict[str, Any]
) -> tuple[PlainValidator, WithJsonSchema]:
    return PlainValidator(validate), WithJsonSchema(schema)


Duration = Annotated[
    int, *_checked(_duration, {"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]})
]
Instant = Annotated[int, *_checked(_instant, {"type": "string", "format": "date-time"})]
Concurrency = Annotated[
    int | str,
    *_checked(
        _concurrency,
        {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_CONCURRENCY}, {"const": UNLIMITED}]},
    ),
]
Rate = Annotated[
    int, *_checked(_rate, {"anyOf": [{"type": "string"}, {"type": "number", "exclusiveMinimum": 0}]})
]
ActionWord = Annotated[Action, one_of(Action), words(Action)]
JobStateWord = Annotated[JobState, one_of(JobState), words(JobState)]
OrderWord = Annotated[Order, one_of(Order), words(Order)]
RoleWord = Annotated[Role, one_of(Role), words(Role)]
Method = Annotated[str, *_checked(_method, {"type": "string", "enum": list(HTTP_METHODS)})]
PriorityWord = Annotated[Priority, one_of(Priority), words(Priority)]
DurabilityWord = Annotated[Durability, one_of(Durability), words(Durability)]
DeliveryWord = Annotated[Delivery, one_of(Delivery), words(Delivery)]
OverlapWord = Annotated[Overlap, one_of(Overlap), words(Overlap)]
MisfireWord = Annotated[MisfirePolicy, one_of(MisfirePolicy), words(MisfirePolicy)]
GapWord = Annotated[Gap, one_of(Gap), words(Gap)]
FoldWord = Annotated[Fold, one_of(Fold), words(Fold)]

# Conditions of a filter: one that says nothing is refused, for it would match everything.
_SAYS_SOMETHING = BeforeValidator(_condition)
TextCondition = Annotated[
    str | None,
    _SAYS_SOMETHING,
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_CONDITION}),
]
InstantCondition = Annotated[
    Instant | None, _SAYS_SOMETHING, WithJsonSchema({"type": "string", "format": "date-time"})
]
StateCondition = Annotated[JobStateWord | None, _SAYS_SOMETHING, words(JobState)]
SwitchCondition = Annotated[bool | None, _SAYS_SOMETHING, WithJsonSchema({"type": "boolean"})]
