"""Settings: one frozen object, read once from flags, environment and files.

`settings` is the table of all keys, `kinds` how their values are written, `loading` where they come from.
Nothing here connects to anything; what a store or target makes of its value is theirs to judge.
"""

from hourhand.config.kinds import is_postgres
from hourhand.config.loading import Effective, Finding, Flag, Loaded, load
from hourhand.config.settings import Settings, UpOptions, sqlite_url

__all__ = [
    "Effective",
    "Finding",
    "Flag",
    "Loaded",
    "Settings",
    "UpOptions",
    "is_postgres",
    "load",
    "sqlite_url",
]
