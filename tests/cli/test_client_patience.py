"""What the clients try again, for how long, and how they wait for a run; both alike."""

import socket
from typing import Any

import pytest

from hourhand.client import Client, Unreachable
from hourhand.client.exchange import IN_FLIGHT_S, LONGEST_PAUSE_S, Patience
from hourhand.client.flow import Answer
from hourhand.client.problems import retry_after_s
from hourhand.clock import monotonic_us
from hourhand.core.instant import SECOND_US
from hourhand.core.repeating import LEASE_US
from hourhand.errors import (
    Conflict,
    InFlight,
    NotFound,
    Overloaded,
    Unavailable,
)
from tests.cli.recorder import (
    BUSY,
    FOR_LONG,
    HANG_UP,
    IN_FLIGHT,
    LIMITED,
    OK,
    SHORT_S,
    Recorder,
    Reply,
    ask,
    problem,
    recorder,
    short_pauses,
)

__all__ = ["ask", "recorder", "short_pauses"]


@pytest.mark.parametrize(
    ("call", "arguments", "replies", "requests"),
    [
        ("jobs.get", ["J-1"], [BUSY, HANG_UP, OK], 3),
        ("jobs.replace", ["J-1", {}], [HANG_UP, OK], 2),
        ("jobs.run", ["J-1"], [HANG_UP, BUSY, OK], 3),
        ("jobs.pause", ["J-1"], [BUSY, OK], 2),
        ("jobs.create", [{}], [LIMITED, OK], 2),
        ("jobs.create", [{}], [HANG_UP, IN_FLIGHT, OK], 3),
        ("jobs.update", ["J-1", {}], [BUSY, HANG_UP, OK], 3),
        ("jobs.delete", ["J-1"], [LIMITED, OK], 2),
    ],
)
async def test_what_may_be_repeated_is_tried_again(
    ask, recorder: Recorder, call: str, arguments: list[Any], replies: list[Reply], requests: int
) -> None:
    recorder.replies = list(replies)
    assert await ask(call, *arguments) == {"job_id": "J-1"}
    assert len(recorder.requests) == requests


@pytest.mark.parametrize(
    ("call", "arguments", "reply", "error"),
    [
        ("jobs.delete", ["J-1"], HANG_UP, Unreachable),
        ("jobs.create", [{}], problem(409, "conflict"), Conflict),
        ("jobs.get", ["J-1"], problem(404, "not_found"), NotFound),
    ],
)
async def test_what_may_have_happened_is_not_repeated(
    ask, recorder: Recorder, call: str, arguments: list[Any], reply: Reply, error: type[Exception]
) -> None:
    recorder.replies = [reply, OK]
    with pytest.raises(error):
        await ask(call, *arguments)
    assert len(recorder.requests) == 1


async def test_a_change_that_is_meant_for_a_version_is_not_sent_twice(ask, recorder: Recorder) -> None:
    """The second would meet the first, and say that somebody else was faster."""
    recorder.replies = [HANG_UP, problem(412, "outdated")]
    with pytest.raises(Unreachable, match="may have been carried out"):
        await ask("jobs.replace", "J-1", {}, version=1)
    assert len(recorder.requests) == 1
    recorder.replies = [LIMITED, OK]
    assert await ask("jobs.replace", "J-1", {}, version=1) == {"job_id": "J-1"}, "that one changed nothing"


async def test_patience_ends(ask, recorder: Recorder) -> None:
    recorder.replies = [LIMITED]
    with pytest.raises(Overloaded):
        await ask("jobs.get", "J-1")
    assert len(recorder.requests) == 3


async def test_a_request_whose_server_died_is_waited_for_until_a_repeat_takes_over(
    ask, recorder: Recorder
) -> None:
    recorder.replies = [HANG_UP, *[IN_FLIGHT] * 20, BUSY, OK]
    assert await ask("jobs.run", "J-1") == {"job_id": "J-1"}
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in recorder.requests}) == 1


