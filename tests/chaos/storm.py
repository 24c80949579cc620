"""What storms have in common: seed and length, what is read when all is quiet, and the demands on a verdict."""

import os
import random
from collections.abc import Sequence

from tests.chaos import tables
from tests.chaos.api import Api
from tests.chaos.calls import instant
from tests.chaos.checker import Evidence, Verdict
from tests.chaos.ledger import JobLife

MINUTES = 10.0


def chaos_seed() -> int:
    """CHAOS_SEED, or a new one; printed, so that a failure can be repeated."""
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"CHAOS_SEED={seed}")
    return seed


def chaos_minutes() -> float:
    """How long a long storm lasts."""
    return float(os.environ.get("CHAOS_MINUTES") or MINUTES)


def shown_endings(jobs: Sequence[JobLife], api: Api) -> dict[tuple[str, int], str]:
    """How each run ended, as the API tells it; of deleted jobs it tells nothing."""
    shown = {}
    for life in jobs:
        if not life.deleted:
            for row in api.history(life.job):
                nominal_at = instant(row["scheduled_at"])
                shown[life.job, nominal_at] = f"{row['status']} {row['reason'] or ''}".strip()
    return shown


def endings_of_deleted(jobs: Sequence[JobLife], source: tables.Source) -> dict[tuple[str, int], str]:
    """How the runs of deleted jobs ended, from the tables."""
    gone = {life.job for life in jobs if life.deleted}
    return {key: end for key, end in tables.endings(source).items() if key[0] in gone}


def look_into(source: tables.Source, evidence: Evidence) -> list[str]:
    """What is wrong in the tables: runs in two places, two ends, owed times that are nowhere."""
    called = {call.key for call in evidence.calls}
    owed = {
        (life.job, at) for life in evidence.jobs if not life.deleted for at in life.owed(evidence.final_at)
    }
    counts, nowhere = tables.accounted(source, owed)
    print(f"in the tables: {len(owed)} owed = {', '.join(f'{n} {state}' for state, n in counts.items())}")
    return [*tables.problems(source, called), *nowhere]


def assert_well(line: str, verdict: Verdict, in_tables: Sequence[str]) -> None:
    """Nothing lost, doubled, early or invented, and enough happened to say so."""
    assert not verdict.problems(), "\n".join([line, *verdict.problems()[:20]])
    assert not in_tables, "\n".join([line, *in_tables[:20]])
    assert verdict.owed > 300
    assert verdict.repeated > 10
