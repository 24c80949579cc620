"""`apply`, `plan`, `export` and `import`: what they take. What they do is loaded only when one of them is called."""

from typing import Annotated

import typer

from hourhand.cli.failures import Usage
from hourhand.cli.options import Call, command

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE|MODULE…]", help="Files, folders, - for stdin, or modules such as app.tasks."
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option("--file", "-f", metavar="FILE", help="A file, a folder or -; may be repeated."),
]
SetName = Annotated[
    str | None,
    typer.Option("--set", metavar="NAME", help="The set that the jobs belong to; else the files say."),
]
Prune = Annotated[
    bool, typer.Option("--prune", help="Delete jobs of the same set that the files no longer have.")
]
TakeOver = Annotated[bool, typer.Option("--take-over", help="Also jobs that belong to another set.")]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")]
Apply = Annotated[bool, typer.Option("--apply", help="Create the jobs instead of writing a file.")]
Lenient = Annotated[
    bool, typer.Option("--lenient", help="End with 0 although not everything can be carried over.")
]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="End with 8 where there is something to change.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "apply", changes=True)(apply)
    command(app, "plan")(plan)
    command(app, "export", changes=True)(export)


def register_import(app: typer.Typer) -> None:
    """Add the commands of `import`."""
    command(app, "crontab", changes=True)(crontab)
    command(app, "celery-beat", changes=True)(celery_beat)
    command(app, "apscheduler", changes=True)(apscheduler)


def apply(
    call: Call,
    sources: Sources = None,
    file: Files = None,
    set_name: SetName = None,
    prune: Prune = False,
    take_over: TakeOver = False,
    exit_code: ExitCode = False,
) -> int:
    """Make jobs what files or modules say: create, change, and with --prune delete. Never resumes a paused job."""
    from hourhand.cli.files.applying import Wish, run_apply  # here: YAML is of no use to other commands

    wish = Wish(sources=sources, files=file, set_name=set_name, prune=prune, take_over=take_over)
    return run_apply(call, wish, exit_code=exit_code, dry_run=call.dry_run)


def plan(
    call: Call,
    sources: Sources = None,
    file: Files = None,
    set_name: SetName = None,
    prune: Prune = False,
    take_over: TakeOver = False,
    exit_code: ExitCode = False,
) -> int:
    """Say what `apply` would change, and change nothing."""
    call.dry_run = True
    return apply(call, sources, file, set_name, prune, take_over, exit_code)


def export(
    call: Call,
    set_name: Annotated[
        str | None, typer.Option("--set", metavar="NAME", help="Only jobs of this set.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All there are, as without a filter.")] = False,
    output: Output = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="yaml|json|jsonl",
            help="How it is written; else as --json or --jsonl says, or yaml.",
        ),
    ] = None,
    assign_keys: Annotated[
        bool, typer.Option("--assign-keys", help="Give jobs without a key one; else they are left out.")
    ] = False,
) -> int:
    """Write jobs as a file that `apply` takes back without a change: only what is not the default, by set and key."""
    from hourhand.cli.files.exporting import run_export

    if everything and (set_name or tag):
        raise Usage("--all goes without --set and --tag")
    return run_export(call, {"set": set_name, "tag": tag}, output, form, assign_keys=assign_keys)


def crontab(
    call: Call,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="A crontab; - is stdin.")] = None,
    user: Annotated[bool, typer.Option("--user", help="Your own, as crontab -l prints it.")] = False,
    system: Annotated[
        bool,
        typer.Option("--system", help="With a column for the user; alone: /etc/crontab and /etc/cron.d."),
    ] = False,
    as_user: Annotated[
        str | None, typer.Option("--as", metavar="USER", help="Whose lines; you unless given.")
    ] = None,
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="The zone of its times; else this machine's.")
    ] = None,
    set_name: Annotated[
        str, typer.Option("--set", metavar="NAME", help="The set that the jobs belong to.")
    ] = "crontab",
    output: Output = None,
    apply: Apply = False,
    lenient: Lenient = False,
) -> int:
    """Make jobs of a crontab; what cannot be carried over is named line by line, and ends with 8."""
    from hourhand.cli.files.importing import Import, run_import

    asked = Import(
        file=file,
        user=user,
        system=system,
        as_user=as_user,
        tz=tz,
        set_name=set_name,
        output=output,
        apply=apply,
        lenient=lenient,
    )
    return run_import(call, asked)


def celery_beat(
    call: Call,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A module with the app, a file with beat_schedule, beat's own file, or django-celery-beat's database.",
        ),
    ],
    via_celery: Annotated[
        str | None,
        typer.Option(
            metavar="APP", help="Give the tasks to Celery's workers, by celery -A APP call, as beat did."
        ),
    ] = None,
    set_name: Annotated[
        str, typer.Option("--set", metavar="NAME", help="The set that the jobs belong to.")
    ] = "celery-beat",
    output: Output = None,
    apply: Apply = False,
    lenient: Lenient = False,
) -> int:
    """Make jobs of the entries of a Celery beat; what cannot be carried over is named entry by entry, and ends with 8."""
    from hourhand.cli.files.foreign.running import Wanting, import_celery_beat

    asked = Wanting(source=source, set_name=set_name, output=output, apply=apply, lenient=lenient)
    return import_celery_beat(call, asked, via_celery)


def apscheduler(
    call: Call,
    source: Annotated[
        str, typer.Argument(metavar="DATABASE", help="Of a SQLAlchemyJobStore: a file of SQLite, or a URL.")
    ],
    table: Annotated[str, typer.Option(metavar="NAME", help="The table of its jobs.")] = "apscheduler_jobs",
    set_name: Annotated[
        str, typer.Option("--set", metavar="NAME", help="The set that the jobs belong to.")
    ] = "apscheduler",
    output: Output = None,
    apply: Apply = False,
    lenient: Lenient = False,
) -> int:
    """Make jobs of those of an APScheduler 3; what cannot be carried over is named job by job, and ends with 8."""
    from hourhand.cli.files.foreign.running import Wanting, import_apscheduler

    asked = Wanting(source=source, set_name=set_name, output=output, apply=apply, lenient=lenient)
    return import_apscheduler(call, asked, table)
