"""kill -9 in the middle of a graph: every level goes on, in order, once, and nothing is left waiting."""

import random
import threading

from tests.chaos.api import now
from tests.chaos.calls import SECOND_US
from tests.chaos.process import SinkProcess, Up, wait_for

KILLS = 4
QUIET_US = 3 * SECOND_US
FINAL = {"SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED"}


def history(up: Up, job: str) -> dict[str, dict[str, object]]:
    """A job's runs by nominal time."""
    answer = up.api.expect(200, "GET", f"/jobs/{job}/history?limit=1000")
    assert answer["next_cursor"] is None
    return {run["scheduled_at"]: run for run in answer["data"]}


def test_a_graph_goes_on_through_kills(up: Up, sink: SinkProcess) -> None:
    rng = random.Random(5)
    up.start()
    every = {"every": "1s", "phase": "2026-01-01T00:00:00Z", "overlap": "queue"}
    a = up.api.create(name="a", callback_url=sink.url("ok"), **every)
    b = up.api.create(name="b", callback_url=sink.url("slow/100"), **every)
    c = up.api.create(name="c", callback_url=sink.url("ok"), after=[a, b], overlap="queue")
    d = up.api.create(name="d", callback_url=sink.url("ok"), after=[c], overlap="queue")
    parents = {c: (a, b), d: (c,)}
    for _ in range(KILLS):
        threading.Event().wait(rng.uniform(1.5, 3))
        up.kill()
        up.start()
    wait_for("the last level", lambda: len({call.key for call in sink.log.of(d)}) > KILLS, within_s=60)
    cuts = [up.api.expect(200, "POST", f"/jobs/{root}/pause", {})["effective_from"] for root in (a, b)]
    quiet_at = now() + QUIET_US
    wait_for("quiet", lambda: now() > quiet_at, within_s=30)

    def at_rest() -> bool:
        return all(run["status"] in FINAL for job in (a, b, c, d) for run in history(up, job).values())

    wait_for("an end of every run", at_rest, within_s=60)
    runs = {job: history(up, job) for job in (a, b, c, d)}
    for child, above in parents.items():
        first = {call.nominal_at: call.at for call in reversed(sink.log.of(child))}
        for parent in above:
            ended = {call.nominal_at: call.at for call in sink.log.of(parent) if call.applied}
            assert all(at >= ended[nominal] for nominal, at in first.items()), "a child was called too early"
            missing = {
                at
                for at, run in runs[parent].items()
                if run["trigger"] != "manual" and at not in runs[child] and at <= min(cuts)
            }
            early = set(sorted(runs[parent])[:4])  # from before the child followed it
            assert missing <= early, "a time was lost on the way down"
    applied = [call.key for call in sink.log.calls() if call.applied]
    assert len(applied) == len(set(applied))
    assert up.stop() == 0
