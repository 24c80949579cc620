"""The statements of this store, with parameters by name turned into the places that the server knows."""

import re
from functools import cache
from typing import NamedTuple

from hourhand.stores.relational.statements import named_statements, numbered_steps

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


class Statement(NamedTuple):
    """A text with places, and which name goes to which place."""

    text: str
    names: tuple[str, ...]


@cache
def statements() -> dict[str, Statement]:
    """Every named statement of this store."""
    return {name: _placed(text) for name, text in named_statements(__package__).items()}


@cache
def steps() -> list[tuple[str, str]]:
    """The numbered steps of the schema, in order, each with its name."""
    return numbered_steps(__package__)


def _placed(text: str) -> Statement:
    names: dict[str, int] = {}

    def place(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return Statement(_PARAMETER.sub(place, "\n".join(lines)), tuple(names))
