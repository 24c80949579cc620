"""Commands through the whole of it: a killed process takes them with it, the next life goes on, logs cross processes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.api import Api
from tests.chaos.cluster import Cluster
from tests.chaos.process import Up, wait_for
from tests.servers.machine import is_running
from tests.servers.postgres import require_postgres

FAR = "2099-01-01T00:00:00Z"
# Says its attempt and its processes, then goes on for ever; nobody may ask it to end.
STUBBORN = "trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & echo $HOURHAND_ATTEMPT $$ $!; sleep 1000; sleep 1000"


def begin(api: Api, text: str, **fields: object) -> str:
    """A run of a script, asked for now; its id."""
    job = api.create(target={"type": "shell", "argv": ["sh", "-c", text]}, at=FAR, **fields)
    return str(api.expect(202, "POST", f"/jobs/{job}/run")["run_id"])


def log(api: Api, run_id: str, query: str = "") -> str:
    return "".join(chunk["text"] for chunk in api.expect(200, "GET", f"/runs/{run_id}/log{query}")["data"])


def told(api: Api, run_id: str, attempt: int) -> list[int]:
    """The processes that an attempt told of, once it has."""
    line = wait_for(f"attempt {attempt}", lambda: log(api, run_id, f"?attempt={attempt}"))
    number, *pids = map(int, line.split())
    assert number == attempt
    return pids


def ended(*pids: int) -> None:
    wait_for("the end of its processes", lambda: not any(map(is_running, pids)))


def status(api: Api, run_id: str) -> str:
    return str(api.expect(200, "GET", f"/runs/{run_id}")["status"])


@pytest.fixture
def up(make_up: Callable[..., Up]) -> Up:
    made = make_up()
    made.arguments.append("--allow-shell")
    return made


def test_a_killed_process_takes_its_commands_with_it_and_the_next_life_goes_on(up: Up) -> None:
    up.start()
    run_id = begin(up.api, STUBBORN)
    first = told(up.api, run_id, 1)
    up.kill()
    ended(*first)
    up.start()
    second = told(up.api, run_id, 2)
    assert log(up.api, run_id, "?attempt=1").split() == ["1", *map(str, first)]
    up.api.expect(202, "POST", f"/runs/{run_id}/cancel")
    wait_for("its end", lambda: status(up.api, run_id) == "CANCELLED", 15)
    ended(*second)


def test_a_deadline_ends_the_whole_group(up: Up) -> None:
    up.start()
    run_id = begin(up.api, STUBBORN, timeout="1s", retry={"max": 0})
    pids = told(up.api, run_id, 1)
    wait_for("its end", lambda: status(up.api, run_id) == "FAILED", 15)
    assert not any(map(is_running, pids))  # the outcome is told when they are gone
    assert "timeout" in up.api.expect(200, "GET", f"/runs/{run_id}")["error"]


def test_a_stop_waits_for_no_command_that_does_not_end(up: Up) -> None:
    up.environment["HOURHAND_WORKER_DRAIN"] = "0s"
    up.start()
    run_id = begin(up.api, STUBBORN)
    pids = told(up.api, run_id, 1)
    assert up.process is not None
    up.process.terminate()
    assert up.process.wait(20) == 0
    up.kill()  # nothing but to say that this life is over
    ended(*pids)
    up.start()
    assert wait_for("the next attempt", lambda: log(up.api, run_id, "?attempt=2"))
    first = up.api.expect(200, "GET", f"/runs/{run_id}")["attempts"][0]
    assert first["error"] == "its worker was stopped before it ended"


def test_in_a_cluster_an_api_reads_what_a_worker_heard(tmp_path: Path) -> None:
    require_postgres()
    with Cluster(
        tmp_path, apis=1, schedulers=1, workers=1, durable=False, worker_arguments=["--allow-shell"]
    ) as cluster:
        os.mkfifo(tmp_path / "go")
        run_id = begin(cluster.api, f"echo ready; cat {tmp_path}/go")
        assert wait_for("its first words", lambda: log(cluster.api, run_id)) == "ready\n"
        (tmp_path / "go").write_text("went\n")
        wait_for("its end", lambda: status(cluster.api, run_id) == "SUCCEEDED")
        assert log(cluster.api, run_id) == "ready\nwent\n"
        assert log(cluster.api, run_id, "?after=1-1") == "went\n"
