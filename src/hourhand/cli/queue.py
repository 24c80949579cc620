"""`queue`: the broker that runs are offered through."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hourhand.cli.failures import Usage
from hourhand.cli.launch import Launch, ReplayedWindow
from hourhand.cli.options import Call, command
from hourhand.cli.system import ConfigFile
from hourhand.cli.text import plural
from hourhand.cli.times import in_zone, moment, now
from hourhand.core.instant import format_instant


def register(group: typer.Typer, launch: Launch) -> None:
    """Add the commands."""

    def replay(
        call: Call,
        from_: Annotated[str, typer.Option("--from", metavar="TIME", help="What was offered from here on.")],
        to: Annotated[
            str | None, typer.Option("--to", metavar="TIME", help="Up to here; now unless given.")
        ] = None,
        config: ConfigFile = None,
    ) -> int:
        """Offer once more what Kafka's topics hold of a window of time; runs that are taken or over stay as they are."""
        from hourhand.config import load

        zone, now_at = call.tz or "UTC", now()
        from_at = moment(from_, zone, now_at, "--from")
        to_at = now_at if to is None else moment(to, zone, now_at, "--to")
        if from_at >= to_at:
            raise Usage("--from must be before --to")
        settings = load(environment=os.environ, config=config, folder=Path()).settings()
        done = launch.replay(settings, from_at, to_at, dry_run=call.dry_run)
        document = _document(done, from_at, to_at, dry_run=call.dry_run)
        call.out.document(document, None, lambda: _show(call, document, zone))
        return 0

    command(group, "replay", changes=True)(replay)


def _document(done: ReplayedWindow, from_at: int, to_at: int, *, dry_run: bool) -> dict[str, Any]:
    return {
        "from": format_instant(from_at),
        "to": format_instant(to_at),
        "offered": sum(done.by_priority.values()),
        "by_priority": dict(done.by_priority),
        "unreadable": done.unreadable,
        "dry_run": dry_run,
    }


def _show(call: Call, document: dict[str, Any], zone: str) -> None:
    call.out.note(f"{in_zone(document['from'], zone)} to {in_zone(document['to'], zone)}")
    parts = ", ".join(f"{count:,} {name}" for name, count in document["by_priority"].items() if count)
    verb = "would offer" if document["dry_run"] else "offered"
    call.out.line(f"{verb} {plural(document['offered'], 'run')} again{f': {parts}' if parts else ''}")
    if document["unreadable"]:
        call.out.note(f"{plural(document['unreadable'], 'message')} could not be read")
