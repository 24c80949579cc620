"""`tail`: what happens, line by line as it happens; goes on after the last event when the connection breaks."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hourhand.cli.options import Call, command
from hourhand.cli.output import Form
from hourhand.cli.text import clean, plural, shortened
from hourhand.cli.times import in_zone

NAME_WIDTH = 24
WORDS_WIDTH = 100
_SIGNS = {
    "run.succeeded": "✓",
    "run.failed": "✗",
    "run.retrying": "✗",
    "run.skipped": "–",
    "run.cancelled": "–",
    "run.progress": "…",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "tail")(tail)


def tail(
    call: Call,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Such as run.* or job.paused; may be repeated."),
    ] = None,
    job: Annotated[str | None, typer.Option(metavar="JOB", help="Only of one job.")] = None,
    after: Annotated[
        str | None, typer.Option(metavar="EVENT", help="Go on after this event, of the last 5 minutes.")
    ] = None,
    count: Annotated[int | None, typer.Option("-n", min=1, help="End after so many events.")] = None,
) -> None:
    """Print what happens to runs and jobs as it happens, until Ctrl-C; --jsonl has the id to go on after."""
    job_id = call.client.jobs.resolve(job)["job_id"] if job else None
    told = ",".join(types) if types else None
    seen = 0
    for event in call.client.events(types=told, job_id=job_id, after=after, broken=_broken):
        _show(call, event)
        seen += event["type"] not in ("reset", "stats")
        if count is not None and seen >= count:
            return


def _broken(words: str) -> None:
    sys.stderr.write(clean(f"connection lost: {words}; trying again") + "\n")


def _show(call: Call, event: Mapping[str, Any]) -> None:
    match call.out.form:
        case Form.JSON | Form.LINES:
            call.out.text(_one_line(event))
        case Form.IDS:
            ident = event.get("run_id") or event.get("job_id")
            if ident:
                call.out.text(f"{ident}\n")
        case Form.PEOPLE if event["type"] == "reset":
            call.out.note("some events are missing: too many for this connection, or too long ago")
        case Form.PEOPLE:
            call.out.text(clean(_in_words(event, call.tz)) + "\n")


def _one_line(event: Mapping[str, Any]) -> str:
    import msgspec

    return msgspec.json.encode(event).decode() + "\n"


def _in_words(event: Mapping[str, Any], tz: str | None) -> str:
    if event["type"] == "stats":
        parts = [f"{count:,} {kind}" for kind, count in sorted(event["counts"].items())]
        return f"{', '.join(parts)} in a second; {plural(event['dropped'], 'event')} not shown one by one"
    data = event["data"]
    local = in_zone(event["at"], tz) or ""
    words = shortened(data.get("error") or data.get("reason") or data.get("message") or "", WORDS_WIDTH)
    told: list[str | None] = [
        event["type"].partition(".")[2],
        f"{data['lag_ms']:,} ms late" if data.get("lag_ms") is not None else None,
        f"took {data['took_ms']:,} ms" if data.get("took_ms") is not None else None,
        f"{data['progress']:.0%}" if data.get("progress") is not None else None,
        f"version {data['version']}" if event["run_id"] is None and data.get("version") else None,
        words,
        event["run_id"],
    ]
    sign = _SIGNS.get(event["type"], "·")
    name = shortened(data.get("name") or event["job_id"], NAME_WIDTH)
    return f"{local[11:]} {sign} {name:<{NAME_WIDTH}}  {', '.join(filter(None, told))}"
