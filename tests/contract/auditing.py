"""An audit of everything a store has, for tests that have made a mess of it."""

from hourhand.clock import ManualClock
from hourhand.core.audit import AuditReport, Window
from hourhand.core.instant import DAY_US
from hourhand.services.audit import Audit
from hourhand.stores.sqlite.engine import SqliteTx
from tests.contract.harness import KEEP_US, Harness, SqliteFileHarness, SqliteMemoryHarness
from tests.contract.postgres_harness import PostgresHarness


async def audit(
    harness: Harness,
    *,
    from_at: int | None = None,
    to_at: int | None = None,
    job_id: int | None = None,
    page_jobs: int = 7,
    unit_times: int = 50,
) -> AuditReport:
    """All jobs of all tenants up to and with now, unless told otherwise; in small pages, so that there are some."""
    now_at = harness.now()
    window = Window(
        from_at=now_at - 3 * DAY_US if from_at is None else from_at,
        to_at=now_at + 1 if to_at is None else to_at,
        job_id=job_id,
    )
    clock = ManualClock(now_at)
    audit = Audit(
        store=harness.store, clock=clock, keep_us=KEEP_US, page_jobs=page_jobs, unit_times=unit_times
    )
    return await audit.window(window)


def assert_clean(report: AuditReport) -> None:
    """Everything fits."""
    assert report.complete, (report.unread, report.missing)
    assert not report.kinds, (report.kinds, report.findings[:5])
    assert report.tally.expected == report.tally.accounted, report.tally


async def execute(harness: Harness, statement: str) -> None:
    """Do something to a store behind its back."""
    if isinstance(harness, PostgresHarness):
        await harness.store._engine.on_connection(lambda connection: connection.execute(statement))
        return

    async def operation(tx: SqliteTx) -> None:
        tx._connection.execute(statement)

    assert isinstance(harness, SqliteFileHarness | SqliteMemoryHarness)
    await harness.store._engine.write(operation)
