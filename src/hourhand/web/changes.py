"""What differs between two documents of a job, field by field, as people would name the fields. Pure."""

from typing import Any

import msgspec

_WHOLE = frozenset({"payload", "tags", "after"})  # a change of these is told as one


def field_changes(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """`{field, before, after}` for each that differs, in the order of the documents."""
    return _changes(_plain(before), _plain(after), "")


def _changes(before: dict[str, Any], after: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in (*before, *(name for name in after if name not in before)):
        was, becomes = before.get(name), after.get(name)
        if was == becomes:
            continue
        if isinstance(was, dict) and isinstance(becomes, dict) and name not in _WHOLE:
            found += _changes(was, becomes, f"{prefix}{name}.")
        else:
            found.append({"field": prefix + name, "before": was, "after": becomes})
    return found


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    """The document as JSON has it."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return plain
