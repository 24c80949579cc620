"""What jobs and their coming times look like on the screen."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hourhand.cli.options import Call
from hourhand.cli.output import FACT_WIDTH, Column
from hourhand.cli.text import plural
from hourhand.cli.times import from_now, in_zone, next_change, now, weekday, zone_of
from hourhand.core.url import masked_url
from hourhand.errors import NotFound

UPCOMING = 3
_COMMON = (
    "starts_at",
    "ends_at",
    "max_runs",
    "priority",
    "pool",
    "timeout",
    "delivery",
    "concurrency",
    "overlap",
)


def job_columns(tz: str | None) -> tuple[Column, ...]:
    """The columns of a list of jobs."""
    return (
        Column(head="ID", cell=lambda job: job["job_id"]),
        Column(head="NAME", cell=lambda job: job["name"] or job["key"], width=32),
        Column(head="STATE", cell=lambda job: job["state"]),
        Column(head="SCHEDULE", cell=lambda job: job["schedule_in_words"]),
        Column(head="NEXT", cell=lambda job: in_zone(job["next_fire_time"], zone_of(job, tz))),
    )


def run_columns(zone: str) -> tuple[Column, ...]:
    """The columns of a job's runs."""
    return (
        Column(head="RUN", cell=lambda run: run["run_id"]),
        Column(head="STATUS", cell=lambda run: run["status"]),
        Column(head="SCHEDULED", cell=lambda run: in_zone(run["scheduled_at"], zone)),
        Column(head="LATE", cell=lambda run: _ms(run["lag_ms"])),
        Column(head="TRIES", cell=lambda run: len(run["attempts"]) or None),
        Column(head="TRIGGER", cell=lambda run: run["trigger"]),
        Column(head="WHY", cell=why, width=60),
    )


def version_columns(zone: str) -> tuple[Column, ...]:
    """The columns of a job's versions."""
    return (
        Column(head="VERSION", cell=lambda one: one["version"]),
        Column(head="BY", cell=lambda one: one.get("by"), width=40),
        Column(head="FROM", cell=lambda one: in_zone(one["from"], zone)),
        Column(head="TO", cell=lambda one: in_zone(one["to"], zone)),
        Column(head="SCHEDULE", cell=lambda one: schedule_of(one["job"])),
        Column(head="TARGET", cell=lambda one: target_of(one["job"])),
        Column(head="PAUSED", cell=lambda one: _paused(one)),
    )


def show_job(call: Call, job: Mapping[str, Any]) -> None:
    """Everything about one job."""
    zone = zone_of(job, call.tz)
    status = call.client.jobs.status(job)
    facts: list[tuple[str, object]] = [
        ("id", job["job_id"]),
        ("name", job["name"]),
        ("key", job["key"]),
        ("tags", ", ".join(job["tags"])),
        ("state", _state(job, zone)),
        ("schedule", job["schedule_in_words"]),
        ("wait", job.get("wait")),
        ("target", target_of(job)),
        ("payload", job["payload"]),
        *((name.replace("_", " "), job[name]) for name in _COMMON),
        ("retry", "{max} times, {first} x {factor} up to {max_delay}".format(**job["retry"])),
        ("misfire", "{policy} after {grace}".format(**job["misfire"])),
        ("jitter", job["jitter"]),
        ("version", job["version"]),
        ("status", status["status"]),
        ("last run", in_zone(status["last_run"], zone)),
    ]
    call.out.facts(facts)
    show_upcoming(call, job)


def show_upcoming(call: Call, job: Mapping[str, Any], *, others: bool = False) -> None:
    """The next three times, the next change of the clocks, and perhaps what else fires with the first."""
    zone = zone_of(job, call.tz)
    if job["job_id"] is None or job["next_fire_time"] is None:
        call.out.facts([("next", in_zone(job["next_fire_time"], zone) or _why_none(job))])
        return
    coming = call.client.jobs.next(job, n=UPCOMING, others=others)
    show_times(call, coming["data"], job, head="next")
    change = next_change(zone, now()) if job.get("cron") else None
    if change is not None:
        call.out.facts([("DST", change)])
    call.out.facts([("beside", _beside(coming.get("beside")))])


