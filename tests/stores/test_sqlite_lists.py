"""Pages of jobs of a large file: no statement behind them sorts or walks through everything to find a few."""

import sqlite3
from pathlib import Path

import pytest

from hourhand.clock import ManualClock
from hourhand.ports.reading import JobQuery
from hourhand.stores.sqlite.statements import statements
from hourhand.stores.sqlite.store import SqliteStore
from tests.contract.builders import draft, every, spec

MANY = 6_000  # more than a prefix may match to be looked up by name


def plan_of(path: Path, name: str, parameters: object) -> list[str]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statements()[name]}", parameters).fetchall()
    return [row[3] for row in rows]


@pytest.mark.parametrize("name", ["jobs_page", "paused_page"])
async def test_a_page_of_jobs_is_read_in_its_order(tmp_path: Path, name: str) -> None:
    store = SqliteStore.open(tmp_path / "a.db", clock=ManualClock())
    await store.close()
    plan = plan_of(tmp_path / "a.db", name, (1 << 62, "default", 50))
    assert len(plan) == 1, plan
    assert plan[0].startswith("SEARCH jobs USING"), plan


async def test_a_prefix_that_most_jobs_share_is_found_newest_first_like_a_rare_one() -> None:
    store = SqliteStore.in_memory(clock=ManualClock())
    for first in range(0, MANY, 1_000):
        await store.create_jobs(
            [draft(spec(every(3600), name=f"job-{n:05d}"), id=n + 1) for n in range(first, first + 1_000)]
        )

    async def found(prefix: str, before_id: int | None = None) -> list[str]:
        query = JobQuery(name_prefix=prefix, limit=3, before_id=before_id)
        return [job.spec.name for job in (await store.list_jobs("default", query)).jobs]

    assert await found("job-") == ["job-05999", "job-05998", "job-05997"]
    assert await found("job-", before_id=3) == ["job-00001", "job-00000"]
    assert await found("job-0123") == ["job-01239", "job-01238", "job-01237"]
    assert await found("job-0123", before_id=1_233) == ["job-01231", "job-01230"]
    assert await found("jobs") == []
    await store.close()
