"""A disk that fills up: clear errors and no lost promise while it is full, and on by itself when there is room."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos import tables
from tests.chaos.api import Answer, now
from tests.chaos.calls import SECOND_US
from tests.chaos.process import SinkProcess, Up, wait_for

FAR = "2099-01-01T00:00:00Z"
_MOUNT_KIB = 8 * 1024


class FullDisk:
    """A way to take a running command's room away, and to give it back."""

    def __init__(self, up: Up, take: Callable[[], None], give: Callable[[], None]) -> None:
        self.up = up
        self.take = take
        self.give = give


@pytest.fixture
def limited(up: Up) -> FullDisk:
    """The system lets no file grow: what SQLite is told when a quota is used up."""
    return FullDisk(up, take=lambda: up.limit_files(4096), give=lambda: up.limit_files(1 << 40))


@pytest.fixture
def mounted(make_up: Callable[..., Up], tmp_path: Path) -> Iterator[FullDisk]:
    """A small file system of its own, filled to the last byte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_MOUNT_KIB}k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system; the limited disk is tested all the same")
    up = make_up(folder)
    up.log = tmp_path / "up.log"
    ballast = folder / "ballast"

    def take() -> None:
        with ballast.open("wb", buffering=0) as file:
            size = 1 << 16
            while size:
                try:
                    file.write(b"x" * size)
                except OSError:
                    size //= 2

    yield FullDisk(up, take, ballast.unlink)
    up.kill()
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(params=["limited", "mounted"])
def disk(request: pytest.FixtureRequest) -> FullDisk:
    return request.getfixturevalue(request.param)


def test_a_full_disk_is_told_survived_and_left_behind(disk: FullDisk, sink: SinkProcess) -> None:
    up = disk.up.start()
    steady = up.api.create(every="1s", callback_url=sink.url("ok"), concurrency="unlimited")
    slow = up.api.create(at=FAR, callback_url=sink.url("slow/2000"))
    wait_for("steady calls", lambda: sink.log.of(steady))
    slow_run = up.api.expect(202, "POST", f"/jobs/{slow}/run")["run_id"]
    wait_for("the slow call", lambda: sink.log.of(slow))
    disk.take()
    full_at = now()

    acknowledged = fill_up(up, sink)
    refusal = up.api.call("POST", "/jobs", {"every": "1s", "callback_url": sink.url("ok")})
    assert refusal.status in (503, 507), refusal.body
    assert refusal.headers["content-type"] == "application/problem+json"
    assert refusal.body["code"] in ("storage_full", "unavailable")
    assert refusal.body["retryable"] is True
    assert up.api.call("GET", f"/jobs/{steady}/history").status == 200  # reading goes on
    assert up.api.call("GET", "//healthz").status == 200
    wait_for("not ready", lambda: up.api.call("GET", "//readyz").status == 503)
    assert up.ended() is None

    disk.give()
    wait_for("ready again", up.is_ready)
    healed_at = now()
    wait_for("the slow run's end", lambda: status(up, slow_run) == "SUCCEEDED")
    assert len(sink.log.of(slow)) == 1  # what it did while the disk was full was not done again
    wait_for("steady calls", lambda: sink.log.of(steady)[-1].nominal_at > healed_at + 2 * SECOND_US)
    job = up.api.create(every="1s", callback_url=sink.url("ok"))
    wait_for("a new job's calls", lambda: sink.log.of(job))
    for job in acknowledged:
        up.api.expect(200, "GET", f"/jobs/{job}")
    nominals = {call.nominal_at for call in sink.log.of(steady)}
    assert nominals == set(range(min(nominals), max(nominals) + 1, SECOND_US)), f"full at {full_at}"
    calls = sink.log.calls()
    assert min(call.at - call.nominal_at for call in calls) >= 0
    assert up.stop() == 0
    assert not tables.problems(up.data, {call.key for call in calls})


def fill_up(up: Up, sink: SinkProcess) -> list[str]:
    """Create jobs until one is refused; those before it were acknowledged and must stay."""
    kept: list[str] = []
    document = {"at": FAR, "callback_url": sink.url("ok"), "payload": "x" * 100_000}

    def refused() -> Answer | None:
        answer = up.api.call("POST", "/jobs", document)
        if answer.status == 201:
            kept.append(answer.body["job_id"])
            return None
        return answer

    wait_for("a refusal", refused)
    return kept


def status(up: Up, run_id: str) -> str:
    return str(up.api.expect(200, "GET", f"/runs/{run_id}")["status"])


def test_a_start_on_a_full_disk_is_refused_in_words(mounted: FullDisk) -> None:
    mounted.take()
    mounted.up.spawn()
    assert mounted.up.wait() == 1
    assert "No space left" in mounted.up.output() or "full" in mounted.up.output()
    assert "Traceback" not in mounted.up.output()
    mounted.give()
    mounted.up.start()
    assert mounted.up.stop() == 0
