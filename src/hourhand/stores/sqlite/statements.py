"""Loads the named statements of `sql/*.sql`; a name stands in a `-- name: purpose` line above each.

Statements are static text. The one thing made from them is an insert of many rows in one step: its
single VALUES tuple repeated, so that the interpreter lock is let go once per batch and not once per row.
"""

import re
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- ([a-z_]+): .+$", re.MULTILINE)
_VALUES = re.compile(r"VALUES \((\?(?:, \?)*)\)")


@cache
def statements() -> dict[str, str]:
    """Every named statement of this store."""
    found: dict[str, str] = {}
    for file in sorted(resources.files(__package__).joinpath("sql").iterdir(), key=lambda f: f.name):
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two statements are named {name}")
            found[name] = text.strip().removesuffix(";")
    return found


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
    files = resources.files(__package__).joinpath("migrations").iterdir()
    return [file.read_text(encoding="utf-8") for file in sorted(files, key=lambda f: f.name)]
