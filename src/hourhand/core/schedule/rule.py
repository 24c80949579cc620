"""A rule is a cron expression in a zone or an interval with its phase; both answer the same questions."""

from hourhand.core.schedule.cron import Cron
from hourhand.core.schedule.every import Every, parse_every_key
from hourhand.core.schedule.expression import parse_cron_key

Rule = Cron | Every


def parse_key(key: str) -> Rule:
    """The rule whose `key` this is."""
    return parse_every_key(key) if key.startswith("every ") else parse_cron_key(key)
