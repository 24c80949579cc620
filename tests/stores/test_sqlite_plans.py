"""What is looked for again and again is found by a key or an index, however many jobs and runs there are."""

from pathlib import Path

import pytest

from hourhand.stores.sqlite import file
from hourhand.stores.sqlite.statements import statements


def plan_of(folder: Path, name: str, parameters: object) -> list[str]:
    """The steps in which a statement would be answered."""
    connection = file.open_writer(folder / "store.db", 4)
    try:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statements()[name]}", parameters).fetchall()  # type: ignore[arg-type]
    finally:
        connection.close()
    return [row[3] for row in rows]


@pytest.mark.parametrize(
    ("name", "parameters", "searches"),
    [
        ("overdue", {"now": 1, "overdue_at": 1, "limit": 1}, "running_held (node_id=? AND deadline_at<?)"),
        ("strays", (1, 1), "running_held (node_id=?)"),
        ("idle_cancelled", (), "running_cancel"),
        ("open_attempt_at", (1, 1, 1), "PRIMARY KEY (job_id=? AND slot=?)"),
        ("keep_progress", {"now": 1, "notes": "[]"}, "PRIMARY KEY (job_id=? AND slot=?)"),
        ("progress_page", (0, 0, 1), "PRIMARY KEY (job_id=? AND slot=?)"),
        (
            "look_named_ready",
            {"places": "[]", "pools": "[]", "now": 1, "until": 1},
            "PRIMARY KEY (job_id=? AND slot>? AND slot<?)",
        ),
        ("still_waiting", {"places": "[]", "pools": "[]"}, "PRIMARY KEY (job_id=? AND slot>? AND slot<?)"),
        (
            "upcoming_ready",
            {"lane": 1, "due_at": 1, "scheduled_at": 1, "job_id": 1, "until": 1, "most": 1, "routed": 0},
            "running_lane (lane=? AND due_at>? AND due_at<?)",
        ),
    ],
)
def test_running_is_searched_by_key_or_index(
    tmp_path: Path, name: str, parameters: object, searches: str
) -> None:
    plan = plan_of(tmp_path, name, parameters)
    assert any(searches in step for step in plan), plan
    assert not [step for step in plan if step.startswith(("SCAN running", "SCAN r"))], plan


@pytest.mark.parametrize(
    ("name", "parameters", "searches"),
    [
        (
            "look_named",
            {"keys": "[]", "pools": "[]", "now": 1, "until": 1},
            "SEARCH p USING PRIMARY KEY (scheduled_at=? AND job_id=?)",
        ),
        (
            "still_waiting",
            {"places": "[]", "pools": "[]"},
            "SEARCH p USING PRIMARY KEY (scheduled_at=? AND job_id=?)",
        ),
        (
            "look_newest",
            {"lane": 1, "now": 1, "step": 4, "limit": 9},
            "planned_lane (lane=? AND due_at>? AND due_at<?)",
        ),
        (
            "upcoming_planned",
            {"lane": 1, "due_at": 1, "scheduled_at": 1, "job_id": 1, "until": 1, "most": 1, "routed": 0},
            "planned_lane (lane=? AND due_at>? AND due_at<?)",
        ),
    ],
)
def test_planned_is_searched_by_key_or_index(
    tmp_path: Path, name: str, parameters: object, searches: str
) -> None:
    connection = file.open_writer(tmp_path / "store.db", 4)
    try:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statements()[name]}", parameters).fetchall()  # type: ignore[arg-type]
    finally:
        connection.close()
    plan = [row[3] for row in rows]
    assert any(searches in step for step in plan), plan
    assert not [step for step in plan if step.startswith(("SCAN planned", "SCAN p "))], plan


@pytest.mark.parametrize(
    ("name", "parameters", "searches"),
    [
        ("graph_jobs", ("default", "[1]"), "INTEGER PRIMARY KEY (rowid=?)"),
        (
            "named_page",
            {"tenant": "default", "low": "a", "high": "b", "before": 1, "limit": 1},
            "COVERING INDEX jobs_name (tenant=? AND name>? AND name<?)",
        ),
    ],
)
def test_jobs_are_not_read_by_tenant_alone(
    tmp_path: Path, name: str, parameters: object, searches: str
) -> None:
    plan = plan_of(tmp_path, name, parameters)
    assert any(searches in step for step in plan), plan
    assert not [step for step in plan if step == "SCAN jobs" or step.endswith("jobs_name (tenant=?)")], plan


_DEEDS = {"tenant": "a", "before_at": 1, "before_id": 1, "from_at": 0, "to_at": 1, "limit": 1}


@pytest.mark.parametrize(
    ("name", "parameters", "searches"),
    [
        ("deeds_page", _DEEDS, "deeds_newest (tenant=?"),
        ("deeds_page_of", {**_DEEDS, "job_id": 1}, "deeds_job (job_id=?"),
        ("makers_of", ("a", 1), "deeds_job (job_id=?"),
        ("count_own", {"tenant": "a", "bound": 1}, "(tenant=?"),
        ("own_planned", {"tenant": "a", "lanes": "[]", "bound": 1}, "planned_lane (lane=?)"),
    ],
)
def test_deeds_and_a_tenants_own_are_searched_by_index_and_in_order(
    tmp_path: Path, name: str, parameters: object, searches: str
) -> None:
    plan = plan_of(tmp_path, name, parameters)
    assert any(searches in step for step in plan), plan
    assert not [step for step in plan if "TEMP B-TREE" in step or step.startswith("SCAN deeds")], plan
