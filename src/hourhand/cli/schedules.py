"""`next` and `cron check`: schedules looked at without a server."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from hourhand.cli.failures import FINDINGS
from hourhand.cli.options import Call, accept_globals, command
from hourhand.cli.text import plural
from hourhand.cli.times import instant, now, weekday

MOST_TIMES = 10_000


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "next")(next_times)
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    accept_globals(group, "Cron expressions.")
    command(group, "check")(check)
    app.add_typer(group, name="cron")


def next_times(
    call: Call,
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="Such as '0 9 * * mon-fri' or @daily.")],
    count: Annotated[int, typer.Option("-n", min=1, max=MOST_TIMES, help="How many times.")] = 5,
    gap: Annotated[str, typer.Option(help="A time that DST drops: after, skip or shift.")] = "after",
    fold: Annotated[str, typer.Option(help="A time that DST repeats: auto, first, second, both.")] = "auto",
    after: Annotated[str | None, typer.Option(metavar="TIME", help="From when on; now unless given.")] = None,
) -> None:
    """Print the next times of a cron expression, and what DST moves or drops."""
    from hourhand.core.instant import format_instant
    from hourhand.core.schedule import parse_cron
    from hourhand.core.schedule.preview import preview

    rule = parse_cron(expression, tz=call.tz or "UTC", gap=gap, fold=fold)
    after_at = now() if after is None else instant(after, "--after")
    occurrences = preview(rule, after_at, count)
    rows: list[dict[str, Any]] = [
        {"at": format_instant(one.at), "local": one.local, "fires": one.fires, "note": one.note}
        for one in occurrences
    ]
    page = {"expression": expression, "tz": rule.zone, "schedule_in_words": rule.describe(), "data": rows}
    call.out.note(rule.describe())
    call.out.page(page, ident="local", show=_times_printer(call, rows), empty="it never fires again")


def check(
    call: Call,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="JSON lines of vectors.")
    ],
) -> int:
    """Hold a file of cron vectors against the engine, and print what differs."""
    from hourhand.core.schedule import check_vectors

    with file.open(encoding="utf-8", errors="replace") as lines:
        report = check_vectors(lines)
    document = {
        "vectors": report.lines,
        "hold": report.held,
        "differ": len(report.differences),
        "differences": [
            {"line": one.line, "expression": one.expression, "words": one.words} for one in report.differences
        ],
    }

    def show() -> None:
        for one in report.differences:
            call.out.line(str(one))
        call.out.line(report.summary)

    call.out.document(document, None, show)
    return FINDINGS if report.differences else 0


def _times_printer(call: Call, rows: list[dict[str, Any]]) -> Callable[[], None]:
    def show() -> None:
        for row in rows:
            sign = "" if row["fires"] else "–  "
            note = f"  {row['note']}" if row["note"] else ""
            call.out.line(f"{sign}{row['local']}  {weekday(row['local'])}{note}")
        dropped = sum(not row["fires"] for row in rows)
        if dropped:
            call.out.note(f"{plural(dropped, 'time')} marked – will not fire")

    return show
