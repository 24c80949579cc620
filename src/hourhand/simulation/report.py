"""What a simulation found, as a document: job by job, in all, the busiest seconds, the changes of clocks, capacity."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hourhand.cli.launch import SimulationWish
from hourhand.core.instant import SECOND_US, format_duration, format_in_zone, format_instant
from hourhand.core.model import CronTiming, EveryTiming, Job
from hourhand.core.schedule import Cron, preview, zone_info
from hourhand.core.schedule.zone import zone_changes
from hourhand.simulation.ledger import Ledger

_BUSIEST = 5
_HERD = 5  # jobs of one rule that are worth a word
_RULES_SHOWN = 3
_LOOKED_AT = 200
_NOTES = 10
_AROUND_CHANGE_US = 26 * 3600 * SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What there was, and what came of it; jobs by their place among the documents."""

    jobs: Mapping[int, Job]
    expected: Mapping[int, Sequence[int]]
    ledger: Ledger
    wish: SimulationWish
    stopped_at: int | None

    @property
    def end_at(self) -> int:
        """Up to where it was simulated."""
        return self.wish.end_at if self.stopped_at is None else self.stopped_at


def report(facts: Facts) -> dict[str, Any]:
    """The document that `hourhand simulate --json` prints."""
    wish = facts.wish
    jobs = [_job(facts, number) for number in sorted(facts.jobs)]
    return {
        "from": format_instant(wish.start_at),
        "to": format_instant(facts.end_at),
        "seed": wish.seed,
        "stopped_at": None if facts.stopped_at is None else format_instant(facts.stopped_at),
        "totals": _totals(jobs),
        "capacity": _capacity(facts),
        "outages": [{"from": format_instant(a), "to": format_instant(b)} for a, b in wish.outages],
        "clock_changes": _clock_changes(facts),
        "busiest": _busiest(facts),
        "left_out": len(wish.jobs) - len(facts.jobs),
        "jobs": jobs,
    }


def _job(facts: Facts, number: int) -> dict[str, Any]:
    job = facts.jobs[number]
    ledger = facts.ledger.jobs[job.id]
    expected = _count_until(facts.expected[number], facts.end_at)
    ended = ledger.succeeded + ledger.failed + ledger.cancelled + ledger.skipped.total()
    return {
        "name": job.spec.name or job.spec.key or f"job {number + 1}",
        "key": job.spec.key,
        "expected": expected,
        "ran": ledger.ran,
        "succeeded": ledger.succeeded,
        "failed": ledger.failed,
        "cancelled": ledger.cancelled,
        "skipped": dict(sorted(ledger.skipped.items())),
        "unfinished": expected - ended,
        "retries": ledger.retries,
        "late": len(ledger.late_us),
        "lateness_p99_ms": ledger.lateness_us(0.99) // 1_000,
        "lateness_max_ms": max(ledger.late_us, default=0) // 1_000,
        "overlaps": ledger.skipped["overlap"] + ledger.waited_for_slot + ledger.cancelled,
        "longest_slot_wait_ms": ledger.slot_wait_us // 1_000,
    }


def _count_until(times: Sequence[int], end_at: int) -> int:
    return sum(at < end_at for at in times) if times and times[-1] >= end_at else len(times)


def _totals(jobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    summed = (
        "expected",
        "ran",
        "succeeded",
        "failed",
        "cancelled",
        "unfinished",
        "retries",
        "late",
        "overlaps",
    )
    skipped: Counter[str] = Counter()
    for job in jobs:
        skipped.update(job["skipped"])
    return {
        "jobs": len(jobs),
        **{name: sum(job[name] for job in jobs) for name in summed},
        "skipped": dict(sorted(skipped.items())),
        "lateness_max_ms": max((job["lateness_max_ms"] for job in jobs), default=0),
    }


def _capacity(facts: Facts) -> dict[str, Any]:
    wish = facts.wish
    slots = wish.workers * wish.concurrency
    most, most_at, full_us = facts.ledger.peak(slots)
    return {
        "workers": wish.workers,
        "concurrency": wish.concurrency,
        "slots": slots,
        "peak": most,
        "peak_at": None if most_at is None else format_instant(most_at),
        "full_s": full_us // SECOND_US,
    }


def _busiest(facts: Facts) -> list[dict[str, Any]]:
    """The seconds with the most runs, those with the same leading rule once; and which rules could be spread."""
    counts: Counter[int] = Counter()
    rules: dict[str, list[Job]] = defaultdict(list)
    for number, job in facts.jobs.items():
        counts.update(at // SECOND_US for at in facts.expected[number])
        if job.spec.rule is not None:
            rules[job.spec.rule.key].append(job)
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    ranked = sorted(((-count, second) for second, count in counts.items() if count > 1))
    for count, second in ranked[:_LOOKED_AT]:
        firing = sorted(
            (jobs for jobs in rules.values() if _fires_in(jobs[0], second)), key=len, reverse=True
        )
        leading = firing[0][0].spec.rule.key if firing and firing[0][0].spec.rule else ""
        if not firing or leading in seen:
            continue
        seen.add(leading)
        top = [_herd(jobs) for jobs in firing[:_RULES_SHOWN]]
        found.append({"at": format_instant(second * SECOND_US), "runs": -count, "rules": top})
        if len(found) == _BUSIEST:
            break
    return found


def _fires_in(job: Job, second: int) -> bool:
    rule = job.spec.rule
    first_at = second * SECOND_US
    return rule is not None and rule.newest_in(first_at - 1, first_at + SECOND_US - 1) is not None


def _herd(jobs: Sequence[Job]) -> dict[str, Any]:
    """Jobs of one rule, and what would keep them apart."""
    timing = jobs[0].spec.timing
    words = f"every {format_duration(timing.interval_us)}" if isinstance(timing, EveryTiming) else ""
    if isinstance(timing, CronTiming):
        words = f"{timing.expression} ({timing.tz})"
    bare = sum(job.spec.jitter_us == 0 for job in jobs)
    suggestion = f"jitter 30s would spread {bare:,} of its jobs" if bare >= _HERD else None
    return {"rule": words, "jobs": len(jobs), "suggestion": suggestion}


def _clock_changes(facts: Facts) -> list[dict[str, Any]]:
    """Where zones of the jobs change their clocks in these days, and which times that moves or drops."""
    zones: dict[str, list[Job]] = defaultdict(list)
    for job in facts.jobs.values():
        if isinstance(job.spec.rule, Cron):
            zones[job.spec.rule.zone].append(job)
    found = []
    for zone, jobs in sorted(zones.items()):
        for change in zone_changes(zone, facts.wish.start_at - 1):
            if change.at >= facts.end_at:
                break
            found.append(
                {
                    "zone": zone,
                    "at": format_instant(change.at),
                    "day": format_in_zone(change.at, zone_info(zone))[:10],
                    "forward_s": change.new_offset_s - change.old_offset_s,
                    "jobs": len(jobs),
                    "touches": _touched(jobs, change.at),
                }
            )
    return found


def _touched(jobs: Sequence[Job], change_at: int) -> list[dict[str, Any]]:
    """Times near a change that it moves, drops or repeats."""
    found = []
    for job in jobs:
        assert isinstance(job.spec.rule, Cron)
        for one in preview(job.spec.rule, change_at - _AROUND_CHANGE_US, 60):
            if one.note and abs(one.at - change_at) <= _AROUND_CHANGE_US:
                found.append({"job": job.spec.name or job.spec.key, "local": one.local, "note": one.note})
                if len(found) == _NOTES:
                    return found
                break
    return found
