"""`dlq`: dead letters, one or many: look at them, send them back, or discard them."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from hourhand.cli import operations
from hourhand.cli.failures import Usage
from hourhand.cli.job_view import with_id
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.paging import Cursor, Limit
from hourhand.cli.run_view import show_run
from hourhand.cli.text import plural
from hourhand.cli.times import duration_s, in_zone, now, zone_of_run
from hourhand.cli.waiting import Timeout
from hourhand.core.instant import format_instant
from hourhand.errors import NotFound

FILTERS = ("error", "job", "from", "to")

RunIds = Annotated[list[str] | None, typer.Argument(metavar="[RUN…]", help="Ids of the runs.")]
Filter = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="NAME=VALUE", help="error=FINGERPRINT, job=JOB, from=TIME, to=TIME."),
]
Rate = Annotated[
    str | None,
    typer.Option(metavar="50/s", help="How many in a time, as an operation that goes on by itself."),
]
Wait = Annotated[
    bool, typer.Option("--wait", help="With --rate: until it is done; exit 7 if not all could be.")
]
All = Annotated[bool, typer.Option("--all", help="All there are.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "list")(list_letters)
    command(app, "show")(show)
    command(app, "requeue", changes=True)(requeue)
    command(app, "discard", changes=True)(discard)


def list_letters(
    call: Call,
    group_by: Annotated[
        str | None, typer.Option(metavar="error|job", help="Count them by cause or job.")
    ] = None,
    filter: Filter = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List dead letters, newest first, or count them by what they have in common."""
    empty = "no dead letters"
    if group_by is not None:
        page = call.client.dead_letters.groups(group_by)
        call.out.page(page, ident="value", columns=_GROUPS, empty=empty)
        return
    filters = _filter(call, filter)
    page = call.client.dead_letters.page(limit=limit, cursor=cursor, **filters)
    call.out.page(
        page, ident="run_id", columns=_letters(call.tz or "UTC"), empty="none matches" if filters else empty
    )


def show(call: Call, run: Annotated[str, typer.Argument(metavar="RUN", help="Its id.")]) -> None:
    """Show a dead letter with its attempts."""
    letter = call.client.dead_letters.get(run)

    def show() -> None:
        call.out.facts(
            [
                ("job", None if letter.get("run") else with_id({**letter, "name": letter["job_name"]})),
                ("error", letter["error"]),
                ("fingerprint", letter["fingerprint"]),
                ("given up", in_zone(letter["failed_at"], zone_of_run(call, letter["job_id"]))),
                ("tries", letter["tries"]),
            ]
        )
        if letter.get("run"):
            show_run(call, letter["run"])

    call.out.document(letter, letter["run_id"], show)


def requeue(
    call: Call,
    runs: RunIds = None,
    filter: Filter = None,
    everything: All = False,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="And what was skipped because of them.")
    ] = False,
    rate: Rate = None,
    wait: Wait = False,
    timeout: Timeout = None,
) -> int | None:
    """Send dead letters back as the same runs, their tries reset."""
    if rate is not None:
        if downstream:
            raise Usage("--rate goes without --downstream")
        return _at_rate(call, "requeue", _selection(call, runs, filter, everything), rate, wait, timeout)
    send = partial(call.client.dead_letters.requeue, downstream=downstream)
    also = f"what was skipped because of them {'would wait' if call.dry_run else 'waits'} again"
    selection = _selection(call, runs, filter, everything)
    return _change(call, send, "requeue", selection, also if downstream else None)


def discard(
    call: Call,
    runs: RunIds = None,
    filter: Filter = None,
    everything: All = False,
    rate: Rate = None,
    wait: Wait = False,
    timeout: Timeout = None,
) -> int | None:
    """Remove dead letters for good; history keeps the runs."""
    if rate is not None:
        return _at_rate(call, "discard", _selection(call, runs, filter, everything), rate, wait, timeout)
    return _change(
        call, call.client.dead_letters.discard, "discard", _selection(call, runs, filter, everything)
    )


def _at_rate(
    call: Call, action: str, selection: dict[str, Any], rate: str, wait: bool, timeout: str | None
) -> int | None:
    if "filter" not in selection:
        raise Usage("--rate goes with --filter or --all, not with ids of runs")
    timeout_s = duration_s(timeout, "--timeout")
    return operations.begin(call, action, selection["filter"], rate=rate, wait=wait, timeout_s=timeout_s)


def _selection(
    call: Call, runs: list[str] | None, filter: list[str] | None, everything: bool
) -> dict[str, Any]:
    if sum(map(bool, (runs, filter, everything))) != 1:
        raise Usage("say which: ids of runs, --filter NAME=VALUE, or --all")
    if runs:
        return {"runs": runs}
    # What fails anew while this goes on is not meant, and would be requeued for ever.
    return {"filter": {"to": format_instant(now()), **_filter(call, filter)}}


def _filter(call: Call, conditions: list[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for condition in conditions or ():
        name, equals, value = condition.partition("=")
        if not equals or name not in FILTERS:
            raise typer.BadParameter(
                f"expected {'=…, '.join(FILTERS)}=…, got {condition!r}", param_hint="--filter"
            )
        if name == "job":
            name, value = "job_id", call.client.jobs.resolve(value)["job_id"]
        found[name] = value
    return found


def _change(
    call: Call,
    send: Callable[..., dict[str, Any]],
    verb: str,
    selection: dict[str, Any],
    also: str | None = None,
) -> int:
    if "filter" in selection and not call.dry_run and not call.yes:
        found = send(**selection, dry_run=True)
        if found["count"]:
            more = "or more " if found["more"] else ""
            call.confirm(f"{verb.capitalize()} {found['count']:,} {more}dead letters?")
    answer = send(**selection, dry_run=call.dry_run)
    total = answer
    while answer["more"] and answer["count"] and not call.dry_run:
        answer = send(**selection)
        total = {
            **answer,
            "count": total["count"] + answer["count"],
            "run_ids": total["run_ids"] + answer["run_ids"],
        }
        call.out.note(f"{total['count']:,} so far")

    def show() -> None:
        words = f"would {verb}" if call.dry_run else f"{verb}{'d' if verb.endswith('e') else 'ed'}"
        more = " and more" if total["more"] else ""
        call.out.line(f"{words} {plural(total['count'], 'dead letter')}{more}")
        if also and total["count"]:
            call.out.note(also)
        for run_id in total["not_found"]:
            call.out.note(f"not a dead letter: {run_id}")

    if call.out.form.value == "ids":
        for run_id in total["run_ids"]:
            call.out.line(run_id)
    else:
        call.out.document(total, None, show)
    return NotFound.exit_code if total["not_found"] and not total["count"] else 0


def _letters(zone: str) -> tuple[Column, ...]:
    return (
        Column(head="RUN", cell=lambda letter: letter["run_id"]),
        Column(head="JOB", cell=lambda letter: letter["job_name"], width=32),
        Column(head="GIVEN UP", cell=lambda letter: in_zone(letter["failed_at"], zone)),
        Column(head="TRIES", cell=lambda letter: letter["tries"]),
        Column(head="FINGERPRINT", cell=lambda letter: letter["fingerprint"]),
        Column(head="ERROR", cell=lambda letter: letter["error"], width=60),
    )


_GROUPS = (
    Column(head="COUNT", cell=lambda group: f"{group['count']:,}"),
    Column(head="WHAT", cell=lambda group: group["value"]),
    Column(head="NEWEST JOB", cell=lambda group: group["sample"]["job_name"], width=32),
    Column(head="NEWEST ERROR", cell=lambda group: group["sample"]["error"], width=60),
)
