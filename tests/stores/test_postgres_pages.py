"""Lists of finished runs over many days, moments in which much ended, and silence: nothing twice, nothing lost."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hourhand.core.instant import DAY_US, HOUR_US, SECOND_US
from hourhand.core.lifecycle import State
from hourhand.core.model import Job
from hourhand.ports.reading import RunQuery
from hourhand.stores.postgres import finished, partitions
from hourhand.stores.relational.rows import STATE_CODES
from tests.contract.builders import once, spec
from tests.contract.harness import START_AT
from tests.contract.paging import all_runs
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.scene import Scene

Row = tuple[int, int, int]  # finished_at, job, scheduled_at: the order of the list, backwards

DAYS = 5
_INSERT = (
    "INSERT INTO history (job_id, scheduled_at, due_at, started_at, finished_at, bucket, attempt, version, state,"
    " trigger, tries) VALUES ($1, $2, $2, $3, $3, $4, 1, 1, $5, 0, 0)"
)


class Past:
    """What ended in the last days, and the lists of it."""

    def __init__(self, scene: Scene, jobs: list[Job], rows: dict[Row, State]) -> None:
        self._scene = scene
        self.jobs = jobs
        self.rows = rows

    def expected(self, job: Job | None = None, state: State | None = None) -> list[Row]:
        return sorted(
            (
                row
                for row, ended in self.rows.items()
                if (job is None or row[1] == job.id) and (state is None or ended is state)
            ),
            reverse=True,
        )

    async def listed(self, limit: int, **query: Any) -> list[Row]:
        """All pages, one after another."""
        asked = RunQuery(from_at=0, to_at=START_AT, limit=limit, **query)
        runs = await all_runs(self._scene.store, asked)
        return [(run.attempts[-1].finished_at, run.job_id, run.scheduled_at) for run in runs]


@pytest.fixture
async def past(migrated_url: str) -> AsyncIterator[Past]:
    """Some hundred runs: a rush, a moment in which many ended at once, single ones, some late by more than a day."""
    harness = await PostgresHarness(migrated_url).open()
    scene = Scene(harness)
    draw = random.Random(1)
    jobs = [await scene.create(spec(once(START_AT + DAY_US * 30))) for _ in range(6)]
    others = await scene.create(spec(once(START_AT + DAY_US * 30)), tenant="other")
    rows: dict[Row, State] = {}

    def add(finished_at: int, late_us: int) -> None:
        state = draw.choice([State.SUCCEEDED, State.SUCCEEDED, State.SKIPPED, State.CANCELLED])
        rows[finished_at, draw.choice(jobs).id, finished_at - late_us] = state

    for n in range(120):
        add(START_AT - 30 * HOUR_US - n * 50, late_us=n)  # a rush
    for n in range(90):
        add(START_AT - 50 * HOUR_US, late_us=n * 1000)  # one moment
    for _ in range(60):
        add(
            START_AT - draw.randrange(DAYS * DAY_US),
            late_us=draw.choice([0, SECOND_US, 2 * DAY_US, 90 * DAY_US]),
        )

    async def write(connection: Any) -> None:
        for day in range(DAYS):
            await partitions.make_ahead(connection, START_AT - day * DAY_US)
        await connection.executemany(_INSERT, [_values(row, state) for row, state in rows.items()])
        theirs = [(at, others.id, at - 1) for at, _, _ in rows]
        await connection.executemany(_INSERT, {_values(row, State.SUCCEEDED) for row in theirs})

    await harness.store._engine.on_connection(write)
    yield Past(scene, jobs, rows)
    await harness.close()


def _values(row: Row, state: State) -> tuple[int, ...]:
    finished_at, job_id, scheduled_at = row
    near = abs(scheduled_at - finished_at) < DAY_US
    return (job_id, scheduled_at, finished_at, scheduled_at // DAY_US if near else 0, STATE_CODES[state])


@pytest.fixture(params=["as it is", "tight"])
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with bounds that these few rows exceed all the time."""
    if request.param == "tight":
        monkeypatch.setattr(finished, "_SLICE_ROWS", 8)
        monkeypatch.setattr(finished, "_MOST_ROWS", 20)


@pytest.mark.usefixtures("bounds")
@pytest.mark.parametrize("limit", [7, 1_000])
async def test_pages_hold_everything_once_and_in_order(past: Past, limit: int) -> None:
    assert await past.listed(limit) == past.expected()


@pytest.mark.usefixtures("bounds")
async def test_pages_of_some_states_hold_all_of_these(past: Past) -> None:
    assert await past.listed(7, states=("SKIPPED",)) == past.expected(state=State.SKIPPED)


@pytest.mark.usefixtures("bounds")
async def test_pages_of_a_job_hold_all_that_it_did(past: Past) -> None:
    for job in past.jobs[:2]:
        assert await past.listed(7, job_id=job.id) == past.expected(job)


async def test_a_page_looks_at_a_bounded_number_of_rows(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers with less, and where to go on, rather than look for long."""
    monkeypatch.setattr(finished, "_MOST_ROWS", 20)
    asked = RunQuery(from_at=0, to_at=START_AT, limit=1_000)
    page = await past._scene.store.list_runs("default", asked)
    assert 0 < len(page.runs) < len(past.rows)
    assert page.next_before is not None
