"""Logs: chunks are kept in order, once each, read from any place, and go with history."""

import pytest

from hourhand.core.identity import RunKey
from hourhand.core.instant import DAY_US, SECOND_US
from hourhand.core.log import LogChunk, LogPlace, Stream
from tests.contract.harness import START_AT
from tests.contract.scene import Scene

KEY = RunKey(7_000_000_001, START_AT)
START = LogPlace()


def chunk(
    seq: int, text: str = "", *, attempt: int = 1, key: RunKey = KEY, at: int | None = None
) -> LogChunk:
    return LogChunk(
        job_id=key.job_id,
        scheduled_at=key.scheduled_at,
        attempt=attempt,
        seq=seq,
        at=START_AT + seq if at is None else at,
        stream=Stream.OUTPUT,
        text=text or f"{attempt}.{seq}\n",
    )


async def texts(
    scene: Scene,
    after: LogPlace = START,
    last_attempt: int | None = None,
    limit: int = 100,
    key: RunKey = KEY,
) -> list[str]:
    return [one.text for one in await scene.store.read_log(key, after, last_attempt, limit)]


async def test_what_was_written_is_read_in_order_whatever_the_order_of_arrival(scene: Scene) -> None:
    await scene.store.append_log([chunk(2), chunk(1, attempt=2), chunk(1)])
    await scene.store.append_log([chunk(2, attempt=2), chunk(3)])
    assert await texts(scene) == ["1.1\n", "1.2\n", "1.3\n", "2.1\n", "2.2\n"]


async def test_a_chunk_comes_back_as_it_was(scene: Scene) -> None:
    odd = chunk(1, "no line end, \x1b[31mred\x1b[0m, \r, ü, 🕐, \ufffd")
    system = LogChunk(
        job_id=KEY.job_id,
        scheduled_at=KEY.scheduled_at,
        attempt=1,
        seq=2,
        at=5,
        stream=Stream.SYSTEM,
        text="…",
    )
    await scene.store.append_log([odd, system])
    assert await scene.store.read_log(KEY, START, None, 10) == [odd, system]


async def test_a_repeat_changes_nothing(scene: Scene) -> None:
    await scene.store.append_log([chunk(1, "first")])
    await scene.store.append_log([chunk(1, "second"), chunk(2, "more")])
    assert await texts(scene) == ["first", "more"]


async def test_nothing_is_nothing(scene: Scene) -> None:
    await scene.store.append_log([])
    assert await texts(scene) == []


async def test_reading_goes_on_behind_a_place(scene: Scene) -> None:
    await scene.store.append_log([chunk(seq, attempt=attempt) for attempt in (1, 3) for seq in range(1, 4)])
    assert await texts(scene, limit=2) == ["1.1\n", "1.2\n"]
    assert await texts(scene, LogPlace(1, 2), limit=2) == ["1.3\n", "3.1\n"]
    assert await texts(scene, LogPlace(3, 1)) == ["3.2\n", "3.3\n"]
    assert await texts(scene, LogPlace(3, 3)) == []
    assert await texts(scene, LogPlace(1 << 60, 1 << 60)) == []


async def test_one_attempt_alone_can_be_read(scene: Scene) -> None:
    await scene.store.append_log([chunk(1, attempt=attempt) for attempt in (1, 2, 3)])
    assert await texts(scene, LogPlace(1, 1 << 40), 2) == ["2.1\n"]


async def test_runs_do_not_see_each_other(scene: Scene) -> None:
    later = RunKey(KEY.job_id, KEY.scheduled_at + SECOND_US)
    other = RunKey(KEY.job_id + 1, KEY.scheduled_at)
    await scene.store.append_log(
        [chunk(1, "mine"), chunk(1, "later", key=later), chunk(1, "other", key=other)]
    )
    assert [await texts(scene, key=key) for key in (KEY, later, other)] == [["mine"], ["later"], ["other"]]


async def test_a_run_far_from_its_time_has_its_log_too(scene: Scene) -> None:
    """A backfill, or an attempt that goes on past midnight of the next day."""
    old = RunKey(KEY.job_id, START_AT - 400 * DAY_US)
    await scene.store.append_log(
        [chunk(1, "old", key=old), chunk(1, "near"), chunk(2, "far", at=START_AT + DAY_US)]
    )
    assert await texts(scene, key=old) == ["old"]
    assert await texts(scene) == ["near", "far"]
    assert await texts(scene, limit=1) == ["near"]


async def test_many_chunks_at_once(scene: Scene) -> None:
    await scene.store.append_log([chunk(seq, "x" * 16_000) for seq in range(1, 301)])
    assert len(await texts(scene, limit=1_000)) == 300


async def test_old_logs_go_a_bounded_number_at_a_time(scene: Scene) -> None:
    old = RunKey(KEY.job_id, START_AT - 400 * DAY_US)
    await scene.store.append_log([chunk(seq, key=old, at=START_AT - 40 * DAY_US) for seq in range(1, 8)])
    await scene.store.append_log([chunk(1)])
    bound = START_AT - 30 * DAY_US
    assert await scene.store.purge(bound, 0, 30) is True
    assert len(await texts(scene, key=old)) == 4
    while await scene.store.purge(bound, 0, 30):
        pass
    assert await texts(scene, key=old) == []
    assert await texts(scene) == ["1.1\n"]


async def test_whole_days_of_logs_are_dropped(scene: Scene) -> None:
    if not scene.harness.whole_days:
        pytest.skip("logs go from the front here")
    await scene.store.append_log([chunk(1)])
    await scene.store.purge(START_AT + 3 * DAY_US, 0, 100)
    assert await texts(scene) == []


async def test_a_restart_keeps_them(scene: Scene) -> None:
    await scene.store.append_log([chunk(1)])
    await scene.harness.reopen()
    assert await texts(scene) == ["1.1\n"]
