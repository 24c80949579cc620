"""Loads a store's static text: the named statements of `sql/*.sql`, and the numbered steps of its schema.

A name stands in a `-- name: purpose` line above each statement; further comment lines belong to it. What several
statements say alike is a `-- part name: purpose` of its own, and stands in them as `{name}`.
"""

import re
from importlib import resources

_NAME = re.compile(r"^-- ((?:part )?[a-z_]+): .+$", re.MULTILINE)
_PART = re.compile(r"\{([a-z_]+)\}")


def named_statements(package: str) -> dict[str, str]:
    """Every named statement of a store's package."""
    found: dict[str, str] = {}
    parts_of: dict[str, str] = {}
    for file in sorted(resources.files(package).joinpath("sql").iterdir(), key=lambda file: file.name):
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found or name in parts_of:
                raise ValueError(f"two statements are named {name}")
            (parts_of if name.startswith("part ") else found)[name] = text.strip().removesuffix(";")
    return {name: _PART.sub(lambda match: parts_of[f"part {match[1]}"], text) for name, text in found.items()}


def numbered_steps(package: str) -> list[tuple[str, str]]:
    """The steps of a store's schema, in order, each with its name."""
    files = resources.files(package).joinpath("migrations").iterdir()
    steps = sorted((file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")) for file in files)
    for number, (name, _) in enumerate(steps, 1):
        if not name.startswith(f"{number:04}_"):
            raise ValueError(f"step {number} of the schema is named {name}")
    return steps
