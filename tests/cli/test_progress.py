"""Progress on a terminal, and nothing anywhere else."""

import io
import sys

import pytest

from hourhand.cli.progress import Progress


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "wanted", "total", "shown"),
    [
        (True, True, 2_000, "\r\x1b[Kchecked 1,000 of 2,000\r\x1b[Kchecked 2,000 of 2,000\r\x1b[K"),
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
