"""The line per run, and what becomes of it when there are too many."""

import io
from datetime import UTC

import pytest

from hourhand.cli.feed import ASCII_MARKS, Feed, LineWriter, NextTry, feed_for
from hourhand.core.instant import SECOND_US
from hourhand.core.lifecycle import Event

AT = (14 * 3600 + 2 * 60 + 10) * SECOND_US


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def feed(lines: list[str]) -> Feed:
    return Feed(lines.append, zone=UTC, lines_per_second=3)


@pytest.mark.parametrize(
    ("event", "more", "line"),
    [
        (Event.SUCCEED, {"lag_us": 3_000, "took_us": 1_000}, "14:02:10 ✓ hello  3 ms late, took 1 ms"),
        (
            Event.SUCCEED,
            {"lag_us": 400, "took_us": 90_500_000},
            "14:02:10 ✓ hello  0 ms late, took 1 min 30 s",
        ),
        (
            Event.RETRY,
            {"error": "HTTP 500", "retry": NextTry(number=1, of=3, delay_us=2_000_000)},
            "14:02:10 ✗ hello  failed: HTTP 500; retry 1/3 in 2 s",
        ),
        (
            Event.EXHAUST,
            {"error": "HTTP 500", "run_id": "J-1@2026"},
            "14:02:10 ✗ hello  failed: HTTP 500; dead letter: hourhand dlq show J-1@2026",
        ),
        (Event.SKIP, {"reason": "overlap"}, "14:02:10 – hello  skipped: overlap"),
        (Event.CANCEL, {}, "14:02:10 – hello  cancelled"),
        (
            Event.RELEASE,
            {"error": "this worker runs no commands", "run_id": "J-1@2026"},
            "14:02:10 – hello  waits: this worker runs no commands; hourhand why J-1@2026",
        ),
    ],
)
def test_a_line_per_run(
    feed: Feed, lines: list[str], event: Event, more: dict[str, object], line: str
) -> None:
    feed.settled(AT, "hello", event, **more)  # type: ignore[arg-type]
    assert lines == [f"{line}\n"]


def test_what_is_only_on_the_way_has_no_line(feed: Feed, lines: list[str]) -> None:
    feed.settled(AT, "hello", Event.REPORT_LATER)
    feed.tick(AT + SECOND_US)
    assert lines == []


def test_names_and_errors_cannot_play_with_the_terminal(feed: Feed, lines: list[str]) -> None:
    feed.settled(AT, "a\x1b[2Jb", Event.EXHAUST, error="x\n" * 200)
    assert "\x1b" not in lines[0]
    assert lines[0].count("\n") == 1
    assert len(lines[0]) < 200


def test_too_many_become_one_line_a_second(feed: Feed, lines: list[str]) -> None:
    for number in range(1_000):
        event = Event.EXHAUST if number % 100 == 99 else Event.SUCCEED
        feed.settled(AT, "busy", event, lag_us=number * 1_000, error="e")
    assert len(lines) == 3
    feed.tick(AT)
    assert len(lines) == 3
    feed.tick(AT + SECOND_US)
    assert lines[3] == "14:02:10 … 997 more runs: 987 succeeded, 10 went to dead letters; worst 999 ms late\n"


def test_while_it_stays_busy_there_is_only_the_summary(feed: Feed, lines: list[str]) -> None:
    for second in range(3):
        for _ in range(10):
            feed.settled(AT + second * SECOND_US, "busy", Event.SUCCEED)
    feed.tick(AT + 3 * SECOND_US)
    assert [line.split()[1] for line in lines] == ["✓", "✓", "✓", "…", "…", "…"]
    assert "10 runs: 10 succeeded" in lines[-1]
    feed.settled(AT + 9 * SECOND_US, "calm", Event.SUCCEED)
    assert "calm" in lines[-1]


def test_the_banner_says_where_everything_is(feed: Feed, lines: list[str]) -> None:
    feed.banner(
        version="1.2",
        store="postgresql://ann:canary@db/x",
        parts=("api", "worker"),
        address="http://127.0.0.1:7070",
        jobs=1_234,
        demo=("hello", "flaky"),
    )
    text = "".join(lines)
    for words in ("hourhand 1.2", "api, worker", "http://127.0.0.1:7070", "1,234", "hello, flaky"):
        assert words in text
    assert "canary" not in text
    assert "\x1b" not in text
    assert "HOURHAND_TOKEN" not in text


def test_the_banner_says_that_a_token_is_needed(feed: Feed, lines: list[str]) -> None:
    where = {"version": "1.2", "store": "sqlite:///x.db", "parts": ("api",), "address": "http://127.0.0.1:1"}
    feed.banner(**where, jobs=0, demo=(), asks=True)
    told = "".join(lines).splitlines()
    assert told.index("  export HOURHAND_TOKEN=…  # auth is on: commands and the page ask for a token") < (
        told.index("  hourhand jobs list")
    )


def test_colour_is_only_where_it_is_asked_for(lines: list[str]) -> None:
    Feed(lines.append, zone=UTC, colour=True).settled(AT, "hello", Event.SUCCEED)
    assert "\x1b[32m✓\x1b[0m" in lines[0]


def test_an_old_terminal_gets_signs_it_knows() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    feed, writer = feed_for(stream, colour=False)
    feed.settled(AT, "hello", Event.SUCCEED)
    writer.close()
    stream.seek(0)
    assert f" {ASCII_MARKS.good} hello" in stream.read()


def test_a_reader_that_has_gone_harms_nobody() -> None:
    stream = io.StringIO()
    stream.close()
    writer = LineWriter(stream)
    writer("lost\n")
    writer("lost too\n")
    writer.close()
