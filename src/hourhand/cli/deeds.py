"""`deeds`: who did what."""

from typing import Annotated

import typer

from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.paging import Cursor, Limit
from hourhand.cli.references import known_job
from hourhand.cli.times import day_or_time, in_zone
from hourhand.core.access import EVERY_TENANT


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "deeds")(deeds)


def deeds(
    call: Call,
    job: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="Only to this job: id, key or name; a deleted one by its id."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="WHO",
            help="Only by this one, as WHO shows them: a token with its id, such as ci:T-0d3x8m2k7q1vt.",
        ),
    ] = None,
    action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="Only this, such as job.delete, or job.* for all.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="At this time or after; or a date.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="Before this time; or a date.")] = None,
    system: Annotated[
        bool, typer.Option("--system", help="What belongs to no tenant, such as tokens of who runs it all.")
    ] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List who did what, newest first, with the version that each change of a job made."""
    zone = call.tz or "UTC"
    filters = {
        "job_id": None if job is None else known_job(call, job)["job_id"],
        "subject": by,
        "action": action,
        "from": day_or_time(from_, zone),
        "to": day_or_time(to, zone),
        "tenant": EVERY_TENANT if system else None,
    }
    page = call.client.deeds.page(limit=limit, cursor=cursor, **filters)
    columns = (
        Column(head="WHEN", cell=lambda one: in_zone(one["at"], zone)),
        Column(head="WHO", cell=lambda one: one["subject"], width=40),
        Column(head="VIA", cell=lambda one: one["via"]),
        Column(head="ACTION", cell=lambda one: one["action"]),
        Column(head="WHAT", cell=lambda one: one["what"], width=60),
        Column(head="VERSION", cell=lambda one: one["version"]),
        Column(head="COUNT", cell=lambda one: one["count"]),
        Column(head="NOTE", cell=lambda one: one["note"] or "", width=60),
    )
    call.out.page(page, ident="what", columns=columns, empty="nobody did anything that is still known")
