"""`Run` as users hold it in their tests, and what it refuses."""

from datetime import UTC, datetime, timedelta

import pytest
import structlog

from hourhand import Run


def test_a_fake_run_for_tests() -> None:
    at = datetime(2026, 3, 29, 1, tzinfo=UTC)
    run = Run.fake(scheduled_at=at, attempt=2, timeout=timedelta(seconds=30))
    assert run.scheduled_at == at
    assert run.interval == (None, at)
    assert run.deadline == at + timedelta(seconds=30)
    assert run.attempt == 2
    assert run.run_id.endswith("@20260329T010000Z")
    assert not run.cancelled
    assert run.wait(0) is False
    with pytest.raises(ValueError, match="needs a zone"):
        Run.fake(scheduled_at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_progress_is_bounded_and_logged_with_the_run() -> None:
    with structlog.testing.capture_logs() as logs:
        run = Run.fake()
        run.progress(1.7, "nearly")
        run.log.info("hello", rows=3)
    assert run.last_progress == (1.0, "nearly")
    assert [entry["event"] for entry in logs] == ["progress", "hello"]
    assert {entry["run_id"] for entry in logs} == {run.run_id}


def test_waiting_would_block_the_loop() -> None:
    with pytest.raises(RuntimeError, match="event loop"):
        Run(Run.fake()._run).wait(1)
