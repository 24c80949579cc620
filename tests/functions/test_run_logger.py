"""`ctx.log`: says everything twice, as a line of text, and never fails the function that uses it."""

from typing import Any

import pytest
import structlog

from hourhand.functions.run_logger import RunLogger


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def log(lines: list[str]) -> RunLogger:
    return RunLogger(structlog.get_logger("hourhand.run"), lines.append)


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "critical"])
def test_levels(log: RunLogger, lines: list[str], level: str) -> None:
    with structlog.testing.capture_logs() as told:
        getattr(log, level)("said", rows=3)
    assert lines == [f"{level.upper()} said rows=3\n"]
    assert told == [{"event": "said", "rows": 3, "log_level": level}]


@pytest.mark.parametrize(
    ("args", "values", "line"),
    [
        (("%s of %d", "one", 2), {}, "INFO one of 2\n"),
        (("100 %",), {"a": "b c", "n": None}, "INFO 100 % a=b c n=None\n"),
        (("%d", "no number"), {}, "INFO %d\n"),
        (("x",), {"odd": Unprintable()}, "INFO x odd=<Unprintable that cannot be printed>\n"),
        (("nul\0, \ud800",), {}, "INFO nul\ufffd, \\ud800\n"),
        (("long",), {"text": "x" * 5_000}, f"INFO long text={'x' * 2_000}…\n"),
    ],
)
def test_lines(lines: list[str], args: tuple[Any, ...], values: dict[str, Any], line: str) -> None:
    class Silent:
        def info(self, *_: Any, **__: Any) -> None:
            pass

    RunLogger(Silent(), lines.append).info(*args, **values)
    assert lines == [line]


def test_bound_values_are_on_every_line(log: RunLogger, lines: list[str]) -> None:
    bound = log.bind(step=1)
    bound.info("a")
    bound.bind(step=2, part="x").info("b")
    log.info("c")
    assert lines == ["INFO a step=1\n", "INFO b step=2 part=x\n", "INFO c\n"]


def test_an_exception_brings_its_traceback(log: RunLogger, lines: list[str]) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("failed", job=1)
    [text] = lines
    assert text.startswith("ERROR failed job=1\nTraceback (most recent call last):\n")
    assert text.endswith("ValueError: broken\n")