def show_times(
    call: Call, times: Sequence[Mapping[str, Any]], job: Mapping[str, Any], head: str = ""
) -> None:
    """Coming times with offsets in the job's zone; what DST drops is marked."""
    zone, now_at = zone_of(job, call.tz), now()
    head = f"{head:<{FACT_WIDTH}}  " if head else ""
    for time in times:
        local = in_zone(time["at"], zone) or ""
        sign = "" if time["fires"] else "–  "
        note = f"  {time['note']}" if time["note"] else ""
        away = from_now(time["at"], now_at)
        call.out.line(f"{head}{sign}{local}  {weekday(local[:19])}  {away}{note}")
        head = " " * len(head)


def schedule_of(document: Mapping[str, Any]) -> str:
    """A schedule as it was written."""
    if document.get("cron"):
        return f"{document['cron']} {document['tz']}"
    if document.get("after"):
        return f"after {', '.join(document['after'])}"
    return f"every {document['every']}" if document.get("every") else f"at {document.get('at')}"


def target_of(document: Mapping[str, Any]) -> str:
    """A target in one line."""
    target = document["target"]
    match target["type"]:
        case "python":
            return str(target["function"])
        case "shell":
            return shlex.join(target["argv"])
        case _:
            return f"{target['method']} {masked_url(target['url'])}"


def none_to_come(job: Mapping[str, Any]) -> str:
    """Why there are no coming times to tell."""
    if _follows(job):
        return f"it has no times of its own: it {_why_none(job)}"
    return f"no time to come: the job is {job['state']}"


def waits_for(run: Mapping[str, Any], zone: str) -> str | None:
    """Whom a run waits for, and until when."""
    if not run.get("waits_for"):
        return None
    names = ", ".join(called(one) for one in run["waits_for"])
    return f"waits for {names} until {in_zone(run['wait_until'], zone)}"


def upstream(run: Mapping[str, Any]) -> str | None:
    """Because of whom a run was skipped, and how that one ended."""
    parent = run.get("upstream")
    if parent is None:
        return None
    ended = "had no run" if parent["outcome"] == "MISSING" else f"is {parent['outcome']}"
    return f"upstream: {called(parent)} {ended}"


def called(job: Mapping[str, Any]) -> str:
    """How people know a job."""
    return str(job.get("name") or job.get("key") or job["job_id"])


def with_id(job: Mapping[str, Any]) -> str:
    """How people know a job, and its id."""
    known = called(job)
    return known if known == job["job_id"] else f"{known} ({job['job_id']})"


def job_of(call: Call, job_id: str) -> Mapping[str, Any]:
    """A job that something belongs to; only its id where it is gone."""
    try:
        return call.client.jobs.get(job_id)
    except NotFound:
        return {"job_id": job_id}


def why(run: Mapping[str, Any]) -> str:
    """Why a run is as it is: its error, its reason, or what it waits for."""
    if run.get("skip_asked"):
        return "will be skipped"
    told = waits_for(run, "UTC") or upstream(run)
    if told is not None:
        return told
    if run.get("offered_at"):
        return "waits for a worker that can run it"
    if run.get("waits_for_slot"):
        return "waits for a slot"
    if run.get("awaits_report"):
        return f"waiting for its report, until {run['deadline_at']}"
    return run.get("error") or run.get("reason") or ""


def _beside(beside: Mapping[str, Any] | None) -> str | None:
    if beside is None:
        return None
    least = "" if beside["is_exact"] else "at least "
    if not beside["count"]:
        return "nothing else fires in that second" if beside["is_exact"] else None
    names = ", ".join(called(job) for job in beside["jobs"])
    more = ", …" if beside["count"] > len(beside["jobs"]) else ""
    verb = "fires" if beside["count"] == 1 else "fire"
    return f"{least}{plural(beside['count'], 'other job')} {verb} in that second: {names}{more}"


def _follows(job: Mapping[str, Any]) -> bool:
    return bool(job.get("after")) and job["state"] == "active"


def _why_none(job: Mapping[str, Any]) -> str:
    if not _follows(job):
        return f"none, it is {job['state']}"
    have = "has" if len(job["after"]) == 1 else "have"
    return f"runs when {job['schedule_in_words'].removeprefix('after ')} {have} succeeded"


def _state(job: Mapping[str, Any], zone: str) -> str:
    until = f" until {in_zone(job['paused_until'], zone)}" if job["paused_until"] else ""
    note = f": {job['note']}" if job["note"] else ""
    return f"{job['state']}{until}{note}"


def _paused(version: Mapping[str, Any]) -> str:
    if version["deleted"]:
        return "deleted"
    return (version["note"] or "yes") if version["paused"] else ""


def _ms(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else f"{milliseconds:,} ms"
