"""Every command that a document shows exists, with these options and that many arguments."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from hourhand.cli.app import build
from tests.docs.texts import Command, commands, name_of
from tools.docs import ROOT

MAIN: Any = typer.main.get_command(build(lambda settings, options: 0))


def wrong_with(arguments: tuple[str, ...]) -> str | None:
    """Why the command line does not take these arguments; None where it does. Runs nothing."""
    group, context, rest = MAIN, None, list(arguments)
    while hasattr(group, "commands"):
        context = group.context_class(group, info_name=group.name or "hourhand", parent=context)
        _, rest, _ = group.make_parser(context).parse_args(rest)
        if not rest:
            return None  # a group alone, as in "see `hourhand jobs`"
        if rest[0] not in group.commands:
            return f"there is no command {rest[0]}"
        group, rest = group.commands[rest[0]], rest[1:]
    try:
        group.make_context(group.name, rest, parent=context)
    except typer.TyperException as error:
        return None if "does not exist" in error.format_message() else error.format_message()
    except typer.Exit:
        return None  # --help
    return None


def shown(command: Command) -> str:
    return f"{name_of(command.document)}: {' '.join(command.arguments)}"


@pytest.mark.parametrize("command", commands(), ids=shown)
def test_it_exists(command: Command) -> None:
    wrong = wrong_with(command.arguments)
    assert wrong is None or (wrong.startswith("Missing argument") and not command.whole)


def test_documents_show_most_commands() -> None:
    used = {command.arguments[:2] for command in commands()} | {
        command.arguments[:1] for command in commands()
    }
    assert {("up",), ("next",), ("check",), ("jobs", "create"), ("jobs", "run"), ("dlq", "requeue")} <= used
    assert {command.document for command in commands()} >= {ROOT / "README.md"}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("jobs create x --crn '* * * * *'", "--crn"),
        ("job list", "no command job"),
        ("jobs klone x", "no command klone"),
        ("jobs show", "JOB"),
        ("jobs show one two", "two"),
        ("next '* * * * *' -n many", "integer"),
    ],
)
def test_what_does_not_exist_is_found(line: str, word: str) -> None:
    assert word in (wrong_with(tuple(shlex.split(line))) or "")


def test_make_targets_exist() -> None:
    targets = {line.partition(":")[0] for line in (ROOT / "Makefile").read_text("utf-8").splitlines()}
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        assert named_targets(document), document
        assert named_targets(document) <= targets


def named_targets(document: Path) -> set[str]:
    return set(
        re.findall(r"\bmake ([a-z]+)\b(?=[ `\n]+(?:ARGS|WORKERS|ONLY|#|`|\n|$))", document.read_text("utf-8"))
    )
