"""The table of effects: its definition, for users to put into their migrations, and the statements on it.

A row says that a run's effect is in this database, and by which attempt. The text is the same for PostgreSQL
and SQLite; where drivers write parameters differently, it is put into their words once.
"""

import re
from functools import cache

MAX_EFFECT_KEY = 200  # characters

EFFECTS_DDL = (
    """\
CREATE TABLE IF NOT EXISTS hourhand_effects (
    effect_key VARCHAR(200) PRIMARY KEY,
    attempt BIGINT NOT NULL,
    applied_at BIGINT NOT NULL
)""",  # applied_at: microseconds since 1970, UTC
    """\
CREATE INDEX IF NOT EXISTS hourhand_effects_by_age ON hourhand_effects (applied_at)""",
)
"""What makes the table `hourhand_effects`: statements for a migration, one by one."""

# Waits for whoever is writing the same key, and then does nothing if that was committed.
CLAIM = """\
INSERT INTO hourhand_effects (effect_key, attempt, applied_at) VALUES (:key, :attempt, :now_at)
ON CONFLICT (effect_key) DO NOTHING"""

ATTEMPT = "SELECT attempt FROM hourhand_effects WHERE effect_key = :key"

FORGET = """\
DELETE FROM hourhand_effects WHERE effect_key IN
(SELECT effect_key FROM hourhand_effects WHERE applied_at < :before_at ORDER BY applied_at LIMIT :most)"""

_PARAMETER = re.compile(r":([a-z_]+)")


@cache
def with_percents(statement: str) -> str:
    """For drivers that write %(key)s."""
    return _PARAMETER.sub(r"%(\1)s", statement)


@cache
def with_numbers(statement: str) -> tuple[str, tuple[str, ...]]:
    """For drivers that write $1, with the names in their order. No statement names one twice."""
    names = tuple(_PARAMETER.findall(statement))
    for number, name in enumerate(names, 1):
        statement = statement.replace(f":{name}", f"${number}", 1)
    return statement, names
