"""`quota`: what tenants may have and what they have; setting it, for those who run the system."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hourhand.cli.failures import Usage
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.paging import Cursor, Limit
from hourhand.core.access import TENANT_WORDS, is_tenant

_VALUE = re.compile(r"\d{1,13}")
_WORDS = {"none": 0, "default": None}
_METAVAR = "N|none|default"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "show")(show)
    command(app, "list")(list_tenants)
    command(app, "set", changes=True)(set_quota)


def show(call: Call) -> None:
    """Show what your tenant may have and what it has; --tenant names another, for those who run the system."""
    found = call.client.system.quota()
    call.out.document(found, found["tenant"], lambda: _show(call, found))


def list_tenants(call: Call, limit: Limit = 50, cursor: Cursor = None) -> None:
    """List tenants by name, with what they have of what they may; for those who run the system."""
    page = call.client.system.tenants_page(limit=limit, cursor=cursor)
    columns = (
        Column(head="TENANT", cell=lambda one: one["tenant"]),
        Column(head="JOBS", cell=lambda one: _of(one, "jobs")),
        Column(head="RUNS A MINUTE", cell=lambda one: _of(one, "runs_per_minute")),
        Column(head="DOCUMENTS", cell=lambda one: _of(one, "document_bytes")),
    )
    call.out.page(page, ident="tenant", columns=columns, empty="no tenants")


def set_quota(
    call: Call,
    of: Annotated[str, typer.Argument(metavar="TENANT", help="Whose.")],
    jobs: Annotated[str | None, typer.Option(metavar=_METAVAR, help="Jobs.")] = None,
    runs_per_minute: Annotated[str | None, typer.Option(metavar=_METAVAR, help="Runs a minute.")] = None,
    payload_bytes: Annotated[
        str | None, typer.Option(metavar=_METAVAR, help="Bytes of one job's payload.")
    ] = None,
    document_bytes: Annotated[
        str | None, typer.Option(metavar=_METAVAR, help="Bytes of all its job documents.")
    ] = None,
    history_days: Annotated[
        str | None, typer.Option(metavar=_METAVAR, help="Days for which ended runs can be read.")
    ] = None,
) -> None:
    """Set what a tenant may have; what is not named stays. none or 0: no limit, default: as the settings say."""
    given = {
        "jobs": jobs,
        "runs_per_minute": runs_per_minute,
        "payload_bytes": payload_bytes,
        "document_bytes": document_bytes,
        "history_days": history_days,
    }
    changes = {name: _value(name, text) for name, text in given.items() if text is not None}
    if not changes:
        raise Usage("name at least one limit, such as --jobs 10000")
    if not is_tenant(of):
        raise Usage(f"TENANT: expected {TENANT_WORDS}")
    call.tenant = of
    system = call.client.system
    done = system.set_quota(of, dry_run=call.dry_run, **{**system.quota()["own"], **changes})

    def tell() -> None:
        call.out.note(f"the quota of {of} {'would be' if call.dry_run else 'is'} set")
        _show(call, done)

    call.out.document(done, of, tell)


def _value(name: str, text: str) -> int | None:
    if text in _WORDS:
        return _WORDS[text]
    if not _VALUE.fullmatch(text):
        flag = f"--{name.replace('_', '-')}"
        raise Usage(f"{flag}: expected a whole number, none or default, got {text!r}")
    return int(text)


def _show(call: Call, found: Mapping[str, Any]) -> None:
    call.out.facts(
        [
            ("tenant", found["tenant"]),
            ("jobs", _of(found, "jobs")),
            ("runs/minute", _of(found, "runs_per_minute")),
            ("documents", f"{_of(found, 'document_bytes')} bytes"),
            ("payload", f"up to {found['limits']['payload_bytes']:,} bytes"),
            ("history", f"{found['limits']['history_days']:,} days"),
        ]
    )


def _of(found: Mapping[str, Any], name: str) -> str:
    limit = found["limits"][name]
    return f"{found['use'][name]:,} of {'any number' if limit is None else format(limit, ',')}"
