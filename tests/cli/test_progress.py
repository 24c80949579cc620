"""Progress on a terminal, and nothing anywhere else."""

import io
import sys

import pytest

from hourhand.cli.progress import Progress

HALF = f"checked [{'#' * 12}{'.' * 12}]  50%  1,000 of 2,000"
WHOLE = f"checked [{'#' * 24}] 100%  2,000 of 2,000"


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "wanted", "total", "shown"),
    [
        (True, True, 2_000, f"\r\x1b[K{HALF}\r\x1b[K{WHOLE}\r\x1b[K"),
        (True, True, None, "\r\x1b[Kchecked 1,000\r\x1b[Kchecked 2,000\r\x1b[K"),
        (True, False, 2_000, ""),
        (False, True, 2_000, ""),
    ],
)
def test_progress(
    terminal: bool, wanted: bool, total: int | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("checked", total, wanted=wanted) as progress:
        progress.add(1_000)
        progress.add(1_000)
    assert screen.getvalue() == shown


@pytest.mark.parametrize(("total", "most"), [(100_000, 201), (None, 2_001), (0, 2_001)])
def test_it_is_not_drawn_for_each_of_many(
    total: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal=True)
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("read", total) as progress:
        for _ in range(100_000):
            progress.add(1)
    assert 10 < screen.getvalue().count("\r") <= most + 1
