"""What applying does, as people see it: a line per job, the fields that differ, the times that move."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hourhand.cli.files.changing import Plan, differs
from hourhand.cli.files.documents import FileJob
from hourhand.cli.files.fires import fires_in_all, fires_in_words, summary_of_fires, times_in_words
from hourhand.cli.options import Call
from hourhand.cli.output import wants_colour
from hourhand.cli.text import clean, plural, shortened
from hourhand.cli.times import in_zone
from hourhand.core.url import masked_url

MOST_SHOWN = 200  # jobs of one kind
VALUE_WIDTH = 60
_SECRET = ("target.headers", "target.env")  # fields whose values are
_COLOURS = {"+": "32", "~": "33", "-": "31"}


def show_plan(call: Call, plan: Plan) -> None:
    """Every job that is created, changed or deleted; what stays is only counted."""
    jobs = list(plan.jobs)
    for action, sign in (("created", "+"), ("changed", "~")):
        fitting = [job for job in jobs if plan.results[job.key]["action"] == action]
        for job in fitting[:MOST_SHOWN]:
            for line in _lines(call, sign, job, by_key(job, plan), plan.fires.get(job.key)):
                call.out.line(line)
        _more(call, sign, len(fitting))
    for surplus in plan.surplus[:MOST_SHOWN]:
        told = fires_in_words(plan.fires.get(str(surplus["job_id"])))
        fires = f": fires {told}" if told else ""
        call.out.line(_coloured("-", f"- {clean(_called(surplus))}{fires}"))
    _more(call, "-", len(plan.surplus))
    for job in jobs:
        if plan.results[job.key].get("paused") and job.document.get("paused") is False:
            key = clean(job.key)
            call.out.note(f"{key} stays paused; a person resumes it: hourhand jobs resume {key}")
    if plan.count("passed"):
        call.out.note(f"{plural(plan.count('passed'), 'one-time job')} not created: the time is over")
    if plan.changes:
        call.out.line(summary_of_fires(fires_in_all(plan.fires.values())))


def by_key(job: FileJob, plan: Plan) -> Mapping[str, Any]:
    """What the server says of a job, with those that it follows by key, as the file has them."""
    result, after = plan.results[job.key], job.document.get("after")
    if not isinstance(after, list):
        return result
    keys = {one["job_id"]: key for key, one in plan.results.items() if one.get("job_id")}
    changes = [
        {**one, "before": [keys.get(parent, parent) for parent in one["before"] or ()], "after": after}
        if one["field"] == "after"
        else one
        for one in result.get("changes") or ()
    ]
    return {**result, "schedule_in_words": f"after {', '.join(after)}", "changes": changes}


def summary(plan: Plan, *, dry_run: bool) -> str:
    """One line for all of it."""
    passed = f"passed {plan.count('passed'):,}, " if plan.count("passed") else ""
    counts = (
        f"created {plan.count('created'):,}, changed {plan.count('changed'):,}, "
        f"unchanged {plan.count('unchanged'):,}, {passed}pruned {len(plan.surplus):,}"
    )
    if not dry_run:
        return counts
    return f"would be: {counts}" if plan.changes else f"no changes: {counts}"


def plan_document(plan: Plan, *, dry_run: bool) -> dict[str, Any]:
    """All of it as JSON; what is unchanged is only counted."""
    document: dict[str, Any] = {
        action: plan.count(action) for action in ("created", "changed", "unchanged", "passed", "failed")
    }
    document["pruned"] = len(plan.surplus)
    document["fires"] = fires_in_all(plan.fires.values())
    document["jobs"] = [
        {
            "key": job.key,
            "file": job.file,
            "line": job.line,
            **{name: value for name, value in result.items() if name not in ("index", "key")},
            "fires": plan.fires.get(job.key),
        }
        for job in plan.jobs
        if differs(result := plan.results[job.key])
    ]
    document["jobs"] += [
        {
            "key": job["key"],
            "action": "pruned",
            "job_id": job["job_id"],
            "fires": plan.fires.get(str(job["job_id"])),
        }
        for job in plan.surplus
    ]
    return {**document, "dry_run": True} if dry_run else document


def _lines(
    call: Call, sign: str, job: FileJob, result: Mapping[str, Any], fires: Mapping[str, Any] | None
) -> Iterator[str]:
    zone = call.tz or result.get("tz")
    after = result.get("next_after") or ()
    if sign == "+":
        coming = f"; next {in_zone(after[0], zone)}" if after else "; paused" if result.get("paused") else ""
        told = fires_in_words(fires)
        coming += f"; fires {told}" if told else ""
        yield _coloured(sign, f"+ {clean(job.key)}: {clean(result['schedule_in_words'])}{coming}")
        return
    yield _coloured(sign, f"~ {clean(job.key)}")
    changes = [
        (one["field"], _shown(one["field"], one["before"]), _shown(one["field"], one["after"]))
        for one in result.get("changes") or ()
    ]
    before = result.get("next_before") or ()
    if list(before) != list(after):
        changes.append(("next", _times(before, zone), _times(after, zone)))
    width = max((len(name) for name, _, _ in changes), default=0)
    for name, was, becomes in changes:
        yield f"    {clean(name):<{width}}  {was} -> {becomes}"
    if told := fires_in_words(fires):
        yield f"    {'fires':<{width}}  {told}"
        for times in times_in_words(fires, zone):
            yield f"    {'':<{width}}    {times}"


def _times(times: Any, zone: str | None) -> str:
    return f"{in_zone(times[0], zone)}{' …' if len(times) > 1 else ''}" if times else "none"


def _shown(field: str, value: Any) -> str:
    """A value on one line; pipelines keep what is printed here, so nothing secret is."""
    if value is None:
        return "–"
    if field.startswith(_SECRET):
        return "***"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shortened(clean(masked_url(text) if field == "target.url" else text), VALUE_WIDTH)


def _called(job: Mapping[str, Any]) -> str:
    return str(job["key"] or job["name"] or job["job_id"])


def _more(call: Call, sign: str, count: int) -> None:
    if count > MOST_SHOWN:
        call.out.line(_coloured(sign, f"{sign} and {count - MOST_SHOWN:,} more; --json has all"))


def _coloured(sign: str, text: str) -> str:
    return f"\x1b[{_COLOURS[sign]}m{text}\x1b[0m" if wants_colour(sys.stdout) else text