async def test_waiting_for_a_request_in_flight_ends(
    ask, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LEASE_US / SECOND_US < IN_FLIGHT_S < 2 * LEASE_US / SECOND_US
    monkeypatch.setattr("hourhand.client.exchange.IN_FLIGHT_S", 0.01)
    recorder.replies = [IN_FLIGHT]
    with pytest.raises(InFlight):
        await ask("jobs.run", "J-1")
    assert 5 < len(recorder.requests) < 15
    with Client(recorder.url, retries=0) as client, pytest.raises(InFlight):
        client.jobs.run("J-1")


async def test_who_is_asked_to_wait_for_long_is_told_at_once(ask, recorder: Recorder) -> None:
    recorder.replies = [FOR_LONG, OK]
    with pytest.raises(Overloaded) as caught:
        await ask("jobs.get", "J-1")
    assert len(recorder.requests) == 1
    assert caught.value.retry_after_s == 3600


@pytest.mark.parametrize(
    ("status", "headers", "expected_s"),
    [(429, {"Retry-After": "3600"}, 3600), (503, {"Retry-After": "120"}, 120), (429, {}, 1), (503, {}, None)],
)
@pytest.mark.parametrize("body", [b"slow down", {"title": "t", "detail": "slow down"}])
async def test_how_long_a_proxy_asks_to_wait_is_told_too(
    ask, recorder: Recorder, status: int, headers: dict[str, str], expected_s: int | None, body: Any
) -> None:
    recorder.replies = [(status, body, headers)]
    with pytest.raises((Overloaded, Unavailable)) as caught:
        await ask("jobs.get", "J-1")
    assert getattr(caught.value, "retry_after_s", None) == expected_s


@pytest.mark.parametrize(
    ("headers", "asked_s"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "Mon, 16 Nov 2026 08:00:30 GMT", "date": "Mon, 16 Nov 2026 08:00:10 GMT"}, 20),
        ({"retry-after": "Mon, 16 Nov 2026 08:00:00 GMT", "date": "Mon, 16 Nov 2026 08:00:10 GMT"}, 0),
        ({"retry-after": "Mon, 16 Nov 2026 08:00:30 GMT"}, None),
        ({"retry-after": "soon", "date": "Mon, 16 Nov 2026 08:00:10 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_asked_in_seconds_or_by_a_date(
    headers: dict[str, str], asked_s: float | None
) -> None:
    assert retry_after_s(Answer(status=429, headers=headers, body=b"")) == asked_s


async def test_the_pause_is_as_long_as_asked(
    ask, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hourhand.client.exchange.LONGEST_PAUSE_S", 30.0)
    recorder.replies = [(*LIMITED[:2], {"Retry-After": "1"}), OK]
    began_us = monotonic_us()
    await ask("jobs.get", "J-1")
    assert monotonic_us() - began_us >= SECOND_US


async def test_waiting_ends_with_the_final_state(ask, recorder: Recorder) -> None:
    states = ["PENDING", "PENDING", "RUNNING", "RETRYING", "SUCCEEDED"]
    recorder.replies = [(200, {"run_id": "r", "status": state}, {}) for state in states]
    assert (await ask("runs.wait", "r"))["status"] == "SUCCEEDED"
    recorder.replies = [(200, {"run_id": "r", "status": state}, {}) for state in states]
    changes = [one["status"] for one in await ask("runs.watch", "r")]
    assert changes == ["PENDING", "RUNNING", "RETRYING", "SUCCEEDED"]


async def test_waiting_gives_up(ask, recorder: Recorder) -> None:
    recorder.replies = [(200, {"run_id": "r", "status": "RUNNING"}, {})]
    with pytest.raises(TimeoutError, match="still RUNNING"):
        await ask("runs.wait", "r", timeout_s=0.01)


@pytest.mark.parametrize("timeout_s", [30, None])
async def test_waiting_outlasts_a_server_that_is_away(
    ask, recorder: Recorder, timeout_s: float | None
) -> None:
    states = [(200, {"run_id": "r", "status": state}, {}) for state in ("RUNNING", "SUCCEEDED")]
    recorder.replies = [states[0], *[HANG_UP] * 4, BUSY, LIMITED, *[HANG_UP] * 4, states[1]]
    assert (await ask("runs.wait", "r", timeout_s=timeout_s))["status"] == "SUCCEEDED"
    assert len(recorder.requests) == 12


async def test_waiting_may_begin_while_the_server_is_away_where_it_has_time(ask, recorder: Recorder) -> None:
    recorder.replies = [*[HANG_UP] * 6, (200, {"run_id": "r", "status": "FAILED"}, {})]
    assert (await ask("runs.wait", "r", timeout_s=30))["status"] == "FAILED"
    recorder.replies = [*[HANG_UP] * 3, OK]
    with pytest.raises(Unreachable, match="did not answer"):
        await ask("runs.wait", "r")
    recorder.replies = [problem(404, "not_found"), OK]
    with pytest.raises(NotFound):
        await ask("runs.wait", "r", timeout_s=30)
    recorder.replies = [FOR_LONG, OK]
    with pytest.raises(Overloaded):
        await ask("runs.wait", "r", timeout_s=30)


async def test_waiting_for_nobody_ends_in_time_and_says_why(
    ask, recorder: Recorder, unused_tcp_port: int
) -> None:
    recorder.url = f"http://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(TimeoutError, match=r"nothing is known of it after 0.05 s: no hourhand answers"):
        await ask("runs.wait", "r", timeout_s=0.05)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        recorder.url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        began_us = monotonic_us()
        with pytest.raises(TimeoutError, match=r"nothing is known of it after 0.3 s: .* did not answer"):
            await ask("runs.wait", "r", timeout_s=SHORT_S)
    assert monotonic_us() - began_us < recorder.timeout_s * SECOND_US / 4


def test_pauses_grow_and_keep_to_what_is_asked() -> None:
    patience = Patience(salt=0x1234567890ABCDEF)
    pauses = [patience.pause_s(tries, None) for tries in range(1, 4)]
    assert pauses == sorted(pauses)
    assert patience.pause_s(1, 0.0015) == 0.0015
    assert patience.pause_s(40, None) <= LONGEST_PAUSE_S
    assert patience.pause_s(100_000, None) <= LONGEST_PAUSE_S
