"""What tenants have in databases that were there before it was counted, and beside code that does not know of it."""

import sqlite3
from pathlib import Path
from typing import Any

import asyncpg

from hourhand.clock import ManualClock
from hourhand.core.model import FOREVER, Job, JobState
from hourhand.core.quota import QuotaOverride, Use
from hourhand.stores.postgres import PostgresStore, schema
from hourhand.stores.relational.rows import job_values
from hourhand.stores.sqlite import file
from hourhand.stores.sqlite.statements import migrations
from hourhand.stores.sqlite.store import SqliteStore
from tests.contract.builders import draft, every, once, spec

BEFORE = 3  # steps
DROP = "DELETE FROM jobs WHERE id = 1"


def rows(first: int, tenant: str, *timings: Any) -> list[dict[str, Any]]:
    """Jobs as code that knows no rates writes them."""
    found = []
    for number, timing in enumerate(timings, first):
        job = Job(
            id=number,
            tenant=tenant,
            spec=spec(timing, name="ü"),
            state=JobState.ACTIVE,
            since=0,
            until=FOREVER,
            created_at=0,
            updated_at=0,
        )
        values = job_values(job, clock_id=number, attend_at=None, lane=1)
        del values["rate"]
        found.append(values)
    return found


def kept_bytes(*found: dict[str, Any]) -> int:
    return sum(len(one["spec"].encode()) for one in found)


OLD = [*rows(1, "acme", every(60), every(1), once(5)), *rows(4, "globex", every(60))]
NEW = rows(5, "acme", every(2))


async def test_a_file_of_the_version_before(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path, isolation_level=None)
    for script in migrations()[:BEFORE]:
        connection.executescript(script)
    connection.execute(f"PRAGMA application_id = {file.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {BEFORE}")
    for one in OLD:
        names = ", ".join(one)
        marks = ", ".join("?" * len(one))
        connection.execute(f"INSERT INTO jobs ({names}) VALUES ({marks})", list(one.values()))
    connection.close()
    store = SqliteStore.open(path, clock=ManualClock())
    assert (await store.standing("acme")).use == Use(jobs=3, document_bytes=kept_bytes(*OLD[:3]))
    await store.purge(0, 0, 100)
    assert (await store.standing("acme")).use.rate == 61_000
    assert (await store.standing("globex")).use.rate == 1_000
    await store.close()


async def test_a_database_of_the_version_before_and_old_code_on_the_new_one(postgres_url: str) -> None:
    await schema.up(postgres_url, only_to=BEFORE)
    connection = await asyncpg.connect(postgres_url)
    await insert(connection, OLD)
    await schema.up(postgres_url)
    store = await PostgresStore.open(postgres_url)
    assert (await store.standing("acme")).use == Use(jobs=3, document_bytes=kept_bytes(*OLD[:3]))
    assert (await store.standing("globex")).use.jobs == 1
    await insert(connection, NEW)
    await connection.execute(DROP)
    assert (await store.standing("acme")).use == Use(jobs=3, document_bytes=kept_bytes(*OLD[1:3], *NEW))
    while await store.purge(0, 0, 2):
        pass
    assert (await store.standing("acme")).use.rate == 60_000 + 30_000
    await connection.execute("UPDATE jobs SET tenant = 'globex' WHERE id = 2")
    assert (await store.standing("acme")).use.rate == 30_000
    await connection.close()
    await store.close()


async def test_several_databases_share_a_quota_evenly(migrated_url: str) -> None:
    store = await PostgresStore.open(migrated_url, databases=3)
    await store.set_quota("acme", QuotaOverride(jobs=10))
    answers = await store.create_jobs([draft(tenant="acme") for _ in range(10)])
    assert sum(isinstance(one, Job) for one in answers) == 4, "a third, rounded up"
    assert (await store.standing("acme")).quota.jobs == 10
    await store.close()


async def insert(connection: Any, found: list[dict[str, Any]]) -> None:
    for one in found:
        names, marks = ", ".join(one), ", ".join(f"${n}" for n in range(1, len(one) + 1))
        await connection.execute(f"INSERT INTO jobs ({names}) VALUES ({marks})", *one.values())
