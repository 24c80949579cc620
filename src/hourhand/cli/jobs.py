"""`jobs`: create, look at, change and run them. What a job looks like on the screen is `job_view`'s."""

from typing import Annotated, Any

import typer

from hourhand.cli.editor import edited
from hourhand.cli.failures import Usage
from hourhand.cli.fields import OPTIONS, document_of, read_document
from hourhand.cli.job_view import (
    job_columns,
    none_to_come,
    run_columns,
    show_job,
    show_times,
    show_upcoming,
    version_columns,
    with_id,
)
from hourhand.cli.options import Call, command
from hourhand.cli.paging import Cursor, Limit
from hourhand.cli.run_view import watch_wave
from hourhand.cli.text import plural
from hourhand.cli.times import duration_s, in_zone, zone_of
from hourhand.cli.waiting import Timeout, Wait, made_run

JobName = Annotated[str, typer.Argument(metavar="JOB", help="Its id, key, or name if only one has it.")]
JobFile = Annotated[
    str | None, typer.Option("--file", metavar="FILE", help="JSON; - is stdin. Options go first.")
]


Shell = Annotated[
    bool, typer.Option("--shell", help="Run the command at the end, after --; needs workers that allow it.")
]
WithRoots = Annotated[
    bool, typer.Option("--with-roots", help="Give the other roots of its graph the same times at once.")
]
Argv = Annotated[list[str] | None, typer.Argument(metavar="[-- ARGV]", help="The command, with --shell.")]
_SHELL_NOTE = "it runs on workers that were started with --allow-shell, and waits where there is none"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "create", changes=True, extra=OPTIONS)(create)
    command(app, "list")(list_jobs)
    command(app, "show")(show)
    command(app, "update", changes=True, extra=OPTIONS)(update)
    command(app, "edit", changes=True)(edit)
    command(app, "delete", changes=True)(delete)
    command(app, "pause", changes=True)(pause)
    command(app, "resume", changes=True)(resume)
    command(app, "run", changes=True)(run)
    command(app, "skip", changes=True)(skip)
    command(app, "clone", changes=True, extra=OPTIONS)(clone)
    command(app, "next")(next_times)
    command(app, "history")(history)
    command(app, "versions")(versions)


def create(
    call: Call,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A label for people.")] = None,
    argv: Argv = None,
    file: JobFile = None,
    shell: Shell = False,
) -> None:
    """Create a job: NAME, one of --cron, --every, --at, --after, and one of --url, --python, --shell -- ARGV."""
    document = read_document(file) if file else {}
    document = _merged(document, _named(call, document_of(call.extra, shell=shell, argv=argv)))
    if name is not None:
        document["name"] = name
    job = call.client.jobs.create(document, dry_run=call.dry_run)

    def show() -> None:
        call.out.note("would be created:" if call.dry_run else "created")
        call.out.facts([("id", job["job_id"]), ("name", job["name"]), ("schedule", job["schedule_in_words"])])
        show_upcoming(call, job, others=True)
        if job["target"]["type"] == "shell":
            call.out.note(_SHELL_NOTE)

    call.out.document(job, job["job_id"], show)


