"""`operations`: one action on all jobs or dead letters that match; look at it, watch it, cancel it."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hourhand.cli.failures import NOT_SUCCEEDED, Usage, waiting_for
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column, Form
from hourhand.cli.paging import Cursor, Limit
from hourhand.cli.progress import Progress
from hourhand.cli.times import duration_s, in_zone
from hourhand.cli.waiting import Timeout

OperationId = Annotated[str, typer.Argument(metavar="OPERATION", help="Its id, such as O-….")]
_SWITCHES = {"true": True, "false": False}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "create", changes=True)(create)
    command(app, "list")(list_operations)
    command(app, "show")(show)
    command(app, "cancel", changes=True)(cancel)


def create(
    call: Call,
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help="pause, resume, run, delete; requeue, discard.")
    ],
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="NAME=VALUE",
            help="Jobs by state, tag, set, name (its beginning), failing; dead letters by job_id, error, from, to.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them, without a condition.")] = False,
    expect: Annotated[
        int | None, typer.Option(metavar="N", help="Refuse where more than so many match.")
    ] = None,
    rate: Annotated[str | None, typer.Option(metavar="50/s", help="How many in a time.")] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Why.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until it is done; exit 7 if something could not be done.")
    ] = False,
    timeout: Timeout = None,
) -> int | None:
    """Do one thing with everything that matches, counted first."""
    timeout_s = duration_s(timeout, "--timeout")
    chosen = _filter(conditions or [])
    if not chosen and not everything:
        raise Usage("name at least one --filter, or --all for all of them")
    return begin(call, action, chosen, expect=expect, rate=rate, note=note, wait=wait, timeout_s=timeout_s)


def begin(
    call: Call,
    action: str,
    chosen: Mapping[str, Any],
    *,
    expect: int | None = None,
    rate: str | None = None,
    note: str | None = None,
    wait: bool = False,
    timeout_s: float | None = None,
) -> int | None:
    """Count what matches, ask, and begin; the exit code once it is over, where that is waited for."""
    ask = call.client.operations
    seen = ask.create(action, chosen, expected_count=expect, rate=rate, note=note, dry_run=True)
    if call.dry_run:
        call.out.document(seen, None, lambda: call.out.line(f"would {action} {_count(seen)}"))
        return None
    call.confirm(f"{action.capitalize()} {_count(seen)}?")
    expected = expect if expect is not None else (seen["matched"] if seen["matched_is_exact"] else None)
    made = ask.create(action, chosen, expected_count=expected, rate=rate, note=note)
    if wait:
        return _watch(call, made, timeout_s)

    def tell() -> None:
        call.out.note(f"{action}: {_count(made)}; hourhand operations show {made['operation_id']}")
        call.out.line(made["operation_id"])

    call.out.document(made, made["operation_id"], tell)
    return None


def list_operations(call: Call, limit: Limit = 50, cursor: Cursor = None) -> None:
    """List operations, newest first."""
    page = call.client.operations.page(limit=limit, cursor=cursor)
    zone = call.tz or "UTC"
    columns = (
        Column(head="OPERATION", cell=lambda one: one["operation_id"]),
        Column(head="ACTION", cell=lambda one: one["action"]),
        Column(head="FILTER", cell=lambda one: _words(one["filter"]), width=40),
        Column(head="STATE", cell=lambda one: one["state"]),
        Column(head="DONE", cell=progress),
        Column(head="FAILED", cell=lambda one: one["failed"] or None),
        Column(head="BY", cell=lambda one: one["by"]),
        Column(head="ASKED", cell=lambda one: in_zone(one["created_at"], zone)),
    )
    call.out.page(page, ident="operation_id", columns=columns, empty="no operations")


def show(call: Call, operation: OperationId) -> None:
    """Show an operation and how far it is."""
    found = call.client.operations.get(operation)
    call.out.document(found, found["operation_id"], lambda: _show(call, found))


def cancel(call: Call, operation: OperationId) -> None:
    """End an operation where it is; what is done stays done."""
    ended = call.client.operations.cancel(operation, dry_run=call.dry_run)

    def tell() -> None:
        call.out.note(f"{ended['operation_id']} {'would be' if call.dry_run else 'is'} cancelled")
        _show(call, ended)

    call.out.document(ended, ended["operation_id"], tell)


def progress(operation: Mapping[str, Any]) -> str:
    """How far it is, in one line."""
    of = f"{operation['matched']:,}" + ("" if operation["matched_is_exact"] else " or more")
    return f"{operation['done'] + operation['left_alone']:,} of {of}"


def _filter(conditions: list[str]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for text in conditions:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise Usage(f"--filter: expected NAME=VALUE, got {text!r}")
        chosen[name] = _SWITCHES.get(value, value)
    return chosen


def _count(seen: Mapping[str, Any]) -> str:
    nouns = ("dead letter", "dead letters") if seen["action"] in ("requeue", "discard") else ("job", "jobs")
    least = "" if seen["matched_is_exact"] else "at least "
    return f"{least}{seen['matched']:,} {nouns[seen['matched'] != 1]}"


def _words(chosen: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in chosen.items()) or "all"


def _show(call: Call, operation: Mapping[str, Any]) -> None:
    zone = call.tz or "UTC"
    call.out.facts(
        [
            ("operation", operation["operation_id"]),
            ("action", operation["action"]),
            ("filter", _words(operation["filter"])),
            ("state", operation["state"]),
            ("rate", operation["rate"]),
            ("note", operation["note"]),
            ("by", operation["by"]),
            ("done", progress(operation)),
            ("left alone", operation["left_alone"] or None),
            ("failed", operation["failed"] or None),
            *(("", f"{one['id']}  {one['detail']}") for one in operation["failures"]),
            ("asked", in_zone(operation["created_at"], zone)),
            ("finished", in_zone(operation["finished_at"], zone)),
        ]
    )


def _watch(call: Call, made: Mapping[str, Any], timeout_s: float | None) -> int:
    """Tell of its progress until it is over; 7 if something could not be done."""
    last = made
    total = made["matched"] if made["matched_is_exact"] else None
    ident = made["operation_id"]
    with (
        waiting_for(ident, f"hourhand operations show {ident}"),
        Progress(made["action"], total, wanted=call.out.form is Form.PEOPLE) as bar,
    ):
        seen = 0
        for last in call.client.operations.watch(made, timeout_s=timeout_s):
            looked_at = last["done"] + last["left_alone"] + last["failed"]
            bar.add(looked_at - seen)
            seen = looked_at
            if call.out.form is Form.LINES:
                call.out.document(last, None, lambda: None)
    if call.out.form is not Form.LINES:
        call.out.document(last, last["operation_id"], lambda: _show(call, last))
    return 0 if last["state"] == "done" and not last["failed"] else NOT_SUCCEEDED
