"""What happened to the runs of a simulation, job by job: outcomes, lateness, and where it came from."""

from collections import Counter
from collections.abc import Iterable, Sequence

from hourhand.core.lifecycle import Event
from hourhand.core.run import ClaimedRun, Settlement
from hourhand.simulation.foresight import Life

_NOTABLE_US = 1_000  # less than that is nothing that anybody would call late


class JobLedger:
    """One job's part."""

    def __init__(self) -> None:
        self.ran = 0
        self.succeeded = 0
        self.failed = 0
        self.cancelled = 0
        self.retries = 0
        self.on_time = 0
        self.late_us: list[int] = []  # of those that began after their due time
        self.slot_wait_us = 0  # the longest for a slot of its own
        self.waited_for_slot = 0
        self.skipped: Counter[str] = Counter()
        self._free_at = 0  # when the last attempt so far ended

    def began(self, due_at: int, started_at: int) -> None:
        """A run's first attempt began."""
        self.ran += 1
        late_us = started_at - due_at
        if late_us < _NOTABLE_US:
            self.on_time += 1
            return
        self.late_us.append(late_us)
        if self._free_at > due_at:
            self.waited_for_slot += 1
            self.slot_wait_us = max(self.slot_wait_us, min(self._free_at, started_at) - due_at)

    def ended(self, event: Event, finished_at: int) -> None:
        """An attempt ended."""
        match event:
            case Event.SUCCEED:
                self.succeeded += 1
            case Event.EXHAUST:
                self.failed += 1
            case Event.CANCEL:
                self.cancelled += 1
            case Event.RETRY:
                self.retries += 1
            case _:
                pass
        self._free_at = max(self._free_at, finished_at)

    def lateness_us(self, share: float) -> int:
        """The lateness that this share of all runs does not exceed."""
        total = self.on_time + len(self.late_us)
        if not total:
            return 0
        place = min(total - 1, int(share * total))
        return 0 if place < self.on_time else sorted(self.late_us)[place - self.on_time]


class Ledger:
    """All jobs, and how many attempts went on at once."""

    def __init__(self, job_ids: Iterable[int]) -> None:
        self.jobs = {job_id: JobLedger() for job_id in job_ids}
        self.stepped = 0  # runs that services really carried out
        self._changes: list[tuple[int, int]] = []

    def settled(self, batch: Sequence[tuple[ClaimedRun, Settlement]]) -> None:
        """What a worker committed."""
        for run, settlement in batch:
            started_at = settlement.started_at
            if started_at is None:
                continue
            job = self.jobs[run.job_id]
            if run.tries == 0:
                job.began(run.due_at, started_at)
                self.stepped += 1
            job.ended(settlement.event, settlement.finished_at)
            self._changes += ((started_at, 1), (settlement.finished_at, -1))

    def passed(self, runs: Sequence[Life]) -> None:
        """Runs that needed no simulation: on time, and as foreseen."""
        for run in runs:
            job = self.jobs[run.job_id]
            job.began(run.due_at, run.due_at)
            job.ended(Event.SUCCEED if run.succeeds else Event.EXHAUST, run.end_at)
            job.retries += len(run.attempts) - 1
            for begin_at, end_at in run.attempts:
                self._changes += ((begin_at, 1), (end_at, -1))

    def peak(self, slots: int) -> tuple[int, int | None, int]:
        """The most attempts at once, when first, and for how long all slots were taken."""
        most, most_at, full_us, full_since, running = 0, None, 0, None, 0
        for at, change in sorted(self._changes):
            running += change
            if running > most:
                most, most_at = running, at
            if running >= slots and full_since is None:
                full_since = at
            elif running < slots and full_since is not None:
                full_us, full_since = full_us + at - full_since, None
        return most, most_at, full_us
