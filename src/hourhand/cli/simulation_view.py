"""A simulation as people read it: one sentence, what needs a look, then job by job."""

from collections.abc import Mapping
from typing import Any

from hourhand.cli.output import Column, Output
from hourhand.cli.text import clean, plural
from hourhand.core.instant import HOUR_US, MINUTE_US, SECOND_US

MOST_SHOWN = 50  # jobs
_MOST_NAMED = 3


def show(out: Output, found: Mapping[str, Any]) -> None:
    """Print it; jobs with something to tell come first."""
    totals = found["totals"]
    out.line(
        f"{found['from']} to {found['to']}: {plural(totals['jobs'], 'job')}, "
        f"{plural(totals['expected'], 'run')} expected"
    )
    _show_stop(out, found)
    out.facts(_facts(totals, found["capacity"]))
    for outage in found["outages"]:
        out.line(f"outage       {outage['from']} to {outage['to']}")
    for change in found["clock_changes"]:
        _show_change(out, change)
    for second in found["busiest"]:
        _show_second(out, second)
    out.line()
    jobs = sorted(found["jobs"], key=_calm)
    out.table(_COLUMNS, jobs[:MOST_SHOWN])
    if len(jobs) > MOST_SHOWN:
        out.note(f"and {plural(len(jobs) - MOST_SHOWN, 'job')} more; --json has all")
    if found["left_out"]:
        out.note(f"left out: {plural(found['left_out'], 'job')} whose times have passed")


def length(ms: int) -> str:
    """A lateness in the unit that fits."""
    us = ms * 1_000
    if us >= HOUR_US:
        return f"{us / HOUR_US:.1f} h"
    if us >= MINUTE_US:
        return f"{us / MINUTE_US:.1f} min"
    return f"{us / SECOND_US:.1f} s" if us >= SECOND_US else f"{ms} ms"


def _show_stop(out: Output, found: Mapping[str, Any]) -> None:
    if found["stopped_at"] is not None:
        out.line(f"stopped at {found['stopped_at']}: too many runs meet; simulate fewer days or jobs")


def _facts(totals: Mapping[str, Any], capacity: Mapping[str, Any]) -> list[tuple[str, object]]:
    peak = f"{capacity['peak']:,} of {plural(capacity['slots'], 'slot')} at most"
    if capacity["peak_at"]:
        peak += f", first at {capacity['peak_at']}"
    if capacity["full_s"]:
        peak += f"; all taken for {length(capacity['full_s'] * 1_000)}"
    return [
        ("succeeded", f"{totals['succeeded']:,}"),
        ("failed", f"{totals['failed']:,}" if totals["failed"] else None),
        ("cancelled", f"{totals['cancelled']:,}" if totals["cancelled"] else None),
        ("skipped", _reasons(totals["skipped"])),
        ("unfinished", f"{totals['unfinished']:,}" if totals["unfinished"] else None),
        ("retries", f"{totals['retries']:,}" if totals["retries"] else None),
        (
            "late",
            f"{totals['late']:,}, at most {length(totals['lateness_max_ms'])}" if totals["late"] else None,
        ),
        ("at once", peak),
    ]


def _reasons(skipped: Mapping[str, int]) -> str | None:
    return ", ".join(f"{count:,} ({clean(reason)})" for reason, count in skipped.items()) or None


def _show_change(out: Output, change: Mapping[str, Any]) -> None:
    hours = change["forward_s"] / 3600
    way = "forward" if hours > 0 else "back"
    out.line(
        f"clocks       {change['day']}: {change['zone']} goes {way} by {abs(hours):g} h; {plural(change['jobs'], 'job')}"
    )
    for touched in change["touches"]:
        out.line(f"             {clean(touched['job'] or '')} {touched['local']}: {touched['note']}")


def _show_second(out: Output, second: Mapping[str, Any]) -> None:
    rules = "; ".join(
        f"{plural(rule['jobs'], 'job')} at {rule['rule']}" for rule in second["rules"][:_MOST_NAMED]
    )
    advice = next((f" – {rule['suggestion']}" for rule in second["rules"] if rule["suggestion"]), "")
    out.line(f"busy         {second['at']}: {plural(second['runs'], 'run')} ({rules}){advice}")


def _calm(job: Mapping[str, Any]) -> tuple[int, int, str]:
    trouble = job["failed"] + job["cancelled"] + sum(job["skipped"].values()) + job["unfinished"]
    return -trouble, -job["lateness_max_ms"], job["name"]


_COLUMNS = (
    Column(head="JOB", cell=lambda job: job["name"]),
    Column(head="EXPECTED", cell=lambda job: f"{job['expected']:,}"),
    Column(head="SUCCEEDED", cell=lambda job: f"{job['succeeded']:,}"),
    Column(head="FAILED", cell=lambda job: f"{job['failed']:,}"),
    Column(head="SKIPPED", cell=lambda job: _reasons(job["skipped"]) or "0"),
    Column(head="RETRIES", cell=lambda job: f"{job['retries']:,}"),
    Column(head="OVERLAPS", cell=lambda job: f"{job['overlaps']:,}"),
    Column(head="P99 LATE", cell=lambda job: length(job["lateness_p99_ms"])),
    Column(head="WORST", cell=lambda job: length(job["lateness_max_ms"])),
)
