"""`Run`: what a function may know about the run it is called for.

One is made per attempt, so it holds only references and works everything else out when asked.
"""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hourhand.core.run import ClaimedRun
    from hourhand.ports.log import AttemptLog, RunLog

    Tell = Callable[[ClaimedRun, float, str], None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAKE_TIME = datetime(2026, 11, 16, 8, tzinfo=UTC)


class Run:
    """The attempt a function is called for. Ask for it with a first parameter `ctx`, or of this type."""

    __slots__ = ("_kept", "_log", "_logs", "_progress", "_run", "_stop", "_task", "_tell")

    def __init__(
        self,
        run: "ClaimedRun",
        task: asyncio.Task[Any] | None = None,
        stop: threading.Event | None = None,
        logs: "RunLog | None" = None,
        tell: "Tell | None" = None,
    ) -> None:
        self._run = run
        self._task = task  # of an async function
        self._stop = stop  # of a function on a thread
        self._tell = tell  # who keeps progress
        self._progress: tuple[float, str] | None = None
        self._log: Any = None
        self._logs = logs
        self._kept: AttemptLog | None = None  # what was said, once something was

    @classmethod
    def fake(
        cls,
        *,
        scheduled_at: datetime = _FAKE_TIME,
        attempt: int = 1,
        timeout: timedelta = timedelta(minutes=5),
    ) -> "Run":
        """A run that nobody planned, to call a function with in tests: `daily_report(Run.fake(), "eu")`."""
        from hourhand.core.model import JobSpec, OnceTiming, PythonTarget
        from hourhand.core.run import ClaimedRun

        if scheduled_at.tzinfo is None:
            raise ValueError("scheduled_at needs a zone, such as datetime(2026, 11, 16, tzinfo=UTC)")
        at = (scheduled_at - _EPOCH) // timedelta(microseconds=1)
        deadline_at = at + timeout // timedelta(microseconds=1)
        spec = JobSpec(timing=OnceTiming(at=at), target=PythonTarget(function="fake"))
        claimed = ClaimedRun(1, 0, at, at, attempt, attempt - 1, 0, deadline_at, 1, "default", spec)
        return cls(claimed, stop=threading.Event())

    @property
    def run_id(self) -> str:
        """`J-…@20261116T080000Z`, the same for every attempt."""
        return self._run.run_id

    @property
    def idempotency_key(self) -> str:
        """What makes the effect happen once: give it to whatever you call. It is the run's id."""
        return self._run.run_id

    @property
    def job_id(self) -> str:
        """The job's public id."""
        return self._run.run_id.partition("@")[0]

    @property
    def scheduled_at(self) -> datetime:
        """The nominal time, in UTC; not when the attempt really started."""
        return _as_datetime(self._run.scheduled_at)

    @property
    def interval(self) -> tuple[datetime | None, datetime]:
        """From the previous nominal time to this one; None where there was none."""
        rule = self._run.spec.rule
        previous_at = None if rule is None else rule.latest(self._run.scheduled_at - 1)
        return None if previous_at is None else _as_datetime(previous_at), self.scheduled_at

    @property
    def attempt(self) -> int:
        """Grows with every attempt of this run; refuse what comes with an older one."""
        return self._run.fence

    @property
    def deadline(self) -> datetime:
        """When this attempt is given up, in UTC."""
        return _as_datetime(self._run.deadline_at)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any more: the deadline passed or somebody cancelled the run."""
        if self._stop is not None:
            return self._stop.is_set()
        return self._task is not None and self._task.cancelling() > 0

    def wait(self, timeout_s: float | None = None) -> bool:
        """For functions on threads: sleep, but wake when cancelled. True if it was."""
        if self._stop is None:
            raise RuntimeError(
                "ctx.wait() would block the event loop; an async function awaits, and is cancelled"
            )
        return self._stop.wait(timeout_s)

    def progress(self, fraction: float, text: str = "") -> None:
        """Say how far it is, from 0 to 1. Shown with the run; the latest is kept about once a second."""
        self._progress = (min(max(float(fraction), 0.0), 1.0), str(text))
        if self._tell is not None:
            self._tell(self._run, *self._progress)
        self.log.unkept.debug("progress", fraction=self._progress[0], text=text)

    @property
    def last_progress(self) -> tuple[float, str] | None:
        """What `progress` was last told."""
        return self._progress

    @property
    def log(self) -> Any:
        """A structlog logger that names the run; its lines are kept too, see `hourhand runs logs`."""
        if self._log is None:
            import structlog

            from hourhand.functions.run_logger import RunLogger

            inner = structlog.get_logger("hourhand.run").bind(run_id=self.run_id, attempt=self.attempt)
            self._log = RunLogger(inner, self._keep)
        return self._log

    @property
    def kept_log(self) -> "AttemptLog | None":
        """What was said with `log`, on its way to the store; None where nothing was."""
        return self._kept

    def _keep(self, line: str) -> None:
        from hourhand.core.log import Stream

        if self._kept is None:
            if self._logs is None:
                return
            self._kept = self._logs.open(self._run)
        self._kept.write(Stream.LOG, line)

    def __repr__(self) -> str:
        return f"<Run {self.run_id} attempt {self.attempt}>"


def _as_datetime(at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at)
