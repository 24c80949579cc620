"""`hourhand queue replay`: what it asks for, and what it says."""

from typing import Any

import pytest

from hourhand.cli.launch import ReplayedWindow

AT = 1_763_280_000_000_000
FROM, TO = "2025-11-16T08:00:00Z", "2025-11-16T09:00:00Z"


class Replays:
    """Stands for the wiring, and keeps what it was asked."""

    def __init__(self, unreadable: int = 0) -> None:
        self.asked: list[tuple[int, int, bool]] = []
        self._unreadable = unreadable

    def __call__(self, settings: Any, from_at: int, to_at: int, *, dry_run: bool) -> ReplayedWindow:
        self.asked.append((from_at, to_at, dry_run))
        return ReplayedWindow(
            by_priority={"HIGH": 1_200, "MEDIUM": 34, "LOW": 0}, unreadable=self._unreadable
        )


def test_a_window_is_offered_again_and_counted(hourhand) -> None:
    replays = Replays()
    done = hourhand("queue", "replay", "--from", FROM, "--to", TO, replay=replays)
    assert (done.code, done.out) == (0, "offered 1,234 runs again: 1,200 HIGH, 34 MEDIUM\n")
    assert "2025-11-16 08:00:00 +00:00 to 2025-11-16 09:00:00 +00:00" in done.err
    assert replays.asked == [(AT, AT + 3_600_000_000, False)]


def test_a_dry_run_only_counts_and_tells_what_cannot_be_read(hourhand) -> None:
    replays = Replays(unreadable=2)
    done = hourhand("queue", "replay", "--from", FROM, "--to", TO, "--dry-run", replay=replays)
    assert done.out.startswith("would offer 1,234 runs again")
    assert "2 messages could not be read" in done.err
    assert replays.asked[0][2]


def test_the_document(hourhand) -> None:
    done = hourhand("queue", "replay", "--from", FROM, "--to", TO, "--json", replay=Replays())
    assert done.json == {
        "from": FROM,
        "to": TO,
        "offered": 1_234,
        "by_priority": {"HIGH": 1_200, "MEDIUM": 34, "LOW": 0},
        "unreadable": 0,
        "dry_run": False,
    }


def test_times_as_people_say_them(hourhand) -> None:
    replays = Replays()
    times = ("--from", "2025-11-16 09:00", "--to", "2025-11-16 10:00", "--tz", "Europe/Berlin")
    assert hourhand("queue", "replay", *times, replay=replays).code == 0
    assert replays.asked == [(AT, AT + 3_600_000_000, False)]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--from", TO, "--to", FROM), "--from must be before --to"),
        (("--from", "yesteryear"), "not an RFC 3339 time"),
        (("--to", TO), "--from"),
    ],
)
def test_what_is_no_window_is_refused(hourhand, arguments: tuple[str, ...], why: str) -> None:
    replays = Replays()
    done = hourhand("queue", "replay", *arguments, replay=replays)
    assert done.code == 2
    assert why in done.err
    assert not replays.asked
