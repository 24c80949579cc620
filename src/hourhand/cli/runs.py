"""`runs`: list, look at, read the log of, watch, cancel, repeat and report on them."""

import os
from typing import Annotated

import typer

from hourhand.cli.failures import Usage
from hourhand.cli.fields import decoded
from hourhand.cli.job_view import run_columns
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.paging import Cursor, Limit, OfJob
from hourhand.cli.run_view import show_log, show_run, watch
from hourhand.cli.times import duration_s, now
from hourhand.cli.waiting import Timeout, Wait, made_run
from hourhand.core.instant import SECOND_US, format_instant

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Its id, such as J-…@20261116T080000Z.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "list")(list_runs)
    command(app, "show")(show)
    command(app, "logs")(logs)
    command(app, "watch")(watch_run)
    command(app, "cancel", changes=True)(cancel)
    command(app, "rerun", changes=True)(rerun)
    command(app, "report", changes=True)(report)


def list_runs(
    call: Call,
    job: OfJob = None,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help="Such as FAILED or RUNNING; may be repeated.")
    ] = None,
    since: Annotated[str, typer.Option(metavar="1h", help="How far back, unless --from is given.")] = "1h",
    from_time: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Ended since.")] = None,
    to_time: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Ended before.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List finished runs across jobs, newest first."""
    back_us = int((duration_s(since, "--since") or 0) * SECOND_US)
    window = {"from": from_time or format_instant(now() - back_us), "to": to_time}
    job_id = call.client.jobs.resolve(job)["job_id"] if job else None
    filters = {**window, "job_id": job_id, "state": [one.upper() for one in state or ()]}
    page = call.client.runs.page(limit=limit, cursor=cursor, **filters)
    columns: tuple[Column, ...] = run_columns(call.tz or "UTC")
    empty = "no run ended in that time; look further back with --since 24h"
    call.out.page(page, ident="run_id", columns=columns, empty=empty)


def show(call: Call, run: RunId) -> None:
    """Show a run and its attempts."""
    document = call.client.runs.get(run)
    call.out.document(document, document["run_id"], lambda: show_run(call, document))


def logs(
    call: Call,
    run: RunId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="As it is written, until the run ends.")
    ] = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only of this attempt; all of them unless given.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Byte for byte, with what a terminal would act on.")
    ] = False,
) -> None:
    """Print what a run said: the output of a command, or what a function logged."""
    show_log(call, run, follow=follow, attempt=attempt, raw=raw)


def watch_run(
    call: Call,
    run: RunId,
    timeout: Timeout = None,
) -> int:
    """Wait for a run and print each attempt; exit 7 if it does not succeed."""
    return watch(call, run, duration_s(timeout, "--timeout"))


def report(
    call: Call,
    run: RunId,
    attempt: Annotated[int, typer.Option(min=1, metavar="N", help="Hourhand-Attempt of the call.")],
    failed: Annotated[str | None, typer.Option(metavar="ERROR", help="It failed, and why.")] = None,
    final: Annotated[bool, typer.Option("--final", help="With --failed: do not try again.")] = False,
    progress: Annotated[float | None, typer.Option(metavar="0.4", help="It is so far, of 1.")] = None,
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="With --progress: in words.")] = None,
    extend: Annotated[
        str | None, typer.Option(metavar="5m", help="It may take so long from now, up to its timeout.")
    ] = None,
    result: Annotated[str | None, typer.Option(metavar="JSON", help="What it came to.")] = None,
) -> None:
    """Report on an attempt that was answered with 202: it succeeded, unless an option says otherwise.

    The attempt's token is read from HOURHAND_REPORT_TOKEN.
    """
    token = os.environ.get("HOURHAND_REPORT_TOKEN", "")
    if not token:
        raise Usage("set HOURHAND_REPORT_TOKEN to the Hourhand-Report-Token that came with the call")
    under_way = progress is not None or message is not None or extend is not None
    if failed is not None and under_way:
        raise Usage("--failed ends the attempt, --progress, --message and --extend do not: choose")
    outcome = "failed" if failed is not None else "progress" if under_way else "succeeded"
    document = call.client.runs.report(
        run,
        attempt=attempt,
        token=token,
        outcome=outcome,
        result=None if result is None else decoded(result, "--result"),
        error=failed,
        retryable=False if final else None,
        progress=progress,
        message=message,
        extend_s=duration_s(extend, "--extend"),
        dry_run=call.dry_run,
    )

    def show() -> None:
        verb = "would be" if call.dry_run else "is"
        until = f", to be reported until {document['deadline_at']}" if document["deadline_at"] else ""
        again = " (reported before)" if document["repeated"] else ""
        call.out.note(f"{document['run_id']} {verb} {document['status']}{until}{again}")

    call.out.document(document, document["run_id"], show)


def rerun(
    call: Call,
    run: RunId,
    wait: Wait = False,
    timeout: Timeout = None,
) -> int | None:
    """Repeat a run that has ended, as a new run of the job as it is now."""
    timeout_s = duration_s(timeout, "--timeout")
    answer = call.client.runs.rerun(run, dry_run=call.dry_run)
    words = f"{run} would be repeated" if call.dry_run else f"runs again as {answer['run_id']}"
    return made_run(call, answer, words, wait=wait, timeout_s=timeout_s)


def cancel(call: Call, run: RunId) -> None:
    """Cancel a run, or ask its worker to."""
    document = call.client.runs.cancel(run, dry_run=call.dry_run)

    def show() -> None:
        if call.dry_run:
            call.out.note(f"{document['run_id']} would be cancelled; it is {document['status']}")
        elif document["status"] == "CANCELLED":
            call.out.note(f"{document['run_id']} is cancelled")
        else:
            call.out.note(f"{document['run_id']} is {document['status']}; its worker is asked to cancel it")

    call.out.document(document, document["run_id"], show)
