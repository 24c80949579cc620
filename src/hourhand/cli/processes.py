"""`api`, `scheduler`, `worker` and `migrate`: the parts of a cluster, each a process of its own."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hourhand.cli.failures import FINDINGS, Usage
from hourhand.cli.launch import Launch, SchemaState
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.system import AllowShell, ConfigFile, Modules
from hourhand.cli.text import plural
from hourhand.errors import CannotStart

if TYPE_CHECKING:  # loaded by the commands that need it
    from hourhand.config import Settings


def register(app: typer.Typer, launch: Launch) -> None:
    """Add the commands that run until they are stopped."""

    def api(
        call: Call,
        port: Annotated[
            int | None, typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0: any free one.")
        ] = None,
        listen: Annotated[
            str | None, typer.Option(metavar="HOST:PORT", help="Address, instead of --port.")
        ] = None,
        config: ConfigFile = None,
    ) -> int:
        """Answer requests, for a cluster on PostgreSQL; any number of these may run."""
        if port is not None and listen is not None:
            raise Usage("give either --port or --listen")
        address = listen if port is None else f"127.0.0.1:{port}"
        return launch.api(
            _settings(config, [("server.listen", address, "--port" if listen is None else "--listen")])
        )

    def scheduler(call: Call, config: ConfigFile = None) -> int:
        """Plan runs and repair what was left behind, for a cluster on PostgreSQL; any number may run."""
        return launch.scheduler(_settings(config, []))

    def worker(
        call: Call,
        modules: Modules = None,
        pools: Annotated[
            list[str] | None,
            typer.Option("--pool", metavar="NAME", help="Pool whose runs it takes; may be repeated."),
        ] = None,
        concurrency: Annotated[int | None, typer.Option(help="Runs in hand at once, per process.")] = None,
        processes: Annotated[int | None, typer.Option(help="How many processes to run.")] = None,
        drain: Annotated[
            str | None, typer.Option(metavar="DURATION", help="How long runs may take to end at a stop.")
        ] = None,
        allow_shell: AllowShell = False,
        config: ConfigFile = None,
    ) -> int:
        """Execute runs, for a cluster on PostgreSQL; any number may run, on any machines."""
        given = [
            ("worker.import", modules or None, "--import"),
            ("worker.pools", pools or None, "--pool"),
            ("worker.concurrency", concurrency, "--concurrency"),
            ("worker.processes", processes, "--processes"),
            ("worker.drain", drain, "--drain"),
            ("worker.shell", allow_shell or None, "--allow-shell"),
        ]
        return launch.worker(_settings(config, given))

    command(app, "api")(api)
    command(app, "scheduler")(scheduler)
    command(app, "worker")(worker)


def register_migrate(group: typer.Typer, launch: Launch) -> None:
    """Add the commands about the schema."""

    def status(call: Call, config: ConfigFile = None) -> int:
        """Say how far the schema of each database is; 8 where it is not what this program needs."""
        states = launch.migrations(_settings(config, []))
        documents = [_document(state) for state in states]
        columns = (
            Column(head="DATABASE", cell=lambda row: row["database"], width=100),
            Column(head="VERSION", cell=lambda row: row["version"]),
            Column(head="NEWEST", cell=lambda row: row["newest"]),
            Column(head="STATE", cell=lambda row: row["state"]),
        )

        def show() -> None:
            call.out.table(columns, documents)
            for advice in sorted({_advice(state) for state in states}):
                call.out.note(advice)

        call.out.document({"databases": documents}, None, show)
        return 0 if all(state.state == "up to date" for state in states) else FINDINGS

    def up(call: Call, config: ConfigFile = None) -> int:
        """Bring each database up to date; safe while processes of the version before are running."""
        if call.dry_run:
            _show_pending(call, launch.migrations(_settings(config, [])))
            return 0
        done: list[dict[str, str]] = []

        def applied(database: str, name: str) -> None:
            done.append({"database": database, "applied": name})
            call.out.note(f"{database}: {name}")

        launch.migrate(_settings(config, []), applied)
        words = plural(len(done), "step") if done else "nothing to do: up to date"
        call.out.document({"applied": done}, None, lambda: call.out.line(words))
        return 0

    command(group, "status")(status)
    command(group, "up", changes=True)(up)


def _document(state: SchemaState) -> dict[str, object]:
    return {
        "database": state.database,
        "version": state.version,
        "newest": state.newest,
        "pending": list(state.pending),
        "state": state.state,
    }


def _show_pending(call: Call, states: Sequence[SchemaState]) -> None:
    """What `up` would do, or why it would refuse."""
    for state in states:
        if state.state == "newer":
            raise CannotStart(f"{state.database}: {_advice(state)}")
    pending = [{"database": one.database, "step": step} for one in states for step in one.pending]

    def show() -> None:
        for one in pending:
            call.out.line(f"{one['database']}: {one['step']}")
        call.out.note(
            f"would make {plural(len(pending), 'step')}" if pending else "nothing to do: up to date"
        )

    call.out.document({"applied": [], "pending": pending, "dry_run": True}, None, show)


def _advice(state: SchemaState) -> str:
    match state.state:
        case "pending":
            return "bring it up to date with `hourhand migrate up`"
        case "newer":
            return "a database is newer than this program: use the version that made it, or a later one"
        case _:
            return "all good"


def _settings(config: Path | None, given: "Sequence[tuple[str, object, str]]") -> "Settings":
    from hourhand.config import Flag, load

    flags: list[Flag] = [
        Flag(path=path, value=value, name=name) for path, value, name in given if value is not None
    ]
    return load(flags=flags, environment=os.environ, config=config, folder=Path()).settings()
