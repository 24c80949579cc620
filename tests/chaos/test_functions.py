"""Functions that never return, or take the process with them: their runs end as failures, their neighbours go on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.process import Up, wait_for

FAR = "2099-01-01T00:00:00Z"
MODULE = "tests.chaos.functions"


@pytest.fixture
def serving(make_up: Callable[..., Up]) -> Up:
    """A command that serves the functions of this folder."""
    return make_up(arguments=["--import", MODULE])


def create(up: Up, function: str, **more: object) -> str:
    schedule = {} if "every" in more else {"at": FAR}
    return up.api.create(target={"type": "python", "function": f"{MODULE}:{function}"}, **schedule, **more)


def run_now(up: Up, job: str) -> str:
    return str(up.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"])


def ended(up: Up, run_id: str, status: str, within_s: float = 20) -> dict[str, object]:
    def look() -> dict[str, object] | None:
        run: dict[str, object] = up.api.expect(200, "GET", f"/runs/{run_id}")
        return run if run["status"] == status else None

    return wait_for(f"{run_id} {status}", look, within_s)


def test_functions_that_never_return_end_in_time_and_hold_up_nobody(serving: Up) -> None:
    up = serving.start()
    neighbour = create(up, "well")
    stuck = ("never_returns", "spins", "swallows_cancellation")
    jobs = {name: create(up, name, timeout="1s", retry={"max": 0}) for name in stuck}
    runs = {name: run_now(up, job) for name, job in jobs.items()}
    for name, run_id in runs.items():
        run = ended(up, run_id, "FAILED")
        assert "1 s" in str(run["error"]), f"{name}: {run['error']}"
    ended(up, run_now(up, neighbour), "SUCCEEDED")
    again = ended(up, run_now(up, jobs["never_returns"]), "FAILED")  # its slot is free
    assert again["attempts"]
    ended(up, run_now(up, neighbour), "SUCCEEDED")
    assert up.stop() == 0  # and the process can still end, in time


def test_a_function_that_never_returns_can_be_cancelled(serving: Up) -> None:
    up = serving.start()
    job = create(up, "never_returns")
    run_id = run_now(up, job)
    ended(up, run_id, "RUNNING")
    up.api.expect(202, "POST", f"/runs/{run_id}/cancel")
    ended(up, run_id, "CANCELLED")
    assert up.stop() == 0


def test_a_poison_run_ends_in_dead_letters_and_its_neighbours_go_on(serving: Up, tmp_path: Path) -> None:
    up = serving.start()
    deaths = tmp_path / "deaths"
    deaths.touch()
    poison = create(up, "poison", payload={"path": str(deaths)}, retry={"max": 3})
    neighbours = [create(up, "well", every="1s", concurrency="unlimited") for _ in range(5)]
    run_id = run_now(up, poison)
    lives = 0
    while not _is_dead(up, run_id):
        assert up.process is not None
        assert up.wait() == 66
        lives += 1
        assert lives <= 4, "it outlived its tries"
        up.spawn()
    assert lives == 4
    assert len(deaths.read_text().splitlines()) == 4
    run = up.api.expect(200, "GET", f"/runs/{run_id}")
    assert run["error"] == "its worker was lost"
    for job in neighbours:
        before = len([row for row in up.api.history(job) if row["status"] == "SUCCEEDED"])

        def goes_on(job: str = job, before: int = before) -> bool:
            done = [row for row in up.api.history(job) if row["status"] == "SUCCEEDED"]
            return len(done) > before + 1

        wait_for("the neighbour goes on", goes_on)
        harmed = [row for row in up.api.history(job) if row["status"] in ("FAILED", "SKIPPED", "CANCELLED")]
        assert harmed == []
    assert up.stop() == 0


def _is_dead(up: Up, run_id: str) -> bool:
    """Whether the run has ended as a dead letter; False as soon as the process dies of it instead."""

    def look() -> str | None:
        if up.ended() is not None:
            return "died"
        try:
            answer = up.api.call("GET", f"/runs/{run_id}")
        except Exception:  # it may die under the question
            return None
        return "dead" if answer.body["status"] == "FAILED" else None

    return wait_for("an end of the run or of the process", look, 20) == "dead"
