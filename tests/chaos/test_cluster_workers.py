"""Workers of a cluster that drain, lose a process of several, or die with runs in hand."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.cluster import Cluster, Part
from tests.chaos.process import SinkProcess, wait_for
from tests.servers.machine import children_of, is_running
from tests.servers.postgres import require_postgres

FAR = "2099-01-01T00:00:00Z"
MODULE = "tests.chaos.functions"
LEASE_US = 30 * SECOND_US
SWEEP_US = 2 * SECOND_US
SLACK_US = 5 * SECOND_US  # to be seen, claimed and called, on a busy machine


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require_postgres()
    folder = tmp_path_factory.mktemp("workers")
    with Cluster(
        folder, apis=1, schedulers=1, workers=2, durable=False, worker_arguments=["--import", MODULE]
    ) as cluster:
        yield cluster


def function(cluster: Cluster, name: str, **arguments: object) -> str:
    """A run of a function, asked for now; its id."""
    target = {"type": "python", "function": f"{MODULE}:{name}"}
    job = cluster.api.create(target=target, payload=arguments, at=FAR)
    return str(cluster.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"])


def run(cluster: Cluster, run_id: str) -> dict[str, object]:
    found: dict[str, object] = cluster.api.expect(200, "GET", f"/runs/{run_id}")
    return found


def holder(cluster: Cluster) -> Part | None:
    """Whose process executes something now."""
    rows = cluster.read("SELECT n.name FROM running AS r JOIN nodes AS n ON n.id = r.node_id WHERE phase = 1")
    for (name,) in rows:
        for part in cluster.of("worker"):
            if part.process is not None and name.endswith(f"-{part.process.pid}"):
                return part
    return None


def test_a_worker_that_is_told_to_end_finishes_what_it_runs(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    run_id = function(cluster, "takes_a_while", path=str(path), seconds=4)
    wait_for("its beginning", path.exists)
    part = wait_for("who has it", lambda: holder(cluster))
    part.send(signal.SIGTERM)
    meanwhile = function(cluster, "well")
    wait_for("another run, elsewhere", lambda: run(cluster, meanwhile)["status"] == "SUCCEEDED")
    assert part.wait() == 0
    assert path.read_text() == "began 1\nended 1\n"
    assert run(cluster, run_id)["status"] == "SUCCEEDED"
    part.start()


def test_the_runs_of_a_dead_worker_go_on_once_it_is_declared_gone(
    cluster: Cluster, shared_sink: SinkProcess
) -> None:
    """The quick form: the lease is ended by hand, as its time would."""
    key, part = hanging(cluster, shared_sink)
    node_id, _ = cluster.node(part)
    part.kill()
    ended_at = now()
    cluster.servers[0].execute(f"UPDATE nodes SET lease_until = 0 WHERE id = {node_id}", database="hourhand")
    assert_goes_on(cluster, shared_sink, key, ended_at + SWEEP_US + SLACK_US)
    part.start()


@pytest.mark.chaos
def test_the_runs_of_a_dead_worker_go_on_within_its_lease_and_a_sweep(
    cluster: Cluster, shared_sink: SinkProcess
) -> None:
    key, part = hanging(cluster, shared_sink)
    part.kill()
    assert_goes_on(cluster, shared_sink, key, now() + LEASE_US + SWEEP_US + SLACK_US)
    part.start()


def hanging(cluster: Cluster, sink: SinkProcess) -> tuple[str, Part]:
    """A run whose first call never ends, and who makes it."""
    job = cluster.api.create(at=FAR, callback_url=sink.url("once/hang"))
    key = str(cluster.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"])
    wait_for("its call", lambda: sink.log.of(job))
    return key, wait_for("who has it", lambda: holder(cluster))


def assert_goes_on(cluster: Cluster, sink: SinkProcess, key: str, by_at: int) -> None:
    began_at = now()
    wait_for("its end", lambda: run(cluster, key)["status"] == "SUCCEEDED", within_s=60)
    calls = [call for call in sink.log.calls() if call.key == key]
    print(f"called again {(calls[-1].at - began_at) / 1e6:.1f} s after the loss")
    assert [(call.attempt, call.applied) for call in calls] == [(1, True), (2, False)]
    assert calls[-1].at < by_at


def test_a_process_of_several_is_started_again_and_all_end_with_their_parent(cluster: Cluster) -> None:
    parent = cluster.add("worker", 9)
    try:
        parent.arguments += ["--processes", "2", "--pool", "several"]
        parent.start()
        children = wait_for("two children", lambda: pair(parent))
        wait_for("two nodes", lambda: pool_nodes(cluster, children) == 2)
        os.kill(children[0], signal.SIGKILL)
        fresh = wait_for("another child", lambda: (two := pair(parent)) and children[0] not in two and two)
        assert children[1] in fresh
        wait_for("its node", lambda: pool_nodes(cluster, fresh) == 2)
        target = {"type": "python", "function": f"{MODULE}:well"}
        job = cluster.api.create(target=target, at=FAR, pool="several")
        run_id = cluster.api.expect(202, "POST", f"/jobs/{job}/run")["run_id"]
        wait_for("a run in its pool", lambda: run(cluster, run_id)["status"] == "SUCCEEDED")
        parent.kill()
        wait_for("the children's end", lambda: not any(map(is_running, fresh)))
        wait_for("their leases' end", lambda: pool_nodes(cluster, fresh) == 0)  # they drained: given back
    finally:
        parent.close()
        cluster.parts.remove(parent)


def pair(parent: Part) -> list[int] | None:
    assert parent.process is not None
    children = [pid for pid in children_of(parent.process.pid) if is_running(pid)]
    return children if len(children) == 2 else None


def pool_nodes(cluster: Cluster, pids: list[int]) -> int:
    """How many of these processes are nodes with a live lease."""
    names = " OR ".join(f"name LIKE '%-{pid}'" for pid in pids)
    query = (
        f"SELECT 1 FROM nodes WHERE ({names}) AND lease_until > extract(epoch FROM clock_timestamp()) * 1e6"
    )
    return len(cluster.read(query))
