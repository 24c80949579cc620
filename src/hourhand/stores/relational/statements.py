"""Loads a store's static text: the named statements of `sql/*.sql`, and the numbered steps of its schema.

A name stands in a `-- name: purpose` line above each statement; further comment lines belong to it.
"""

import re
from importlib import resources

_NAME = re.compile(r"^-- ([a-z_]+): .+$", re.MULTILINE)


def named_statements(package: str) -> dict[str, str]:
    """Every named statement of a store's package."""
    found: dict[str, str] = {}
    for file in sorted(resources.files(package).joinpath("sql").iterdir(), key=lambda file: file.name):
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two statements are named {name}")
            found[name] = text.strip().removesuffix(";")
    return found


def numbered_steps(package: str) -> list[tuple[str, str]]:
    """The steps of a store's schema, in order, each with its name."""
    files = resources.files(package).joinpath("migrations").iterdir()
    steps = sorted((file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")) for file in files)
    for number, (name, _) in enumerate(steps, 1):
        if not name.startswith(f"{number:04}_"):
            raise ValueError(f"step {number} of the schema is named {name}")
    return steps
