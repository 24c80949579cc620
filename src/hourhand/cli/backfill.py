"""`backfill`: run a job for times that have passed; look at it, pause, resume and cancel it."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hourhand.cli.failures import NOT_SUCCEEDED, waiting_for
from hourhand.cli.job_view import job_of, with_id
from hourhand.cli.jobs import JobName
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column, Form
from hourhand.cli.paging import Cursor, Limit, OfJob
from hourhand.cli.progress import Progress
from hourhand.cli.times import day_or_time, duration_s, in_zone, zone_of
from hourhand.cli.waiting import Timeout

BackfillId = Annotated[str, typer.Argument(metavar="BACKFILL", help="Its id, such as B-….")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "create", changes=True)(create)
    command(app, "list")(list_backfills)
    command(app, "show")(show)
    command(app, "pause", changes=True)(pause)
    command(app, "resume", changes=True)(resume)
    command(app, "cancel", changes=True)(cancel)


def create(
    call: Call,
    job: JobName,
    from_time: Annotated[
        str, typer.Option("--from", metavar="TIME", help="The first time; a date is its midnight.")
    ],
    to_time: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="The last time, or a date; now unless given.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="50/s", help="How many runs a time; else as fast as they end.")
    ] = None,
    max_open: Annotated[
        int | None, typer.Option(metavar="N", help="How many of its runs may be open at once; 100.")
    ] = None,
    order: Annotated[str | None, typer.Option(metavar="oldest|newest", help="Which come first.")] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; shown with it.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also before history begins, where what ran is not known.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until it is done; exit 7 if not all of it succeeded.")
    ] = False,
    timeout: Timeout = None,
) -> int | None:
    """Run a job for the times of a range that have no run yet, behind live traffic."""
    timeout_s = duration_s(timeout, "--timeout")
    found = call.client.jobs.resolve(job)
    asked = {"rate": rate, "max_open": max_open, "order": order, "note": note, "force": force or None}
    zone = zone_of(found, call.tz)
    window = {"from": day_or_time(from_time, zone), "to": day_or_time(to_time, zone)}
    document = {"job": found["job_id"], **window, **asked}
    given = {name: value for name, value in document.items() if value is not None}
    made = call.client.backfills.create(given, dry_run=call.dry_run)
    if wait and not call.dry_run:
        return _watch(call, made, timeout_s)

    def show() -> None:
        words = "would run" if call.dry_run else "runs"
        since, until = in_zone(made["from"], zone), in_zone(made["to"], zone)
        call.out.note(
            f"{words} {made['total']:,} times from {since} to {until}; those with a run are left out"
        )
        if not call.dry_run:
            call.out.line(made["backfill_id"])

    call.out.document(made, made["backfill_id"], show)
    return None


def list_backfills(
    call: Call,
    job: OfJob = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List backfills, newest first."""
    job_id = call.client.jobs.resolve(job)["job_id"] if job else None
    page = call.client.backfills.page(limit=limit, cursor=cursor, job_id=job_id)
    zone = call.tz or "UTC"
    columns = (
        Column(head="BACKFILL", cell=lambda one: one["backfill_id"]),
        Column(head="JOB", cell=lambda one: one["job_id"]),
        Column(head="STATE", cell=lambda one: one["state"]),
        Column(head="FROM", cell=lambda one: in_zone(one["from"], zone)),
        Column(head="TO", cell=lambda one: in_zone(one["to"], zone)),
        Column(head="DONE", cell=lambda one: f"{one['done']:,} of {one['total']:,}"),
        Column(head="FAILED", cell=lambda one: one["failed"] or None),
        Column(head="NOTE", cell=lambda one: one["reason"] or one["note"] or "", width=60),
    )
    call.out.page(page, ident="backfill_id", columns=columns, empty="no backfills")


def show(call: Call, backfill: BackfillId) -> None:
    """Show a backfill and how far it is."""
    found = call.client.backfills.get(backfill)
    call.out.document(found, found["backfill_id"], lambda: _show(call, found))


def pause(call: Call, backfill: BackfillId) -> None:
    """Make no more runs; those that were made go on."""
    _changed(call, call.client.backfills.pause(backfill, dry_run=call.dry_run), "paused")


def resume(call: Call, backfill: BackfillId) -> None:
    """Go on with the times it was made for."""
    _changed(call, call.client.backfills.resume(backfill, dry_run=call.dry_run), "resumed")


def cancel(call: Call, backfill: BackfillId) -> None:
    """Remove its runs that nobody has taken; what executes goes on to its end."""
    _changed(call, call.client.backfills.cancel(backfill, dry_run=call.dry_run), "cancelled")


def _changed(call: Call, backfill: Mapping[str, Any], verb: str) -> None:
    def show() -> None:
        call.out.note(f"{backfill['backfill_id']} {'would be ' if call.dry_run else 'is '}{verb}")
        _show(call, backfill)

    call.out.document(backfill, backfill["backfill_id"], show)


def _show(call: Call, backfill: Mapping[str, Any]) -> None:
    job = job_of(call, backfill["job_id"])
    zone = zone_of(job, call.tz)
    call.out.facts(
        [
            ("backfill", backfill["backfill_id"]),
            ("job", with_id(job)),
            ("state", backfill["state"]),
            ("reason", backfill["reason"]),
            ("note", backfill["note"]),
            ("from", in_zone(backfill["from"], zone)),
            ("to", in_zone(backfill["to"], zone)),
            ("rate", backfill["rate"]),
            ("max open", backfill["max_open"]),
            ("order", backfill["order"]),
            ("done", progress(backfill)),
            *((name.replace("_", " "), backfill[name] or None) for name in _COUNTS),
            ("finished", in_zone(backfill["finished_at"], zone)),
        ]
    )


def progress(backfill: Mapping[str, Any]) -> str:
    """How far it is, in one line."""
    share = 100 * backfill["done"] // max(1, backfill["total"])
    return f"{backfill['done']:,} of {backfill['total']:,} ({share} %)"


def _watch(call: Call, made: Mapping[str, Any], timeout_s: float | None) -> int:
    """Tell of its progress until it is over; 7 if not all of it succeeded."""
    last, seen = made, 0
    ident = made["backfill_id"]
    with (
        waiting_for(ident, f"hourhand backfill show {ident}"),
        Progress("ran", made["total"], wanted=call.out.form is Form.PEOPLE) as bar,
    ):
        for last in call.client.backfills.watch(made, timeout_s=timeout_s):
            bar.add(last["done"] - seen)
            seen = last["done"]
            if call.out.form is Form.LINES:
                call.out.document(last, None, lambda: None)
            elif not bar.shows:
                call.out.note(f"{last['state']}: {progress(last)}, {last['failed']:,} failed")
    if call.out.form is not Form.LINES:
        call.out.document(last, last["backfill_id"], lambda: _show(call, last))
    return 0 if last["state"] == "done" and not (last["failed"] or last["cancelled"]) else NOT_SUCCEEDED


_COUNTS = ("open", "succeeded", "failed", "skipped", "cancelled", "already_there")
