"""`audit`: whether every time that was promised is accounted for."""

from typing import Annotated, Any

import typer

from hourhand.cli.failures import FINDINGS
from hourhand.cli.options import Call, command
from hourhand.cli.references import known_job
from hourhand.cli.text import clean, plural
from hourhand.cli.times import in_zone, moment, now
from hourhand.core.instant import format_instant

_TERMS = ("succeeded", "skipped", "failed", "cancelled", "waiting")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "audit")(audit)


def audit(
    call: Call,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Nominal times from here on, such as 'yesterday 09:00'; an hour before --to.",
        ),
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="Up to here; now unless given.")] = None,
    job: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="Only of this job: id, key or name; a deleted one by its id."),
    ] = None,
    by_job: Annotated[
        bool, typer.Option("--by-job", help="Each job's own equation too, of the first 1,000 jobs.")
    ] = False,
) -> int:
    """Hold what ran against what was expected; exit code 8 where something does not fit."""
    found = call.client.audits.run(
        from_=_given(call, from_, "--from"),
        to=_given(call, to, "--to"),
        job=None if job is None else known_job(call, job),
        by_job=by_job,
    )
    call.out.document(found, None, lambda: _show(call, found, by_job))
    if call.out.form.value == "ids":
        for finding in found["findings"]:
            call.out.line(finding["run_id"])
    return FINDINGS if any(found["kinds"].values()) or not found["complete"] else 0


def equation(found: dict[str, Any]) -> str:
    """Such as `expected 1,440 = 1,432 succeeded + 6 skipped + 2 waiting`."""
    terms = [f"{found[name]:,} {name}" for name in _TERMS if found[name]] or ["0"]
    if found["lost"]:
        terms.append(f"{found['lost']:,} LOST")
    return f"expected {found['expected']:,} = {' + '.join(terms)}"


def _given(call: Call, text: str | None, option: str) -> str | None:
    return None if text is None else format_instant(moment(text, call.tz or "UTC", now(), option))


def _show(call: Call, found: dict[str, Any], by_job: bool) -> None:
    zone = call.tz or "UTC"
    call.out.note(
        f"{in_zone(found['from'], zone)} to {in_zone(found['to'], zone)}, {plural(found['jobs_checked'], 'job')}"
    )
    call.out.line(equation(found))
    if found["missed"]:
        call.out.line(f"of the skipped, {found['missed']:,} that nobody planned in time (an outage)")
    if found["beside"]:
        call.out.line(f"beside the schedule: {plural(found['beside'], 'run')}")
    if by_job:
        for one in found["by_job"]:
            call.out.line(f"{_name(one)}: {equation(one)}")
        if found["jobs_checked"] > len(found["by_job"]):
            call.out.note(f"of {plural(found['jobs_checked'], 'job')} the first {len(found['by_job']):,}")
    for finding in found["findings"]:
        at = in_zone(finding["scheduled_at"], zone)
        call.out.line(
            f"{finding['kind'].upper()}  {_name(finding)}  {at}  {finding['words']}  ({finding['run_id']})"
        )
    total = sum(found["kinds"].values())
    if total > len(found["findings"]):
        call.out.line(f"and {total - len(found['findings']):,} more findings")
    for what in found["partial"]:
        call.out.note(f"{what} did not answer, and was not audited")
    if found["unread"]:
        call.out.note(f"too much to be audited: {', '.join(found['unread'][:5])}")


def _name(one: dict[str, Any]) -> str:
    return clean(one["job_name"] or one["job_id"])
