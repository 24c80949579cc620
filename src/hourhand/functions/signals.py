"""What a function raises to say more than "it failed"."""

from datetime import timedelta

from hourhand.core.instant import format_duration, parse_duration


class RetryLater(Exception):
    """Try this run again after a pause: `raise RetryLater("30s")`.

    It counts as a try, and the job's longest backoff bounds the pause. Raised by the function itself, it
    also says that nothing was done, so that `at_most_once` jobs are tried again too.
    """

    def __init__(self, delay: str | float | timedelta, reason: str = "") -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        self.delay_us = parse_duration(seconds)
        pause = f"asked to be tried again in {format_duration(self.delay_us)}"
        super().__init__(f"{pause}: {reason}" if reason else pause)


class GiveUp(Exception):
    """Do not try this run again: `raise GiveUp("bad data")`. It goes to the dead letters."""


class Skip(Exception):
    """There is nothing to do this time: `raise Skip("holiday")`. The run ends as skipped, with the reason."""
