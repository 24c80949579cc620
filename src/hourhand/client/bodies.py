"""What is sent, as JSON. Floats that JSON has no word for are refused: encoders make null of them and say nothing."""

import math
from collections.abc import Iterator, Mapping

import msgspec

from hourhand.core.fault import Fault
from hourhand.errors import Invalid


def encoded(body: object) -> bytes:
    """The body of a request; Invalid names every number in it that is none."""
    text = msgspec.json.encode(body)  # first, since it refuses what contains itself
    faults = [
        Fault(pointer=pointer, expected="a finite number", got=f"{number}")
        for pointer, number in _not_finite(body, "")
    ]
    if faults:
        raise Invalid(f"{faults[0].pointer}: expected a finite number, got {faults[0].got}", faults)
    return text


def _not_finite(value: object, pointer: str) -> Iterator[tuple[str, float]]:
    match value:
        case float() if not math.isfinite(value):
            yield pointer, value
        case Mapping():
            for name, member in value.items():
                yield from _not_finite(member, f"{pointer}/{_escaped(str(name))}")
        case list() | tuple() | set() | frozenset():
            for index, item in enumerate(value):
                yield from _not_finite(item, f"{pointer}/{index}")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
