"""An example of parameters for every named statement, and how many rows it may handle with them.

A statement that reads by key handles as many rows as it is given keys; a page, a bounded number. What may
handle more says why.
"""

from tests.stores.postgres_examples.jobs import BACKFILLS, CLOCKS, GRAPHS, JOBS, SEGMENTS, SIZES, SKIPS
from tests.stores.postgres_examples.runs import (
    AUDITS,
    CLAIMS,
    LETTERS,
    LOGS,
    READING,
    REPAIR,
    REPORTS,
    SETTLING,
)
from tests.stores.postgres_examples.shape import FEW, Example
from tests.stores.postgres_examples.teams import ANSWERS, DEEDS, OPERATIONS, QUOTAS, TOKENS, WEBHOOKS

__all__ = ["EXAMPLES", "FEW"]

EXAMPLES: dict[str, Example] = {
    **AUDITS,
    **BACKFILLS,
    **OPERATIONS,
    **TOKENS,
    **QUOTAS,
    **SEGMENTS,
    **WEBHOOKS,
    **SKIPS,
    **CLAIMS,
    **CLOCKS,
    **DEEDS,
    **GRAPHS,
    **JOBS,
    **LETTERS,
    **ANSWERS,
    **LOGS,
    **READING,
    **REPAIR,
    **REPORTS,
    **SETTLING,
    **SIZES,
}
