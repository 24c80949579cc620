"""The command line as a whole: its tree of commands, and running one to an exit code."""

import contextlib
import os
import sys
from collections.abc import Sequence

import typer

import hourhand
from hourhand.cli import (
    audits,
    backfill,
    cluster,
    deeds,
    dlq,
    jobs,
    operations,
    processes,
    queue,
    quotas,
    runs,
    schedules,
    simulating,
    system,
    tail,
    tokens,
    webhooks,
    why,
)
from hourhand.cli.completion import commands as completion
from hourhand.cli.failures import DEBUG, INTERRUPTED, report
from hourhand.cli.files import commands as files
from hourhand.cli.graphs import commands as graphs
from hourhand.cli.launch import Launch
from hourhand.cli.options import Option, accept_globals, form_of
from hourhand.cli.output import Output

_PROCESSES = frozenset({"up", "api", "scheduler", "worker"})


def build(launch: Launch) -> typer.Typer:
    """All commands; `launch` is what those start that run until they are stopped."""
    app = _group("A job scheduler: what to run and when; on time, once in effect, through crashes.", _VERSION)
    system.register(app, launch)
    processes.register(app, launch)
    migrate = _group("The schema of a cluster's databases.")
    processes.register_migrate(migrate, launch)
    app.add_typer(migrate, name="migrate")
    queues = _group("The broker that runs are offered through.")
    queue.register(queues, launch)
    app.add_typer(queues, name="queue")
    token = _group("API tokens.")
    tokens.register(token, launch)
    app.add_typer(token, name="token")
    tokens.register_whoami(app)
    schedules.register(app)
    audits.register(app)
    deeds.register(app)
    why.register(app)
    tail.register(app)
    simulating.register(app, launch)
    files.register(app)
    importing = _group("Jobs from elsewhere.")
    files.register_import(importing)
    app.add_typer(importing, name="import")
    groups = (
        ("jobs", jobs, "Jobs."),
        ("runs", runs, "Runs."),
        ("backfill", backfill, "Runs for times that have passed."),
        ("dlq", dlq, "Dead letters."),
        ("operations", operations, "One action on all jobs or dead letters that match."),
        ("cluster", cluster, "The processes, and who plans what."),
        ("completion", completion, "Completion for bash, zsh and fish."),
        ("webhooks", webhooks, "Endpoints that are told of events."),
        ("quota", quotas, "What tenants may have and what they have."),
        ("dag", graphs, "Graphs of jobs that follow each other."),
    )
    for name, module, help in groups:
        group = _group(help)
        module.register(group)
        app.add_typer(group, name=name)
    return app


def run(arguments: Sequence[str], launch: Launch) -> int:
    """Run one command; the exit code."""
    main = typer.main.get_command(build(launch))
    try:
        code = main.main(args=list(arguments), prog_name="hourhand", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except typer.Abort:
        typer.echo("not done", err=True)
        return 1
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            return _code_of(error)
        _forget_stdout()  # a broken pipe, of which typer makes a SystemExit
        return 0  # whoever read it has seen enough
    except Exception as error:
        # A process that breaks down at night is not started again just to see where.
        traces = bool(os.environ.get(DEBUG)) or not _PROCESSES.isdisjoint(arguments)
        return report(error, Output(form_of({"as_json": "--json" in arguments})), traces=traces)
    return code if isinstance(code, int) else 0


def _code_of(error: SystemExit) -> int:
    """As the interpreter itself takes it: a number, nothing for 0, or words for 1."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    typer.echo(error.code, err=True)
    return 1


def _group(help: str, *more: Option) -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    accept_globals(app, help, more)
    return app


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"hourhand {hourhand.__version__}")
        raise typer.Exit


_VERSION = Option(
    name="version",
    kind=bool,
    info=typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version),
    default=False,
)


def _forget_stdout() -> None:
    """Keep the interpreter from failing once more when it flushes at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
