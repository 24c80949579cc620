"""Texts that no store keeps: those with NUL in them. Refused where they are read, whatever field they are for.

PostgreSQL's texts cannot hold it; with SQLite it would be stored, and lost to whoever moves. Half of a surrogate pair
never gets here: it is no JSON to the decoder, and what is no UTF-8 in an address is read as the sign for unknown.
"""

from collections.abc import Collection, Iterable
from typing import Any

from hourhand.core.fault import Fault
from hourhand.errors import Invalid

NUL = "\0"
_EXPECTED = "a text without the character NUL (U+0000)"
_MAX_FAULTS = 20
_LONGEST_STEP = 100  # of a pointer: a name of whatever length comes back in each fault


def check_texts(value: dict[str, Any], but: Collection[str] = ()) -> None:
    """Refuse a JSON object with NUL in a text or a name, however deep, except below the fields `but`."""
    found: list[Fault] = []
    rest: list[tuple[str, Any]] = [("", {name: one for name, one in value.items() if name not in but})]
    while rest:  # no recursion: how deep it is was for others to say
        pointer, one = rest.pop()
        if isinstance(one, str) and NUL in one:
            found.append(nul_fault(pointer))
        elif isinstance(one, dict):
            found += [nul_fault(pointer, "one in a name") for name in one if NUL in name][:1]
            rest += [
                (f"{pointer}{pointer_to([name])}", item) for name, item in one.items() if NUL not in name
            ]
        elif isinstance(one, list):
            rest += [(f"{pointer}/{index}", item) for index, item in enumerate(one)]
    if found:
        found.sort(key=lambda fault: fault.pointer)
        raise refused(found[:_MAX_FAULTS])


def nul_fault(pointer: str, got: str = "one with it") -> Fault:
    """The fault of such a text; never with the text itself, which may be secret."""
    return Fault(pointer=pointer, expected=_EXPECTED, got=got)


def refused(faults: list[Fault]) -> Invalid:
    """The error for some of them."""
    return Invalid(f"{faults[0].pointer.lstrip('/?') or 'the document'}: expected {_EXPECTED}", faults)


def pointer_to(steps: Iterable[str | int]) -> str:
    """A JSON pointer; a step of more than a hundred characters is cut short."""
    return "".join("/" + _step(str(step)).replace("~", "~0").replace("/", "~1") for step in steps)


def _step(text: str) -> str:
    return text if len(text) <= _LONGEST_STEP else f"{text[: _LONGEST_STEP - 3]}..."
