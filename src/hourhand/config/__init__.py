"""Settings: one frozen object, read once from flags, environment and files.

`settings` is the table of all keys, `kinds` how their values are written, `loading` where they come from,
`store_urls` which stores there are. Nothing here connects to anything.
"""

from hourhand.config.kinds import is_postgres
from hourhand.config.loading import Effective, Finding, Flag, Loaded, load
from hourhand.config.settings import Settings, UpOptions, sqlite_url
from hourhand.config.store_urls import store_url_fault

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
    "store_url_fault",
]