def list_jobs(
    call: Call,
    state: Annotated[str | None, typer.Option(help="active, paused or completed.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    set_name: Annotated[
        str | None, typer.Option("--set", metavar="NAME", help="Only those applied from this set of files.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="PREFIX", help="Only names that begin so.")] = None,
    failing: Annotated[bool, typer.Option("--failing", help="Only with retries or dead letters.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List jobs, newest first."""
    filters = {"state": state, "tag": tag, "set": set_name, "name": name, "failing": failing}
    page = call.client.jobs.page(limit=limit, cursor=cursor, **filters)
    filtered = any(filters.values()) or cursor
    empty = (
        "nothing matches"
        if filtered
        else "no jobs yet; create one: hourhand jobs create hello --every 10s --url https://example.com"
    )
    call.out.page(page, ident="job_id", columns=job_columns(call.tz), empty=empty)


def show(call: Call, job: JobName) -> None:
    """Show a job: its schedule, policies and what it is up to."""
    document = call.client.jobs.resolve(job)
    call.out.document(document, document["job_id"], lambda: show_job(call, document))


def update(
    call: Call,
    job: JobName,
    argv: Argv = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Another label.")] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="Back to its default; may be repeated.")
    ] = None,
    file: JobFile = None,
    shell: Shell = False,
    with_roots: WithRoots = False,
) -> None:
    """Change what is named, and nothing else."""
    patch = read_document(file) if file else {}
    patch |= dict.fromkeys(unset or ())
    patch = _merged(patch, _named(call, document_of(call.extra, shell=shell, argv=argv)))
    if name is not None:
        patch["name"] = name
    if not patch:
        raise Usage("nothing to change: name at least one field, such as --cron or --timeout")
    found = call.client.jobs.resolve(job)
    changed = call.client.jobs.update(found, patch, with_roots=with_roots, dry_run=call.dry_run)
    _changed(call, changed, "changed")


def edit(call: Call, job: JobName, with_roots: WithRoots = False) -> int | None:
    """Edit a job's document in $EDITOR."""
    found = call.client.jobs.resolve(job)
    document = edited(found)
    if document is None:
        call.out.note("nothing changed")
        return None
    version = found["version"]
    changed = call.client.jobs.replace(
        found, document, version=version, with_roots=with_roots, dry_run=call.dry_run
    )
    _changed(call, changed, "changed")
    return None


def delete(
    call: Call,
    job: JobName,
    cancel_running: Annotated[
        bool, typer.Option("--cancel-running", help="Cancel what runs; else it finishes.")
    ] = False,
) -> None:
    """Delete a job; its history stays."""
    found = call.client.jobs.resolve(job)
    call.confirm(f"Delete {with_id(found)}?")
    answer = call.client.jobs.delete(found, cancel_running=cancel_running, dry_run=call.dry_run)
    verb = "would be deleted" if call.dry_run else "deleted"
    call.out.document(answer, found["job_id"], lambda: call.out.note(f"{with_id(found)} {verb}"))


def pause(
    call: Call,
    job: JobName,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; shown with the job.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="When it goes on by itself.")] = None,
) -> None:
    """Make no runs, until resumed or until a time."""
    found = call.client.jobs.resolve(job)
    _changed(call, call.client.jobs.pause(found, note=note, until=until, dry_run=call.dry_run), "paused")


def resume(call: Call, job: JobName) -> None:
    """Make runs again; what passed while paused is not made up for."""
    found = call.client.jobs.resolve(job)
    _changed(call, call.client.jobs.resume(found, dry_run=call.dry_run), "resumed")


def run(
    call: Call,
    job: JobName,
    wait: Wait = False,
    timeout: Timeout = None,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Run all that follow it after it; --wait is for all of them.")
    ] = False,
) -> int | None:
    """Run a job now, beside its schedule."""
    timeout_s = duration_s(timeout, "--timeout")
    found = call.client.jobs.resolve(job)
    answer = call.client.jobs.run(found, downstream=downstream, dry_run=call.dry_run)
    if downstream:
        verb = "would run" if call.dry_run else "run"
        call.out.note(f"{plural(answer['followed_by'], 'job')} {verb} after it, if it succeeds")
    if downstream and wait and not call.dry_run:
        return watch_wave(call, found, answer["run_id"], timeout_s)
    words = f"{with_id(found)} would run now" if call.dry_run else f"runs as {answer['run_id']}"
    return made_run(call, answer, words, wait=wait, timeout_s=timeout_s)


def skip(
    call: Call,
    job: JobName,
    at: Annotated[
        str | None, typer.Argument(metavar="[TIME]", help="One of its coming times; the next unless given.")
    ] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept with the run.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Let it run after all.")] = False,
) -> None:
    """Let a coming time pass without a run."""
    found = call.client.jobs.resolve(job)
    answer = call.client.jobs.skip(found, at, note=note, undo=undo, dry_run=call.dry_run)
    zone = zone_of(found, call.tz)

    def show() -> None:
        verb = (
            ("would run" if undo else "would be skipped")
            if call.dry_run
            else ("runs" if undo else "is skipped")
        )
        call.out.note(f"{with_id(found)}: {in_zone(answer['at'], zone)} {verb}")
        call.out.facts([("run", answer["run_id"]), ("next", in_zone(answer["next_run"], zone))])

    call.out.document(answer, answer["run_id"], show)


def clone(
    call: Call,
    job: JobName,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Its label; else the same and (copy).")
    ] = None,
    file: JobFile = None,
) -> None:
    """Make another job like this one, with what is named changed; paused unless --no-paused is given."""
    patch = _merged(read_document(file) if file else {}, document_of(call.extra))
    if name is not None:
        patch["name"] = name
    found = call.client.jobs.resolve(job)
    made = call.client.jobs.clone(found, patch, dry_run=call.dry_run)

    def show() -> None:
        call.out.note("would be created:" if call.dry_run else f"created, a copy of {with_id(found)}")
        call.out.facts(
            [
                ("id", made["job_id"]),
                ("name", made["name"]),
                ("state", made["state"]),
                ("schedule", made["schedule_in_words"]),
            ]
        )
        if made["state"] == "paused" and not call.dry_run:
            call.out.note(f"it makes no runs until: hourhand jobs resume {made['job_id']}")

    call.out.document(made, made["job_id"], show)


def next_times(
    call: Call, job: JobName, count: Annotated[int, typer.Option("-n", min=1, help="How many times.")] = 5
) -> None:
    """Print a job's coming times, and what DST does to them."""
    found = call.client.jobs.resolve(job)
    page = call.client.jobs.next(found, n=count)
    empty = none_to_come(found)
    call.out.page(page, ident="at", empty=empty, show=lambda: show_times(call, page["data"], found))


def history(call: Call, job: JobName, limit: Limit = 20, cursor: Cursor = None) -> None:
    """List a job's runs, newest first, the coming and running ones included."""
    found = call.client.jobs.resolve(job)
    page = call.client.jobs.history_page(found, limit=limit, cursor=cursor)
    columns = run_columns(zone_of(found, call.tz))
    empty = f"no runs yet; run it now: hourhand jobs run {found['job_id']} --wait"
    call.out.page(page, ident="run_id", columns=columns, empty=empty)
    for gap in call.client.jobs.missed(found)["data"] if cursor is None else ():
        zone = zone_of(found, call.tz)
        since, until = in_zone(gap["from"], zone), in_zone(gap["to"], zone)
        call.out.note(
            f"missed {gap['missed']} from {since} to {until}; {gap['policy']} ran {gap['ran']} of them"
        )


def versions(call: Call, job: JobName) -> None:
    """List what a job was, and from when to when."""
    found = call.client.jobs.resolve(job)
    page = call.client.jobs.versions(found)
    call.out.page(
        page, ident="version", columns=version_columns(zone_of(found, call.tz)), empty="no versions"
    )


def _changed(call: Call, job: dict[str, Any], verb: str) -> None:
    zone = zone_of(job, call.tz)

    def show() -> None:
        words = f"would be {verb}" if call.dry_run else verb
        call.out.note(f"{with_id(job)} {words}; holds from {in_zone(job.get('effective_from'), zone)} on")
        call.out.facts(
            [
                ("id", job["job_id"]),
                ("version", job["version"]),
                ("state", job["state"]),
                ("note", job["note"]),
                ("until", in_zone(job["paused_until"], zone)),
                ("schedule", job["schedule_in_words"]),
                ("next", in_zone(job["next_fire_time"], zone)),
            ]
        )

    call.out.document(job, job["job_id"], show)


def _named(call: Call, document: dict[str, Any]) -> dict[str, Any]:
    """The document with the jobs that it follows by id, however they were named."""
    if "after" not in document:
        return document
    if not all(one.strip() for one in document["after"]):
        raise Usage("--after: expected a job's id, key or name")
    return {**document, "after": [call.client.jobs.resolve(one)["job_id"] for one in document["after"]]}


def _merged(document: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """What the options say over what the file says, field by field."""
    merged = dict(document)
    for name, value in change.items():
        old = merged.get(name)
        merged[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
