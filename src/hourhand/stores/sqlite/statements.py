"""The statements of this store. Static text, but for one thing: an insert of many rows in one step.

Its single VALUES tuple is repeated, so that the interpreter lock is let go once per batch and not once per row.
"""

import re
from functools import cache

from hourhand.stores.relational.statements import named_statements, numbered_steps

_VALUES = re.compile(r"VALUES \((\?(?:, \?)*)\)")


@cache
def statements() -> dict[str, str]:
    """Every named statement of this store."""
    return named_statements(__package__)


@cache
def repeated(name: str, rows: int) -> str:
    """An insert statement with its VALUES tuple repeated for so many rows."""
    text = statements()[name]
    match = _VALUES.search(text)
    if match is None:
        raise ValueError(f"{name} has no plain VALUES tuple")
    tuples = ", ".join([f"({match[1]})"] * rows)
    return f"{text[: match.start()]}VALUES {tuples}{text[match.end() :]}"


@cache
def migrations() -> list[str]:
    """The numbered steps of the schema, in order."""
    return [text for _, text in numbered_steps(__package__)]
