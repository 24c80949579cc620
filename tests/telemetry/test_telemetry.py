"""What is counted, what is logged, and what never is."""

import io
import json
import logging

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from hourhand.core.lifecycle import Event
from hourhand.core.run import Settlement
from hourhand.ports.store import Backlog
from hourhand.telemetry import Telemetry, configure_logging, logger


def samples(telemetry: Telemetry) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(generate_latest(telemetry.registry).decode())
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def settlement(event: Event, started_at: int | None, finished_at: int) -> Settlement:
    return Settlement(
        job_id=1,
        scheduled_at=0,
        slot=0,
        fence=1,
        event=event,
        version=1,
        tries=0,
        started_at=started_at,
        finished_at=finished_at,
    )


def test_settlements_are_counted_by_event_with_their_durations() -> None:
    telemetry = Telemetry()
    telemetry.runs_settled(
        [
            settlement(Event.SUCCEED, 0, 1_000),
            settlement(Event.SUCCEED, 0, 2_000_000),
            settlement(Event.SKIP, None, 5),
            settlement(Event.EXHAUST, 0, 700_000_000),
        ]
    )
    found = samples(telemetry)
    assert found["hourhand_fires_total", ("succeed",)] == 2
    assert found["hourhand_fires_total", ("skip",)] == 1
    assert found["hourhand_fires_total", ("exhaust",)] == 1
    assert found["hourhand_attempt_seconds_bucket", ("0.001",)] == 1
    assert found["hourhand_attempt_seconds_bucket", ("2.5",)] == 2
    assert found["hourhand_attempt_seconds_bucket", ("300.0",)] == 2
    assert found["hourhand_attempt_seconds_bucket", ("+Inf",)] == 3
    assert found["hourhand_attempt_seconds_sum", ()] == pytest.approx(702.001)
    assert found["hourhand_settle_batch_runs_count", ()] == 1


def test_the_rest_of_the_engine_is_counted() -> None:
    telemetry = Telemetry()
    for lag_us in (1_000, 60_000, 0):
        telemetry.run_started(lag_us)
    telemetry.planned(7)
    telemetry.claimed(1_000)
    telemetry.planner_stepped(2_000)
    telemetry.store_failed()
    telemetry.backlog(Backlog(jobs=5, planned=4, running=3, blocked=2, dead=1, oldest_due_at=None))
    found = samples(telemetry)
    assert found["hourhand_fire_lag_seconds_bucket", ("0.05",)] == 2
    assert found["hourhand_fire_lag_seconds_count", ()] == 3
    assert found["hourhand_planned_runs_total", ()] == 7
    assert found["hourhand_claim_batch_runs_bucket", ("1000.0",)] == 1
    assert found["hourhand_planner_step_seconds_count", ()] == 1
    assert found["hourhand_store_errors_total", ()] == 1
    sizes = [found[f"hourhand_{name}", ()] for name in ("jobs", "planned", "running", "blocked", "dead")]
    assert sizes == [5, 4, 3, 2, 1]


def test_two_in_one_process_do_not_meet() -> None:
    first, second = Telemetry(), Telemetry()
    first.planned(3)
    assert samples(second)["hourhand_planned_runs_total", ()] == 0


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch):
    """Lines as JSON, with the root logger put back afterwards."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    level = root.level
    stream = io.StringIO()
    configure_logging("info", stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.setLevel(level)


def test_lines_off_a_terminal_are_json_from_their_level_on(log) -> None:
    logger("planner", node="N-1").info("planned", runs=3)
    logger("planner").debug("unheard")
    logging.getLogger("uvicorn").warning("a library's %s", "line")
    first, second = log()
    assert (first["logger"], first["event"], first["runs"], first["node"]) == ("planner", "planned", 3, "N-1")
    assert (second["logger"], second["event"], second["level"]) == ("uvicorn", "a library's line", "warning")


def test_payloads_and_secrets_are_struck_out(log) -> None:
    log_line = logger("worker")
    log_line.info("called https://ann:canary@example.com/x", payload={"a": "canary"}, Authorization="canary")
    try:
        raise ValueError(
            "postgresql://ann:canary@db with whsec_canary by eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.canary"
        )
    except ValueError:
        log_line.exception("failed")
    text = json.dumps(log())
    assert "canary" not in text
    assert "https://ann:***@example.com/x" in text
