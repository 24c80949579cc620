"""Which statements can get in each other's way, read off their text.

Below REPEATABLE READ a plain read sees what is committed, so it minds nobody's open transaction, only commits of what
it reads. Writes and locks mind each other at once. A statement's tables are taken too wide rather than too narrow:
whoever locks anything counts as locking all that it names.
"""

import re
from typing import NamedTuple

from hourhand.stores.postgres.statements import steps

TABLES = frozenset(
    name for _, text in steps() for name in re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?([a-z_]+)", text)
) | {"meta"}
COMMIT = "COMMIT"
_WORD = re.compile(r"[a-z_]+")
_WRITTEN = re.compile(r"\b(?:insert\s+into|update|delete\s+from)\s+([a-z_]+)", re.IGNORECASE)
_LOCKS = re.compile(r"\bfor\s+(?:no\s+key\s+)?(?:update|share)\b", re.IGNORECASE)
_ADVISORY = re.compile(r"\badvisory|_advisory_", re.IGNORECASE)
_ANYTHING = "anything"


class Footprint(NamedTuple):
    """What a statement reads, and what it writes or locks; of a commit, what becomes visible by it."""

    reads: frozenset[str]
    writes: frozenset[str]
    commits: bool = False


def footprint(text: str) -> Footprint:
    """The footprint of one statement."""
    named = frozenset(_WORD.findall(text.lower())) & TABLES
    writes = frozenset(table for table in _WRITTEN.findall(text.lower()) if table in TABLES)
    if _LOCKS.search(text):
        writes = named
    if _ADVISORY.search(text):
        writes |= {"advisory locks"}
    return Footprint(named, writes)


def committed(writes: frozenset[str]) -> Footprint:
    """The footprint of the commit of a transaction that wrote this."""
    return Footprint(frozenset(), writes, commits=True)


WHOLE = Footprint(frozenset({_ANYTHING}), frozenset({_ANYTHING}))  # of a step that is a whole transaction


PASSING = Footprint(frozenset({"time"}), frozenset({"time"}))  # of a step in which time passes


def are_independent(one: Footprint, other: Footprint) -> bool:
    """Whether two steps lead to the same in either order."""
    if PASSING in (one, other):
        return False
    if one.commits and other.commits:
        return True
    if one.commits or other.commits:
        commit, statement = (one, other) if one.commits else (other, one)
        return commit.writes.isdisjoint(statement.reads | statement.writes)
    return one.writes.isdisjoint(other.writes)
