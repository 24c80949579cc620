"""`up`, `check`, `doctor` and `version`: this process, its settings, and the servers that they name."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hourhand
from hourhand.cli.failures import FINDINGS, Usage
from hourhand.cli.launch import Examined, Launch
from hourhand.cli.options import Call, command
from hourhand.cli.output import Column
from hourhand.cli.text import plural

if TYPE_CHECKING:  # loaded by the commands that need it: most do not, and all shall start fast
    from hourhand.config import Flag

ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings, as TOML.")]
AllowShell = Annotated[
    bool, typer.Option("--allow-shell", help="Run commands too (shell targets), as the user of this process.")
]
Modules = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="MODULE", help="Job functions to serve; may be repeated."),
]


def register(app: typer.Typer, launch: Launch) -> None:
    """Add the commands; `launch` is what `up` starts."""

    def up(
        call: Call,
        port: Annotated[
            int | None, typer.Option(min=0, max=65_535, help="Port of the API on 127.0.0.1; 0: any free one.")
        ] = None,
        listen: Annotated[
            str | None, typer.Option(metavar="HOST:PORT", help="Address of the API, instead of --port.")
        ] = None,
        data: Annotated[
            str | None, typer.Option(metavar="FILE", help="The SQLite file; ./hourhand.db unless given.")
        ] = None,
        modules: Modules = None,
        concurrency: Annotated[int | None, typer.Option(help="Runs in hand at once.")] = None,
        allow_shell: AllowShell = False,
        no_demo: Annotated[bool, typer.Option("--no-demo", help="No demo jobs in a new store.")] = False,
        open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
        config: ConfigFile = None,
    ) -> int:
        """Run everything in this process: API, scheduler and worker, on a SQLite file unless store.url says otherwise."""
        from hourhand.config import UpOptions, load

        if port is not None and listen is not None:
            raise Usage("give either --port or --listen")
        flags = _flags(
            port=port,
            listen=listen,
            data=data,
            modules=modules,
            concurrency=concurrency,
            allow_shell=allow_shell,
        )
        loaded = load(flags=flags, environment=os.environ, config=config, folder=Path())
        return launch.up(loaded.settings(), UpOptions(demo=not no_demo, open=open_page))

    def doctor(call: Call, config: ConfigFile = None) -> int:
        """Look at the store and each server that the settings name and say how it is; 8 where something is wrong."""
        from hourhand.config import load

        if config is not None and not config.exists():
            raise Usage(f"--config {config}: there is no such file")
        settings = load(environment=os.environ, config=config, folder=Path()).settings()
        return _tell_examined(call, launch.examine(settings))

    command(app, "up")(up)
    command(app, "check")(check)
    command(app, "doctor")(doctor)
    command(app, "version")(version)


def check(
    call: Call,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Settings, as by --config.")] = None,
) -> int:
    """Read the settings and say each value and where it came from; connects to nothing."""
    from hourhand.config import load

    loaded = load(environment=os.environ, config=file, folder=Path())
    rows: list[dict[str, Any]] = [
        {"key": one.key.path, "value": one.shown, "source": one.source, "help": one.key.help}
        for one in loaded.effective
    ]
    findings = [{"where": one.where, "message": one.message} for one in loaded.findings]
    document = {"settings": rows, "findings": findings}
    columns = (
        Column(head="KEY", cell=lambda row: row["key"]),
        Column(head="VALUE", cell=lambda row: row["value"]),
        Column(head="FROM", cell=lambda row: row["source"], width=80),
    )

    def show() -> None:
        call.out.table(columns, rows)
        for one in loaded.findings:
            call.out.line(f"finding: {one}")
        call.out.note(plural(len(findings), "finding") if findings else "all good")

    call.out.document(document, None, show)
    return FINDINGS if findings else 0


def _tell_examined(call: Call, found: Sequence[Examined]) -> int:
    rows: list[dict[str, Any]] = [
        {"what": one.what, "where": one.where, "ok": not one.finding, "seen": one.seen}
        | ({"finding": one.finding, "fix": one.fix} if one.finding else {})
        for one in found
    ]
    columns = (
        Column(head="WHAT", cell=lambda row: row["what"]),
        Column(head="WHERE", cell=lambda row: row["where"], width=80),
        Column(head="STATE", cell=lambda row: row["seen"] if row["ok"] else "wrong"),
    )

    def show() -> None:
        call.out.table(columns, rows)
        for one in found:
            if one.finding:
                call.out.line(f"{one.what}: {one.finding}")
                call.out.line(f"  what helps: {one.fix}")

    call.out.document({"servers": rows}, None, show)
    return FINDINGS if any(one.finding for one in found) else 0


def version(call: Call) -> None:
    """Print the version, and those of what matters most to it."""
    import sqlite3

    from hourhand.core.schedule import tzdata_version

    document = {
        "version": hourhand.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "sqlite": sqlite3.sqlite_version,
        "tzdata": tzdata_version(),
    }
    words = "hourhand {version} (Python {python}, SQLite {sqlite}, zone data {tzdata})".format(**document)
    call.out.document(document, hourhand.__version__, lambda: call.out.line(words))


def _flags(
    *,
    port: int | None,
    listen: str | None,
    data: str | None,
    modules: list[str] | None,
    concurrency: int | None,
    allow_shell: bool,
) -> "list[Flag]":
    from hourhand.config import Flag, sqlite_url

    flags = []
    if port is not None:
        flags.append(Flag(path="server.listen", value=f"127.0.0.1:{port}", name="--port"))
    if listen is not None:
        flags.append(Flag(path="server.listen", value=listen, name="--listen"))
    if data is not None:
        flags.append(Flag(path="store.url", value=sqlite_url(data), name="--data"))
    if modules:
        flags.append(Flag(path="worker.import", value=modules, name="--import"))
    if concurrency is not None:
        flags.append(Flag(path="worker.concurrency", value=concurrency, name="--concurrency"))
    if allow_shell:
        flags.append(Flag(path="worker.shell", value=True, name="--allow-shell"))
    return flags
