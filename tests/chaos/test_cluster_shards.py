"""Two databases: while one is down the jobs of the other go on, and its own catch up when it is back."""

from pathlib import Path

from hourhand.core.identity import parse_job_id, shard_of
from tests.chaos.api import Api, now
from tests.chaos.calls import SECOND_US, instant
from tests.chaos.cluster import Cluster
from tests.chaos.process import SinkProcess, wait_for
from tests.servers.postgres import require_postgres

DOWN_US = 8 * SECOND_US
LATE_US = SECOND_US
PHASE = "2026-01-01T00:00:00Z"
PATIENT = {"policy": "catch_up", "limit": 100}
STRICT = {"policy": "skip", "grace": "1s"}


def test_one_of_two_databases_down(tmp_path: Path, sink: SinkProcess) -> None:
    require_postgres()
    with Cluster(tmp_path, databases=2, apis=1, schedulers=2, workers=2) as cluster:
        patient = on_each(cluster.api, sink, misfire=PATIENT)
        strict = on_each(cluster.api, sink, misfire=STRICT)
        jobs = {*patient, *strict}
        wait_for("calls of all", lambda: {call.job for call in sink.log.calls()} >= jobs)
        # Longer than a renewal and a heartbeat, so that all who hold something of it have noticed.
        down_at = now()
        cluster.servers[1].kill()
        wait_for("some seconds", lambda: now() > down_at + DOWN_US)
        page = cluster.api.expect(200, "GET", "/jobs?limit=100")
        assert page["partial"] == ["shard 1"]
        assert {job["job_id"] for job in page["data"]} == {patient[0], strict[0]}
        assert cluster.api.call("GET", f"/jobs/{patient[1]}").status == 503
        late_us = [call.at - call.nominal_at for call in sink.log.of(patient[0]) if call.nominal_at > down_at]
        assert len(late_us) >= DOWN_US // SECOND_US - 2
        assert max(late_us) < LATE_US
        cluster.servers[1].start()
        back_at = now()
        for job in (patient[1], strict[1]):
            wait_for("calls on time", lambda job=job: is_on_time(sink, job, back_at + 2 * SECOND_US))
        assert "partial" not in cluster.api.expect(200, "GET", "/jobs?limit=100")
        assert_whole(sink, patient[0])
        assert_whole(sink, strict[0])
        assert_whole(sink, patient[1])
        assert_skipped(cluster.api, sink, strict[1], down_at, back_at)


def on_each(api: Api, sink: SinkProcess, **fields: object) -> tuple[str, str]:
    """A job on each database."""
    found: dict[int, str] = {}
    while len(found) < 2:
        job = api.create(
            every="1s", phase=PHASE, callback_url=sink.url("ok"), concurrency="unlimited", **fields
        )
        shard = shard_of(parse_job_id(job))
        if shard in found:
            api.expect(200, "DELETE", f"/jobs/{job}")
        else:
            found[shard] = job
    return found[0], found[1]


def is_on_time(sink: SinkProcess, job: str, after_at: int) -> bool:
    last = sink.log.of(job)[-1]
    return last.nominal_at > after_at and last.at - last.nominal_at < LATE_US


def assert_whole(sink: SinkProcess, job: str) -> None:
    """No second without its one effect, whatever happened."""
    applied = sorted(call.nominal_at for call in sink.log.of(job) if call.applied)
    assert applied == list(range(applied[0], applied[-1] + 1, SECOND_US))


def assert_skipped(api: Api, sink: SinkProcess, job: str, down_at: int, back_at: int) -> None:
    """What was past its grace was not called, and history says why."""
    called = {call.nominal_at for call in sink.log.of(job)}
    missed = [
        at
        for at in range((down_at // SECOND_US + 5) * SECOND_US, back_at - 3 * SECOND_US, SECOND_US)
        if at not in called
    ]
    assert missed
    ends = {instant(row["scheduled_at"]): (row["status"], row["reason"]) for row in api.history(job)}
    assert {ends.get(at) for at in missed} == {("SKIPPED", "misfire")}
