"""Audits by itself every few minutes what has just passed, tells what it found, and pings when all is well.

The ping is for a dead man's switch: it goes out only after an audit that was whole and clean, so that silence means
lost runs, a store that cannot be read, or nobody left to look. Whose turn it is, is the node's matter.
"""

from collections.abc import Awaitable, Callable

from hourhand.clock import Clock
from hourhand.core.audit import LAG_BUDGET_US, AuditReport, Kind, Window
from hourhand.core.identity import format_run_id
from hourhand.core.instant import DAY_US, MINUTE_US, format_instant
from hourhand.services.audit import Audit
from hourhand.telemetry import Telemetry, logger

PERIOD_US = 5 * MINUTE_US
FIRST_US = MINUTE_US  # after the start: what an outage left is planned by then
WINDOW_US = 15 * MINUTE_US  # so that each time is looked at more than once
MAX_WINDOW_US = DAY_US  # after a pause of this
MAX_SHARE = 20  # of the time since the last audit that one may take: a twentieth
_NAMED = 5

Ping = Callable[[], Awaitable[None]]  # raises nothing; says itself what went wrong

_log = logger("hourhand.audit")


async def no_ping() -> None:
    """Nobody is told."""


class Auditor:
    """One audit per step, of everything in the store."""

    def __init__(
        self,
        *,
        audit: Audit,
        clock: Clock,
        telemetry: Telemetry,
        grace_us: int,
        name: str = "",
        ping: Ping = no_ping,
    ) -> None:
        self._audit = audit
        self._clock = clock
        self._telemetry = telemetry
        self._grace_us = grace_us
        self._name = name  # of the database, where there are several
        self._ping = ping
        self._next_at: int | None = None
        self._done_to_at: int | None = None

    async def step(self, now_at: int) -> int | None:
        """Audit what has passed since the last time, and some of what was before; answers when to come again."""
        if self._next_at is None:
            self._next_at = now_at + FIRST_US
        if 0 < self._next_at - now_at <= MAX_SHARE * PERIOD_US:  # further off: the clock was set back
            return self._next_at
        self._next_at = now_at + PERIOD_US
        to_at = now_at - self._grace_us - LAG_BUDGET_US
        from_at = to_at - WINDOW_US if self._done_to_at is None else min(self._done_to_at, to_at - WINDOW_US)
        report = await self._audit.window(Window(from_at=max(from_at, to_at - MAX_WINDOW_US), to_at=to_at))
        took_us = self._clock.now() - now_at
        self._done_to_at = to_at
        self._next_at = now_at + max(PERIOD_US, min(took_us, PERIOD_US) * MAX_SHARE)
        self._tell(report, now_at, took_us)
        if report.is_clean:
            await self._ping()
        return self._next_at

    def _tell(self, report: AuditReport, now_at: int, took_us: int) -> None:
        self._telemetry.audited(
            self._name,
            expected=report.tally.expected,
            lost=report.tally.lost,
            kinds={kind.value: report.kinds.get(kind, 0) for kind in Kind},
            at=now_at,
            took_us=took_us,
        )
        window = f"{format_instant(report.window.from_at)}/{format_instant(report.window.to_at)}"
        if report.kinds:
            runs = [format_run_id(one.job_id, one.scheduled_at) for one in report.findings[:_NAMED]]
            kinds = {kind.value: number for kind, number in report.kinds.items()}
            _log.error("runs do not add up to the schedule", window=window, first=runs, **kinds)
        elif not report.complete:
            _log.warning("an audit could not read everything", window=window, jobs=len(report.unread))
